"""Object stores and web servers: what is read and written there has the bits of a disk, whatever breaks on the way, and no secret
is shown. Mistakes in URLs are named before any work."""

from __future__ import annotations

import gzip
import io
import json
import os
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from kit.object_stores import SECRET, s3_server, write_rows

import streamcut
from streamcut import CheckpointOptions
from streamcut.errors import CorruptError, IncompleteError, LockedError, NotFoundError, StreamcutError, UsageError

URL = "s3://bucket/a.zarr"
SHARDS = {"shard_nnz": 900, "threads": 1}
OPTIONS = {"solver": "ocas", "max_passes": 4, "tol": 1e-9, "tol_relative": None, "lanes": 2, "memory": "4GB"}


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> Path:
    """svmlight text of 600 rows, and with it the store a.zarr of it, of six shards."""
    folder = tmp_path_factory.mktemp("remote")
    write_rows(folder / "a.svm", 600)
    streamcut.convert(folder / "a.svm", folder / "a.zarr", **SHARDS)
    return folder / "a.svm"


@pytest.fixture
def bucket(monkeypatch):
    """An S3 server with the empty s3://bucket."""
    for name in ("STREAMCUT_TIMEOUT", "STREAMCUT_FAILPOINT"):
        monkeypatch.delenv(name, raising=False)
    with s3_server(monkeypatch) as found:
        yield found


@pytest.fixture
def server(bucket, text):
    """The same with the store at URL; `asked` holds the requests since."""
    for name, content in local(text).items():
        bucket.put(f"a.zarr/{name}", content)
    bucket.asked.clear()
    return bucket


def local(text: Path) -> dict[str, bytes]:
    store = text.with_name("a.zarr")
    return {path.relative_to(store).as_posix(): path.read_bytes() for path in sorted(store.rglob("*")) if path.is_file()}


def bits(data, **options) -> bytes:
    return streamcut.train(data, **{**OPTIONS, **options}).weights.tobytes()


# --- reading --------------------------------------------------------------------------------------------------------------------


def test_a_web_server_where_nothing_can_be_listed(text, run):
    handler = partial(SimpleHTTPRequestHandler, directory=text.parent)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        root = f"http://127.0.0.1:{server.server_address[1]}"
        store, model = text.with_name("a.zarr"), streamcut.train(text.with_name("a.zarr"), **OPTIONS)
        assert bits(f"{root}/a.zarr") == model.weights.tobytes()
        np.testing.assert_array_equal(streamcut.predict(model, f"{root}/a.zarr"), streamcut.predict(model, store))
        assert streamcut.open(f"{root}/a.zarr").recipe == streamcut.open(store).recipe
        assert run("info", f"{root}/a.zarr", "--check", "--read-data")[0] == 0
        for path in ("nothing.zarr", "a.svm"):
            with pytest.raises(NotFoundError, match="not a streamcut store"):
                streamcut.open(f"{root}/{path}")
        server.shutdown()


def test_one_request_for_each_chunk_and_none_for_its_length(server, text):
    there = streamcut.open(URL)
    for shard in range(len(there.manifest.shards)):
        there.expect(shard)
        there.read(shard)
    chunks = [(method, path) for method, path in server.asked if path.endswith("/c.0")]
    assert {method for method, _ in chunks} == {"GET"}
    assert len(chunks) == len(set(chunks)) == sum(name.endswith("c.0") for name in local(text))


@pytest.mark.parametrize("trouble", ["stall", "cut", "flip", "slow", 503])
def test_what_fails_is_repeated_and_the_bits_are_the_same(server, text, monkeypatch, trouble):
    monkeypatch.setenv("STREAMCUT_TIMEOUT", "1")
    server.spoil("GET", [None] * 3 + [trouble, None, trouble])
    assert bits(URL) == bits(text.with_name("a.zarr"))
    assert server.troubles == []


def test_what_fails_for_ever_is_an_error_that_names_the_chunk(server, monkeypatch):
    monkeypatch.setenv("STREAMCUT_RETRIES", "1")
    data = streamcut.open(URL)
    server.spoil("GET", [500] * 10_000)
    with pytest.raises(NotFoundError, match=r"a\.zarr/shards/\d+/\w+/c\.0: cannot be read .* after 1 retries"):
        data.read(0)
    server.spoil("GET", ["flip"] * 10_000)
    with pytest.raises(CorruptError, match=r"c\.0: does not have the checksum"):
        data.read(0)


def test_a_cache_makes_the_second_run_local_and_keeps_to_its_size(server, text, tmp_path, monkeypatch):
    def asked() -> int:
        found = len({path for _, path in server.asked if path.endswith("/c.0")})
        server.asked.clear()
        return found

    cache = tmp_path / "cache"
    monkeypatch.setenv("STREAMCUT_CACHE_DIR", str(cache))
    expected = bits(text.with_name("a.zarr"))
    assert bits(URL) == expected
    chunks = asked()
    assert bits(URL) == expected
    assert asked() == 0
    for place in cache.rglob("shards*indices*"):  # a disk that rots
        content = bytearray(place.read_bytes())
        content[5] ^= 4
        place.write_bytes(content)
    assert bits(URL) == expected
    assert 0 < asked() < chunks
    monkeypatch.setenv("STREAMCUT_CACHE_DIR", str(tmp_path / "small"))
    monkeypatch.setenv("STREAMCUT_CACHE_SIZE", "20kB")
    for _ in range(2):
        assert bits(URL) == expected
        assert 10_000 < sum(each.stat().st_size for each in (tmp_path / "small").rglob("*") if each.is_file()) <= 20_000 + 200


# --- writing --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trouble", [503, "short"])
def test_a_store_has_the_bytes_of_one_on_a_disk_though_uploads_fail(text, bucket, trouble):
    bucket.spoil("PUT", [None, trouble, None, None, trouble, trouble])
    report = streamcut.convert(text, URL, **SHARDS)
    assert bucket.troubles == []
    assert bucket.content("a.zarr/") == local(text)
    assert report.bytes_out == sum(map(len, local(text).values()))
    streamcut.convert(URL, "s3://bucket/b.zarr", shuffle=3, split=0.7, **SHARDS)
    assert {name.partition("/")[0] for name in bucket.content()} == {"a.zarr", "b.zarr", "b-test.zarr"}


@pytest.mark.parametrize("point", ["remote.put:20", "convert.journal:4", "convert.manifest:1"])
def test_what_is_interrupted_is_no_store_and_is_taken_up(text, bucket, monkeypatch, point):
    monkeypatch.setenv("STREAMCUT_RETRIES", "0")
    monkeypatch.setenv("STREAMCUT_FAILPOINT_RUN", point)
    monkeypatch.setenv("STREAMCUT_FAILPOINT", f"{point}:EIO")
    with pytest.raises((OSError, StreamcutError)):
        streamcut.convert(text, URL, **SHARDS)
    monkeypatch.delenv("STREAMCUT_FAILPOINT")
    monkeypatch.delenv("STREAMCUT_RETRIES")
    assert "a.zarr/manifest.json" not in bucket.content()
    with pytest.raises(IncompleteError, match=r"never finished; run the same .* with resume=True"):
        streamcut.open(URL)
    streamcut.convert(text, URL, resume=True, **SHARDS)
    assert bucket.content("a.zarr/") == local(text)


@pytest.mark.parametrize("name", ["notes.txt", "journal/000001", "shards/000000/data/c.0"])
def test_what_is_not_ours_stays(text, bucket, name):
    bucket.put(f"a.zarr/{name}", b"mine")
    for options in ({}, {"force": True}, {"resume": True}):
        with pytest.raises(UsageError, match="not written by"):
            streamcut.convert(text, URL, **options, **SHARDS)
    assert bucket.content("a.zarr/") == {name: b"mine"}


def test_of_two_that_write_one_store_the_first_gives_way():
    place = "memory://two/a.zarr"
    out = streamcut.create(place, shard_nnz=10).__enter__()
    out.append(np.eye(300), np.arange(300) % 2)
    with streamcut.create(place, shard_nnz=10) as other:
        other.append(np.eye(60), np.arange(60) % 2)
    with pytest.raises(LockedError, match="written by another process"):
        out.__exit__(None)
    assert streamcut.open(place).manifest.statistics.n_rows == 60


def test_every_command_reads_and_writes_urls_and_nothing_says_the_secret(text, bucket, run, caplog):
    caplog.set_level(1)
    model, said = "s3://bucket/models/m.npz", []
    line = ("--solver", "ocas", "--max-passes", "4", "--set", "lanes=2", "--tol", "1e-9", "-v")
    for arguments in [
        ("convert", text, URL, "--shard-nnz", "900"),
        ("train", URL, "-o", model, *line, "--checkpoint", "s3://bucket/run", "--checkpoint-every", "0s"),
        ("calibrate", model, URL, "-o", "s3://bucket/c.npz"),
        ("predict", "s3://bucket/c.npz", URL, "--answer", "probabilities", "-o", "s3://bucket/p.csv"),
        ("evaluate", model, URL),
        ("verify", model),
        ("info", model),
        ("info", URL, "--check", "--read-data"),
        ("export", model, "s3://bucket/m.json"),
        ("report", model, "-o", "s3://bucket/m.html", "--quiet"),
        ("convert", text, "s3://bucket/again.zarr", "--recipe", model, "--quiet"),
    ]:
        code, *words = run(*arguments)
        assert code == 0, (arguments, words)
        said += words
    assert streamcut.load_model(model).weights.tobytes() == bits(text.with_name("a.zarr"), memory="auto")
    everything = bucket.content()
    assert everything["p.csv"].count(b"\n") == 601
    assert everything["m.html"].startswith(b"<!doctype html>")
    assert json.loads(everything["m.json"])
    code, _, refused = run("train", URL, "-o", model, *line)
    assert (code, "replace it with --force" in refused) == (2, True)
    code, _, refused = run("predict", model, URL, "-o", f"{URL}/p.txt")
    assert (code, "lies in the store" in refused) == (2, True)
    bucket.spoil("GET", [(500, b"no")] * 20)
    os.environ["STREAMCUT_RETRIES"] = "1"
    code, *failed = run("evaluate", model, URL)
    del os.environ["STREAMCUT_RETRIES"]
    assert code == 4
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("streamcut")]
    for shown in (*everything.values(), *(text.encode() for text in (*said, *failed, *ours))):
        for secret in (os.environ["AWS_ACCESS_KEY_ID"], SECRET, bucket.url):
            assert secret.encode() not in shown


def test_a_model_whose_url_fails_is_kept_here(text, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STREAMCUT_RETRIES", "1")
    monkeypatch.setenv("STREAMCUT_FAILPOINT_RUN", "kept")
    monkeypatch.setenv("STREAMCUT_FAILPOINT", "remote.put:1:EIO,remote.put:2:EIO")
    code, _, said = run("train", text.with_name("a.zarr"), "-o", "memory://bucket/m.npz", "--max-passes", "3", "--quiet")
    assert code == 4
    assert "m.npz could not be written: the model is in m.1.npz" in said
    assert streamcut.load_model("m.1.npz").task == "binary"


def test_checkpoints_behind_a_url_go_on_to_the_same_bits(text, bucket, monkeypatch, caplog):
    store, place = text.with_name("a.zarr"), "s3://bucket/run"
    expected = bits(store, max_passes=8)
    bits(store, max_passes=3, checkpoint=CheckpointOptions(place, every=0.0))
    before = bucket.content("run/")
    assert set(before) == {"state.checkpoint"}
    with pytest.raises(UsageError, match="holds the checkpoint of a run"):
        bits(store, checkpoint=place)
    monkeypatch.setenv("STREAMCUT_RETRIES", "0")
    monkeypatch.setenv("STREAMCUT_FAILPOINT_RUN", "checkpoints")
    monkeypatch.setenv("STREAMCUT_FAILPOINT", ",".join(f"remote.put:{k}:EIO" for k in range(1, 20)))
    goes_on = CheckpointOptions(place, every=0.0, resume=True)
    assert bits(store, max_passes=8, checkpoint=goes_on) == expected
    assert "no checkpoint: s3://bucket/run" in caplog.text
    assert bucket.content("run/") == before  # a failed upload takes nothing away
    monkeypatch.delenv("STREAMCUT_FAILPOINT")
    assert bits(store, max_passes=8, checkpoint=goes_on) == expected


# --- tables behind URLs ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def tables(bucket):
    """s3://bucket with days/1.parquet, days/2.parquet, days/_SUCCESS and all.csv.gz, and the table that each is of."""
    rng = np.random.default_rng(2)
    site = rng.choice(["a", "b", "c"], 600)
    table = pa.table({"click": np.where(rng.random(600) < 0.1, 1, (site == "a") * 1), "site": site, "price": rng.random(600)})
    for number, start in enumerate((0, 400), start=1):
        pq.write_table(table.slice(start, 400 - start // 2), file := io.BytesIO(), row_group_size=90)
        bucket.put(f"days/{number}.parquet", file.getvalue())
    pa.csv.write_csv(table, file := io.BytesIO())
    bucket.put("all.csv.gz", gzip.compress(file.getvalue()))
    for folder in ("days", "empty"):
        bucket.put(f"{folder}/_SUCCESS", b"")
    return table


@pytest.mark.parametrize("url", ["s3://bucket/days", "s3://bucket/days/*.parquet", "s3://bucket/all.csv.gz"])
def test_tables_behind_urls_are_converted_and_scored(tables, tmp_path, run, url):
    code, _, said = run("convert", url, tmp_path / "r.zarr", "--label", "click", "-q")
    assert code == 0, said
    streamcut.convert(tables, tmp_path / "l.zarr", labels="click")
    stores = [streamcut.open(tmp_path / name) for name in ("r.zarr", "l.zarr")]
    assert stores[0].manifest.fingerprint == stores[1].manifest.fingerprint
    streamcut.save_model(streamcut.train(tmp_path / "l.zarr"), tmp_path / "m.npz")
    code, out, said = run("predict", tmp_path / "m.npz", url, "--keep", "site", "--answer", "both")
    assert code == 0, said
    assert len(out.splitlines()) == 601
    assert run("evaluate", tmp_path / "m.npz", url)[0] == 0


# --- refusals -------------------------------------------------------------------------------------------------------------------


def test_urls_that_lead_nowhere_are_named_before_work(tables, text, run, tmp_path):
    model, label = tmp_path / "m.npz", ("--label", "click", "-q")
    there_is_none = "there is no bucket 'nosuch'"
    for command, said in (
        (("train", "s3://nosuch/a.zarr", "-o", model), f"s3://nosuch/a.zarr: {there_is_none}; check"),
        (("train", "s3://bucket/b.zarr", "-o", model), "s3://bucket/b.zarr: there is nothing at this address"),
        (("train", text.with_name("a.zarr"), "-o", "s3://nosuch/m.npz"), f"s3://nosuch/m.npz: {there_is_none}; create it first"),
        (("convert", text, "s3://nosuch/b.zarr"), f"s3://nosuch/b.zarr: {there_is_none}; create it first"),
        (("convert", "s3://nosuch/a.svm", tmp_path / "b.zarr"), f"s3://nosuch/a.svm: {there_is_none}"),
        (("verify", "s3://bucket/m.npz"), "s3://bucket/m.npz: no such file"),
        (("convert", "s3://bucket/nothing.parquet", tmp_path / "b.zarr", *label), "nothing.parquet"),
        (("convert", "s3://bucket/*.tsv", tmp_path / "b.zarr", *label), "no file matches"),
        (("convert", "s3://bucket/empty", tmp_path / "b.zarr", *label), "holds no files"),
        (("convert", "nowhere://bucket/a.csv", tmp_path / "b.zarr", *label), "nowhere"),
    ):
        code, _, err = run(*command)
        assert (code, said in err) == (4, True), (command, err)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "options", "reason"),
    [
        ("https://host/a.zarr", {}, "https:// can be read only"),
        ("file:///tmp/a.zarr", {}, "file:// can be read only"),
        ("memory://bucket/a.zarr", {"backend": "hdf5"}, "disks only"),
    ],
)
def test_urls_that_are_no_place_for_a_store(text, url, options, reason):
    with pytest.raises(UsageError, match=reason):
        streamcut.convert(text, url, **options)


def test_retries_and_timeout_are_variables(server, run, monkeypatch):
    for retries in (0, 2):
        server.spoil("GET", [500] * 9)
        monkeypatch.setenv("STREAMCUT_RETRIES", str(retries))
        code, _, err = run("info", URL)
        assert (code, "500" in err, server.url in err) == (4, True, False), err
        assert len(server.troubles) == 9 - (1 + retries)
    monkeypatch.setenv("STREAMCUT_TIMEOUT", "0.3")
    server.stall = "/"
    with pytest.raises(NotFoundError, match=r"manifest\.json: cannot be read"):
        streamcut.open(URL)
    for wrong in ("-1", "21", "many", "²", ""):
        monkeypatch.setenv("STREAMCUT_RETRIES", wrong)
        with pytest.raises(UsageError, match="is not a number from 0 to 20"):
            streamcut.open(URL)
    monkeypatch.setenv("STREAMCUT_RETRIES", "1")
    monkeypatch.setenv("STREAMCUT_TIMEOUT", "soon")
    with pytest.raises(UsageError, match="'soon' is not a number of seconds"):
        streamcut.open(URL)
    for seconds in (0, -1, float("nan"), float("inf")):
        with pytest.raises(UsageError, match="above 0"):
            streamcut.set_timeout(seconds)


def test_no_credentials_are_named_at_once(bucket, run, tmp_path, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("STREAMCUT_TIMEOUT", "59")  # no client that was made with them
    code, _, err = run("train", URL, "-o", tmp_path / "m.npz")
    assert (code, "there are no credentials" in err, "AWS_ACCESS_KEY_ID" in err) == (4, True, True)


@pytest.mark.parametrize(
    ("code", "name", "said"),
    [(403, "AccessDenied", "check the credentials"), (301, "PermanentRedirect", "region"), (405, "MethodNotAllowed", "405")],
)
def test_what_cannot_change_is_not_repeated(server, code, name, said):
    body = f"<?xml version='1.0'?><Error><Code>{name}</Code><Message>not here</Message></Error>".encode()
    server.spoil("GET", [(code, body)] * 9)
    with pytest.raises(NotFoundError, match=said):
        streamcut.open(URL)
    assert len(server.troubles) >= 7  # the object, and whether there is its bucket
