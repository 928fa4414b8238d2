"""Writing to object storage: stores, models, checkpoints, predictions; what is interrupted, refused, and never shown."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import threading
import tracemalloc
from contextlib import ExitStack
from pathlib import Path

import fsspec
import kit.shared.remote_writing
import numpy as np
import pytest
from kit.object_stores import SECRET, s3_server
from kit.shared.remote_writing import SHARDS

import streamcut
from streamcut import CheckpointOptions
from streamcut.errors import DiskFullError, IncompleteError, LockedError, NotFoundError, UsageError
from streamcut.foundation.redaction import redacted
from streamcut.io.places import remote
from streamcut.io.stores import remote_build
from streamcut.io.stores.remote_writer import UPLOAD_BYTES, UPLOAD_HELD, RemoteWriter
from streamcut.io.stores.writer import writer_bytes
from streamcut.models.checkpoint_places import checkpoint_place

text = kit.shared.remote_writing.text

STREAMCUT = [sys.executable, "-P", "-c", "from streamcut.cli import main; main()"]
OPTIONS = {"C": 1.0, "max_passes": 8, "tol": 1e-9, "tol_relative": None, "lanes": 2, "solver": "ocas"}


@pytest.fixture
def bucket(monkeypatch):
    """memory://bucket, empty."""
    monkeypatch.setattr(remote, "_PAUSE", 0.001)
    monkeypatch.delenv("STREAMCUT_FAILPOINT", raising=False)
    system = fsspec.filesystem("memory")
    yield "memory://bucket"
    if system.exists("/bucket"):
        system.rm("/bucket", recursive=True)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(remote, "_PAUSE", 0.001)
    with s3_server(monkeypatch) as found:
        yield found


def content(url: str) -> dict[str, bytes]:
    return {name: remote.read_object(f"{url}/{name}") for name in sorted(remote.objects_below(url))}


def local(store: Path) -> dict[str, bytes]:
    return {str(path.relative_to(store)): path.read_bytes() for path in sorted(store.rglob("*")) if path.is_file()}


def bits(model) -> bytes:
    return model.weights.tobytes()


def test_a_store_is_written_with_the_same_bytes_as_on_a_disk(text, bucket):
    report = streamcut.convert(text, f"{bucket}/a.zarr", **SHARDS)
    expected = local(text.with_name("t.zarr"))
    assert content(f"{bucket}/a.zarr") == expected
    assert report.bytes_out == sum(map(len, expected.values()))
    assert not remote.objects_below(f"{bucket}/a.zarr.partial")
    assert (
        streamcut.open(f"{bucket}/a.zarr").manifest.fingerprint == streamcut.open(text.with_name("t.zarr")).manifest.fingerprint
    )
    streamcut.convert(f"{bucket}/a.zarr", f"{bucket}/b.zarr", shuffle=3, split=0.7, **SHARDS)
    assert {name.partition("/")[0] for name in remote.objects_below(bucket)} == {"a.zarr", "b.zarr", "b-test.zarr"}


def test_rows_are_appended_to_a_store_behind_a_url(bucket, tmp_path):
    X = np.eye(40)
    for path in (f"{bucket}/c.zarr", tmp_path / "c.zarr"):
        with streamcut.create(path, shard_nnz=10) as out:
            out.append(X, np.arange(40) % 2)
            out.append(1 - X, np.arange(40) % 2)
    assert content(f"{bucket}/c.zarr") == local(tmp_path / "c.zarr")


@pytest.mark.parametrize(
    "point",
    ["remote.put:3", "remote.put:40", "convert.journal:1", "convert.journal:4", "convert.shard_meta:2", "convert.root:1",
     "convert.manifest:1"],
)  # fmt: skip
def test_what_is_interrupted_is_no_store_and_is_taken_up(text, bucket, monkeypatch, point):
    monkeypatch.setenv("STREAMCUT_RETRIES", "0")
    monkeypatch.setenv("STREAMCUT_FAILPOINT", f"{point}:EIO")
    with pytest.raises((OSError, NotFoundError)):
        streamcut.convert(text, f"{bucket}/a.zarr", **SHARDS)
    monkeypatch.delenv("STREAMCUT_FAILPOINT")
    assert "manifest.json" not in remote.objects_below(f"{bucket}/a.zarr")
    with pytest.raises(IncompleteError, match=r"never finished; run the same .* with resume=True"):
        streamcut.open(f"{bucket}/a.zarr")
    copied = content(bucket)
    streamcut.convert(text, f"{bucket}/a.zarr", resume=True, **SHARDS)
    assert content(f"{bucket}/a.zarr") == local(text.with_name("t.zarr"))
    assert not remote.objects_below(f"{bucket}/a.zarr.partial")
    for name in remote.objects_below(bucket):
        remote.remove_object(f"{bucket}/{name}")
    for name, kept in copied.items():  # and once more from the same leftovers, anew
        remote.write_object(f"{bucket}/{name}", kept)
    streamcut.convert(text, f"{bucket}/a.zarr", **SHARDS)
    assert content(f"{bucket}/a.zarr") == local(text.with_name("t.zarr"))


def test_resuming_writes_only_what_is_missing(text, bucket, monkeypatch):
    monkeypatch.setenv("STREAMCUT_FAILPOINT", "convert.journal:4:EIO")
    with pytest.raises(OSError, match="Input/output"):
        streamcut.convert(text, f"{bucket}/a.zarr", **SHARDS)
    monkeypatch.delenv("STREAMCUT_FAILPOINT")
    written = []
    put = remote.write_object
    monkeypatch.setattr("streamcut.io.stores.remote_writer.write_object", lambda url, _: written.append(url) or put(url, _))
    report = streamcut.convert(text, f"{bucket}/a.zarr", resume=True, **SHARDS)
    assert report.resumed_rows > 0
    assert not [url for url in written if "shards/000000/data" in url]
    assert [url for url in written if "shards/000004/data" in url]
    with pytest.raises(UsageError, match=r"begun differently|made from other data"):
        streamcut.convert(text, f"{bucket}/a.zarr", resume=True, **{**SHARDS, "shard_nnz": 900})


@pytest.mark.thirds
@pytest.mark.parametrize("point", ["convert.journal:2", "convert.rename:1", "convert.manifest:1"])
def test_force_replaces_a_store_once_the_new_one_is_complete(text, bucket, monkeypatch, point):
    with streamcut.create(f"{bucket}/a.zarr", shard_nnz=10) as out:
        out.append(np.eye(300), np.arange(300) % 2)
    before = content(f"{bucket}/a.zarr")
    with pytest.raises(UsageError, match="exists; choose another name, or replace it with force=True"):
        streamcut.convert(text, f"{bucket}/a.zarr", **SHARDS)
    monkeypatch.setenv("STREAMCUT_FAILPOINT", f"{point}:EIO")
    with pytest.raises(OSError, match="Input/output"):
        streamcut.convert(text, f"{bucket}/a.zarr", force=True, **SHARDS)
    monkeypatch.delenv("STREAMCUT_FAILPOINT")
    if point == "convert.manifest:1":  # the old one is gone, the new one is not there yet
        with pytest.raises(IncompleteError):
            streamcut.open(f"{bucket}/a.zarr")
        streamcut.convert(text, f"{bucket}/a.zarr", resume=True, **SHARDS)
    else:
        assert content(f"{bucket}/a.zarr") == before
        streamcut.convert(text, f"{bucket}/a.zarr", force=True, **SHARDS)
    assert content(f"{bucket}/a.zarr") == local(text.with_name("t.zarr"))
    assert not remote.objects_below(f"{bucket}/a.zarr.partial")


@pytest.mark.parametrize("name", ["a.zarr/notes.txt", "a.zarr.partial/notes.txt", "a.zarr/shards/000000/data/c.0"])
def test_what_is_not_ours_stays(text, bucket, name):
    remote.write_object(f"{bucket}/{name}", b"mine")
    for options in ({}, {"force": True}, {"resume": True}):
        with pytest.raises(UsageError, match=r"not written by|no journal that lists them"):
            streamcut.convert(text, f"{bucket}/a.zarr", **options, **SHARDS)
    assert content(bucket) == {name: b"mine"}


def test_bad_rows_leave_nothing(text, bucket, tmp_path):
    (tmp_path / "bad.svm").write_text("1 1:1\nrubbish\n")
    with pytest.raises(streamcut.errors.BadInputError):
        streamcut.convert(tmp_path / "bad.svm", f"{bucket}/a.zarr")
    assert remote.objects_below(bucket) == {}


def test_of_two_that_write_one_store_the_first_gives_way(text, bucket, monkeypatch):
    finish = RemoteWriter.finish

    def another_begins(self):
        finish(self)
        with contextlib.ExitStack() as stack:
            remote_build.RemoteBuild(f"{bucket}/a.zarr").open(stack, {}, resume=False, force=False)

    monkeypatch.setattr(RemoteWriter, "finish", another_begins)
    with pytest.raises(LockedError, match="written by another process"):
        streamcut.convert(text, f"{bucket}/a.zarr", **SHARDS)
    assert "manifest.json" not in remote.objects_below(f"{bucket}/a.zarr")


def test_shards_go_on_their_way_while_an_earlier_one_has_not_arrived(text, bucket, monkeypatch):
    """One thread encodes them, and no line of the journal comes before those of earlier ones."""
    put, arrive, lines = remote.write_object, threading.Event(), []

    def late(url: str, content: bytes) -> None:
        if "shards/000000/data/c.0" in url:
            assert arrive.wait(60)
        if "shards/000004/data/c.0" in url:
            lines.extend(remote.objects_below(f"{bucket}/a.zarr.partial/journal"))
            arrive.set()
        put(url, content)

    monkeypatch.setattr("streamcut.io.stores.remote_writer.write_object", late)
    streamcut.convert(text, f"{bucket}/a.zarr", **SHARDS)
    assert lines == ["000000"]  # what was begun
    assert content(f"{bucket}/a.zarr") == local(text.with_name("t.zarr"))


def test_an_upload_that_fails_ends_the_journal(text, bucket, monkeypatch):
    put = remote.write_object

    def failing(url: str, content: bytes) -> None:
        if "shards/000002/y/c.0" in url:
            raise NotFoundError(f"{url}: cannot be written")
        put(url, content)

    monkeypatch.setattr("streamcut.io.stores.remote_writer.write_object", failing)
    with pytest.raises(NotFoundError, match=r"000002/y/c\.0: cannot be written"):
        streamcut.convert(text, f"{bucket}/a.zarr", **SHARDS)
    assert list(remote.objects_below(f"{bucket}/a.zarr.partial/journal")) == ["000000", "000001", "000002"]
    monkeypatch.undo()
    assert streamcut.convert(text, f"{bucket}/a.zarr", resume=True, **SHARDS).resumed_rows > 0
    assert content(f"{bucket}/a.zarr") == local(text.with_name("t.zarr"))


def test_uploads_keep_to_their_memory(bucket, monkeypatch):
    monkeypatch.setattr("streamcut.io.stores.remote_writer.UPLOAD_BYTES", 1000)
    writer, most = RemoteWriter(f"{bucket}/a.zarr"), []
    put = remote.write_object
    monkeypatch.setattr("streamcut.io.stores.remote_writer.write_object", lambda *put_: most.append(writer._held) or put(*put_))
    for k in range(50):
        writer._upload(f"{k}", bytes(2000 if k == 20 else 300))
    writer.close()
    assert max(held for held in most) == 2000
    assert sorted(most)[-2] <= 1000
    assert writer_bytes(1000, 2, remote=True) - writer_bytes(1000, 2) == UPLOAD_HELD >= UPLOAD_BYTES


def test_every_command_reads_and_writes_urls(text, bucket, run, tmp_path):
    store, model = f"{bucket}/t.zarr", f"{bucket}/models/m.npz"
    line = ("--solver", "ocas", "--C", "1", "--max-passes", "8", "--set", "lanes=2", "--tol", "1e-9", "--quiet")
    for arguments in [
        ("convert", text, store, "--quiet"),
        ("train", store, "--output", model, *line),
        ("calibrate", model, store, "-o", f"{bucket}/c.npz"),
        ("predict", f"{bucket}/c.npz", store, "--answer", "probabilities", "-o", f"{bucket}/p.csv"),
        ("evaluate", model, store),
        ("verify", model),
        ("info", model),
        ("info", store),
        ("export", model, f"{bucket}/m.json"),
        ("report", model, "-o", f"{bucket}/m.html", "--quiet"),
        ("convert", text, f"{bucket}/again.zarr", "--recipe", model, "--quiet"),
    ]:
        code, _, said = run(*arguments)
        assert code == 0, (arguments, said)
    train_local = streamcut.train(text.with_name("t.zarr"), **OPTIONS)
    assert bits(streamcut.load_model(model)) == bits(train_local)
    assert remote.read_object(f"{bucket}/p.csv").count(b"\n") == 401
    assert remote.read_object(f"{bucket}/m.html").startswith(b"<!doctype html>")
    assert json.loads(remote.read_object(f"{bucket}/m.json"))
    code, _, said = run("train", store, "--output", model, *line)
    assert (code, "replace it with --force" in said) == (2, True)
    code, _, said = run("predict", model, store, "-o", f"{store}/p.txt")
    assert (code, "lies in the store" in said) == (2, True)
    assert run("predict", f"{bucket}/nothing.npz", store)[0] == 4


def test_a_model_whose_url_fails_is_kept_here(text, bucket, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STREAMCUT_RETRIES", "1")
    monkeypatch.setenv("STREAMCUT_FAILPOINT", "remote.put:1:EIO,remote.put:2:EIO")
    code, _, said = run("train", text.with_name("t.zarr"), "--output", f"{bucket}/m.npz", "--max-passes", "3", "--quiet")
    assert code == 4
    assert "m.npz could not be written: the model is in m.1.npz" in said
    assert streamcut.load_model("m.1.npz").task == "binary"


def test_checkpoints_behind_a_url_go_on_to_the_same_bits(text, bucket, monkeypatch, caplog):
    store, place = text.with_name("t.zarr"), f"{bucket}/run"
    expected = bits(streamcut.train(store, **OPTIONS))
    streamcut.train(store, **{**OPTIONS, "max_passes": 3}, checkpoint=CheckpointOptions(place, every=0.0))
    assert set(content(place)) == {"even.checkpoint", "odd.checkpoint"}
    with pytest.raises(UsageError, match="holds checkpoints of a run"):
        streamcut.train(store, **OPTIONS, checkpoint=place)
    before = content(place)
    monkeypatch.setenv("STREAMCUT_RETRIES", "0")
    monkeypatch.setenv("STREAMCUT_FAILPOINT", ",".join(f"remote.put:{k}:EIO" for k in range(1, 20)))
    goes_on = CheckpointOptions(place, every=0.0, resume=True)
    assert bits(streamcut.train(store, **OPTIONS, checkpoint=goes_on)) == expected
    assert "no checkpoint: memory://bucket/run" in caplog.text
    assert content(place) == before  # a failed upload takes nothing away
    monkeypatch.delenv("STREAMCUT_FAILPOINT")
    assert bits(streamcut.train(store, **OPTIONS, checkpoint=goes_on)) == expected


def test_a_checkpoint_behind_a_url_is_fetched_in_pieces(bucket, monkeypatch):
    """From the first whole one on; a disk that is full is not tried again."""
    written = os.urandom(24 << 20)
    remote.write_object(f"{bucket}/run/even.checkpoint", written)
    with ExitStack() as stack:
        place = checkpoint_place(f"{bucket}/run")
        place.enter(stack)
        tracemalloc.start()
        try:
            [(name, path)] = place.found()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert name == f"{bucket}/run/even.checkpoint"
        assert path.read_bytes() == written
        assert peak < len(written) / 2  # fsspec takes a few megabytes at a time
        full = OSError(errno.ENOSPC, "No space left on device")
        calls = []

        def get_file(*given):
            calls.append(given)
            raise full

        monkeypatch.setattr(type(fsspec.filesystem("memory")), "get_file", get_file)
        with pytest.raises(DiskFullError, match="No space left on device"):
            list(place.found())
        assert len(calls) == 1


def test_checkpoints_of_a_run_that_is_done_are_removed(text, bucket, run):
    line = ("--output", f"{bucket}/m.npz", "--checkpoint", f"{bucket}/run", "--checkpoint-every", "0s", "--quiet")
    assert run("train", text.with_name("t.zarr"), *line, "--tol-relative", "0.1")[0] == 0
    assert set(remote.objects_below(bucket)) == {"m.npz"}


@pytest.mark.thirds
@pytest.mark.parametrize("trouble", [500, 503, "short"])
def test_uploads_that_fail_are_repeated(text, server, trouble):
    server.spoil("PUT", [None, trouble, None, None, trouble, trouble])
    streamcut.convert(text, "s3://bucket/a.zarr", **SHARDS)
    assert server.troubles == []
    assert content("s3://bucket/a.zarr") == local(text.with_name("t.zarr"))


@pytest.mark.thirds
@pytest.mark.parametrize("trouble", [500, "cut", "slow"])
def test_text_from_a_server_that_fails_is_asked_for_again(text, server, trouble, monkeypatch):
    monkeypatch.setattr("streamcut.io.text.remote_bytes._PIECE", 5000)
    remote.write_object("s3://bucket/t.svm", text.read_bytes())
    server.spoil("GET", [trouble, None, trouble])
    streamcut.convert("s3://bucket/t.svm", "s3://bucket/a.zarr", **SHARDS)
    assert server.troubles == []
    found, expected = (streamcut.open(path).manifest for path in ("s3://bucket/a.zarr", text.with_name("t.zarr")))
    assert found.fingerprint == expected.fingerprint
    assert found.source["made_from"]["inputs"] == [["s3://bucket/t.svm", len(text.read_bytes())]]


def test_nothing_says_the_secret(text, server, run, tmp_path, caplog):
    caplog.set_level(1)
    line = ("--max-passes", "3", "--checkpoint", "s3://bucket/run", "--checkpoint-every", "0s")
    assert run("convert", text, "s3://bucket/a.zarr")[0] == 0
    code, out, said = run("train", "s3://bucket/a.zarr", "--output", "s3://bucket/m.npz", *line, "--tol", "1e-12", "-v")
    assert code == 0, said
    server.spoil("GET", [500] * 6)
    code, _, failed = run("evaluate", "s3://bucket/m.npz", "s3://bucket/a.zarr")
    assert code == 4
    server.spoil("GET", [])
    everything = content("s3://bucket")
    assert {"m.npz", "run/even.checkpoint", "a.zarr/manifest.json"} <= set(everything)
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("streamcut")]
    for shown in (*everything.values(), *(text.encode() for text in (out, said, failed, *ours))):
        assert SECRET.encode() not in shown
        assert server.url.encode() not in shown


def test_killed_in_the_middle_it_is_taken_up(text, server):
    url = "s3://bucket/a.zarr"
    command = [*STREAMCUT, "convert", str(text), url, "--shard-nnz", "700", "--workers", "1", "--quiet"]
    environment = {**os.environ, "STREAMCUT_FAILPOINT": "remote.put:45:kill"}
    killed = subprocess.run(command, env=environment, capture_output=True, timeout=100)
    assert killed.returncode == -signal.SIGKILL
    assert 0 < len(remote.objects_below(url)) < len(local(text.with_name("t.zarr")))
    with pytest.raises(IncompleteError):
        streamcut.open(url)
    report = streamcut.convert(text, url, resume=True, **SHARDS)
    assert report.resumed_rows > 0
    assert content(url) == local(text.with_name("t.zarr"))
    assert not remote.objects_below(f"{url}.partial")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("https://me:pass@word@host/a.csv", "https://***@host/a.csv"),
        ("abfss://box@account.net/a", "abfss://box@account.net/a"),
        ("s3://b/k@2:3/x", "s3://b/k@2:3/x"),
        ("https://h/a?X-Amz-Signature=abc&page=2&sig=d%3D", "https://h/a?X-Amz-Signature=***&page=2&sig=***"),
        ("no url: a:b@c", "no url: a:b@c"),
    ],
)
def test_urls_are_shown_without_their_secrets(given, shown):
    assert redacted(given) == shown
    assert str(NotFoundError(f"{given} is missing")) == f"{shown} is missing"
    assert str(UsageError(f"{given} is missing")) == f"{shown} is missing"
