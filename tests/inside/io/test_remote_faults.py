"""Servers that stall, and what is wrong with URLs: requests end, stops are obeyed, mistakes are told before any work."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest
from kit.object_stores import s3_server, write_rows

import streamcut
from streamcut import load_model
from streamcut.errors import NotFoundError, UsageError
from streamcut.execution.runner import Interrupted
from streamcut.foundation.interrupts import GivenUp, waits_end_by
from streamcut.io.places import answers, remote
from streamcut.io.places.direct import direct

STREAMCUT = [sys.executable, "-P", "-c", "from streamcut.cli import main; main()"]
URL = "s3://bucket/a.zarr"
OPTIONS = {"solver": "ocas", "max_passes": 4, "tol": 1e-9, "tol_relative": None, "lanes": 2, "memory": "4GB"}
NOWHERE = b"<?xml version='1.0'?><Error><Code>%s</Code><Message>not here</Message>%s</Error>"


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults")
    write_rows(folder / "a.svm", 900)
    return folder / "a.svm"


@pytest.fixture
def server(monkeypatch, text):
    """An S3 server with the store URL of five shards."""
    monkeypatch.setattr(remote, "_PAUSE", 0.001)
    monkeypatch.delenv("STREAMCUT_TIMEOUT", raising=False)
    with s3_server(monkeypatch) as found:
        streamcut.convert(text, URL, shard_nnz=2000)
        found.asked.clear()
        yield found


# Row 56: commands on URLs of sound stores


def test_56_check_verify_info_and_report_take_urls_of_sound_stores(server, run, tmp_path):
    model = "s3://bucket/m.npz"
    for command in (
        ("train", URL, "--output", model, "--max-passes", 2, "-q"),
        ("info", URL, "--check"),
        ("info", URL, "--check", "--read-data"),
        ("info", URL),
        ("info", model, "--json"),
        ("verify", model),
        ("verify", model, URL),
        ("report", model, "-o", "s3://bucket/m.html", "--data", URL),
        ("evaluate", model, URL),
        ("explain", model, "--top", 1),
    ):
        code, _, err = run(*command)
        assert code == 0, (command, err)
        if command[0] == "check":
            assert f"{URL}: sound: 5 shards, 49 files" in err


def test_56_check_of_a_url_tells_what_it_would_tell_of_a_disk(server, run):
    files = remote.objects_below(URL)
    gone, short, flipped, meta = (
        f"shards/{name}" for name in ("000001/y/c.0", "000002/data/c.0", "000003/data/c.0", "000004/y/zarr.json")
    )
    remote.remove_object(f"{URL}/{gone}")
    remote.write_object(f"{URL}/{short}", remote.read_object(f"{URL}/{short}")[:-1])
    for name in (flipped, meta):
        content = bytearray(remote.read_object(f"{URL}/{name}"))
        content[len(content) // 2] ^= 1
        remote.write_object(f"{URL}/{name}", bytes(content))
    remote.write_object(f"{URL}/notes.txt", b"mine")
    code, out, err = run("info", URL, "--check")
    assert code == 5
    assert f"{gone}: missing" in out
    assert f"{short}: is {files[short] - 1:,} bytes long" in out
    assert f"{meta}: does not have the checksum" in out
    assert flipped not in out  # the content of chunks is for --read-data
    assert "notes.txt: not part of the store" in err
    assert flipped in run("info", URL, "--check", "--read-data")[1]


def test_56_check_reads_the_store_and_not_its_copies_in_a_cache(server, run, tmp_path, monkeypatch):
    monkeypatch.setenv("STREAMCUT_CACHE_DIR", str(tmp_path / "cache"))
    streamcut.train(URL, **OPTIONS)
    chunk = f"{URL}/shards/000001/data/c.0"
    remote.write_object(chunk, bytes(len(remote.read_object(chunk))))
    assert run("info", URL, "--check", "--read-data")[0] == 5


# How often something is asked for


def test_retries_are_a_variable(server, run, monkeypatch):
    remote.write_object("s3://bucket/x.csv", b"label,x\n1,2\n-1,3\n")
    for retries, count in (("0", "1 attempt)"), ("2", "3 attempts")):
        server.spoil("GET", [500] * 9)
        monkeypatch.setenv("STREAMCUT_RETRIES", retries)
        code, _, err = run("convert", "s3://bucket/x.csv", "s3://bucket/never.zarr")
        assert code == 4, err
        assert f"after {count}".rstrip(")") in err.replace("\n", " ")
        assert len(server.troubles) == 9 - int(count[0])
    for wrong in ("-1", "21", "many", "²", ""):
        monkeypatch.setenv("STREAMCUT_RETRIES", wrong)
        with pytest.raises(UsageError, match="is not a number from 0 to 20"):
            remote.size_of("s3://bucket/x.csv")


# Bodies by signed URLs


def test_chunks_come_by_signed_urls_and_what_fails_by_the_file_system(server, text, tmp_path, monkeypatch, caplog):
    streamcut.convert(text, tmp_path / "a.zarr", shard_nnz=2000)
    expected = streamcut.train(tmp_path / "a.zarr", **OPTIONS).weights.tobytes()
    files, asked = type(remote.file_system(URL)[0]), []
    given = files._cat_file

    async def cat_file(self, path, *arguments, **options):
        asked.append(path)
        return await given(self, path, *arguments, **options)

    monkeypatch.setattr(files, "_cat_file", cat_file)
    with caplog.at_level(logging.DEBUG, "streamcut"):
        for troubles in ([], ["cut", 503, "slow", 500]):
            store = streamcut.open(URL)
            asked.clear()
            server.spoil("GET", [*troubles])
            assert streamcut.train(store, **OPTIONS).weights.tobytes() == expected
            assert server.troubles == []
            assert (len([path for path in asked if path.endswith("c.0")]) > 0) == (len(troubles) > 0)
    assert not any("X-Amz-Signature" in each.getMessage() for each in caplog.records if each.name != "werkzeug")  # the server's
    store = streamcut.open(URL)
    monkeypatch.setattr(type(store._direct), "body", lambda *call: 1 / 0)
    asked.clear()
    assert streamcut.train(store, **OPTIONS).weights.tobytes() == expected
    assert 4 <= store._direct._failed < 4 + 2 * 16, "then the file system alone is asked; others were on their way"


@pytest.mark.parametrize(
    ("url", "settings", "found"),
    [
        ("https://host/a.zarr", {}, True),
        ("https://me:word@host/a.zarr", {}, False),
        ("https://host/a.zarr", {"https_proxy": "http://proxy:1"}, False),
        ("memory://a.zarr", {}, False),
        ("s3://bucket/a.zarr", {}, True),
        ("s3://bucket/a.zarr", {"https_proxy": "http://proxy:1"}, False),
        ("s3://bucket/a.zarr", {"https_proxy": "http://proxy:1", "AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, True),
    ],
)
def test_who_is_asked_directly(url, settings, found, monkeypatch):
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    files, _ = remote.file_system(url)
    assert (direct(files, url, 2) is not None) == found
    if found and url.startswith("s3"):
        payer = type(files)(requester_pays=True, skip_instance_cache=True)
        assert direct(payer, url, 2) is None


def test_with_a_cache_the_second_run_asks_only_whether_the_manifest_is_the_same(server, tmp_path, monkeypatch):
    monkeypatch.setenv("STREAMCUT_CACHE_DIR", str(tmp_path / "cache"))
    expected = streamcut.train(URL, **OPTIONS).weights.tobytes()
    server.asked.clear()
    assert streamcut.train(URL, **OPTIONS).weights.tobytes() == expected
    assert [(method, path.rpartition("/")[2]) for method, path in server.asked] == [("HEAD", "manifest.json")]
    (place,) = (tmp_path / "cache" / "manifests").iterdir()
    place.write_bytes(b"x" * place.stat().st_size)  # a disk that rots
    assert streamcut.train(URL, **OPTIONS).weights.tobytes() == expected
    other = streamcut.open("s3://bucket/a.zarr").manifest.fingerprint
    write_rows(tmp_path / "b.svm", 700)
    streamcut.convert(tmp_path / "b.svm", URL, shard_nnz=2000, force=True)
    again = streamcut.open(URL).manifest
    assert (again.statistics.n_rows, again.fingerprint != other) == (700, True)


# Row 54: bodies that stall


def test_54_what_stalls_is_asked_for_again_and_the_bits_are_the_same(server, text, tmp_path, monkeypatch, caplog):
    streamcut.convert(text, tmp_path / "a.zarr", shard_nnz=2000)
    monkeypatch.setattr(answers, "SAID_AFTER", 0.0)
    monkeypatch.setattr(answers, "_LOOK", 0.01)
    monkeypatch.setenv("STREAMCUT_TIMEOUT", "0.5")
    server.spoil("GET", [None] * 3 + ["stall", None, "stall"])
    with caplog.at_level(logging.WARNING, "streamcut"):
        model = streamcut.train(URL, **OPTIONS)
    assert server.stalled.is_set()
    assert "repeating the request after 0.5 s (STREAMCUT_TIMEOUT)" in caplog.text
    assert model.weights.tobytes() == streamcut.train(tmp_path / "a.zarr", **OPTIONS).weights.tobytes()


@pytest.mark.thirds
@pytest.mark.parametrize("read", [streamcut.open, streamcut.load_model, lambda url: streamcut.convert(url, "never.zarr")])
def test_54_what_stalls_for_ever_is_an_error(server, read, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(answers, "_LOOK", 0.01)
    monkeypatch.setenv("STREAMCUT_RETRIES", "1")
    monkeypatch.setenv("STREAMCUT_TIMEOUT", "0.2")
    url = URL if read is streamcut.open else "s3://bucket/x.csv"
    remote.write_object("s3://bucket/x.csv", b"label,x\n" + b"1,2\n-1,3\n" * 300)
    server.stall = "/"
    with pytest.raises(NotFoundError, match=r"no answer within 0.2 s; .*(STREAMCUT_TIMEOUT|timeout) changes.* after 2 attempts"):
        read(url)


def test_54_who_asks_for_much_at_once_may_wait_longer(monkeypatch):
    class Files:
        protocol = "slow"

        def cat_file(self, path):
            return b"here"

    waited = []
    monkeypatch.setattr(answers, "_wait", lambda answer, limit: waited.append((limit, answer.result())))
    assert answers.ask(Files(), "cat_file", "x", size=20 << 20) == b"here"
    assert waited == [(180.0, b"here")]


def test_the_timeout_is_set_by_a_variable_and_in_python(run, monkeypatch):
    monkeypatch.delenv("STREAMCUT_TIMEOUT", raising=False)
    assert answers.timeout() == 60.0
    streamcut.set_timeout(7)
    assert answers.timeout() == 7
    for wrong in (0, -1, float("nan"), float("inf")):
        with pytest.raises(UsageError, match="above 0"):
            streamcut.set_timeout(wrong)
    assert answers.timeout() == 7
    monkeypatch.setenv("STREAMCUT_TIMEOUT", "soon")
    with pytest.raises(UsageError, match="'soon' is not a number of seconds"):
        answers.timeout()


def test_54_waits_for_a_server_end_when_the_work_is_to_stop(server, monkeypatch):
    monkeypatch.setattr(answers, "_LOOK", 0.01)
    server.stall = "/"
    with waits_end_by(server.stalled.is_set), pytest.raises(GivenUp):
        remote.read_object(f"{URL}/manifest.json")
    with waits_end_by(lambda: True):  # what was trained is written, though
        remote.write_object("s3://bucket/there", b"x")


@contextmanager
def command(*arguments, **more):
    """A process of streamcut that waits an hour for a server."""
    environment = {**os.environ, "STREAMCUT_TIMEOUT": "3600"}
    begin = [*STREAMCUT, *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(begin, **pipes, env=environment, **more)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ended(process, server, number):
    """(exit code, stderr) of a process that gets the signal once it waits for a body that does not come."""
    assert server.stalled.wait(300)
    process.send_signal(number)
    err = process.communicate(timeout=300)[1]
    return process.returncode, err


def test_54_a_signal_ends_a_training_that_a_server_keeps_waiting(server, run, tmp_path):
    keep = ("--checkpoint", tmp_path / "run", "--checkpoint-every", "0s", "--json", "--solver", "ocas", "--tol", "1e-9")
    train = ("train", URL, "--output", tmp_path / "m.npz", *keep, "--tol-relative", 0, "--memory", "4GB", "--set", "lanes=2")
    assert run(*train, "--max-passes", 3)[0] == 0
    server.stall = "/c.0"
    with command(*train, "--max-passes", 500, "--resume", "--force") as process:
        assert ended(process, server, signal.SIGTERM)[0] == 143
    model = load_model(tmp_path / "m.npz")
    assert (model.stop_reason, len(model.history)) == ("interrupted", 3)
    assert len(list((tmp_path / "run").glob("*.checkpoint"))) == 2


@pytest.mark.parametrize("arguments", [("info", URL, "--check", "--read-data"), ("train", URL, "--output", "m.npz")])
def test_54_a_signal_ends_what_has_not_begun(server, tmp_path, arguments):
    server.stall = "/"
    with command(*arguments, cwd=tmp_path) as process:
        code, err = ended(process, server, signal.SIGTERM)
    assert (code, err.splitlines()[-1]) == (143, "streamcut: terminated")


# Row 55: buckets, keys, credentials, regions


@pytest.fixture
def work(monkeypatch):
    """Fails the test if any work begins: rows are parsed, or trained on."""

    def begun(*_, **__):
        raise AssertionError("work has begun")

    monkeypatch.setattr("streamcut.training.Session.__enter__", begun)
    monkeypatch.setattr("streamcut.io.conversion.work.Work.run", begun)


def test_55_what_is_not_there_is_told_before_work_in_its_own_words(server, run, tmp_path, text, work):
    model = tmp_path / "m.npz"
    bucket, object_, store = "there is no bucket 'nosuch'", "no such file", "there is nothing at this address"
    for command_, told in (
        (("train", "s3://nosuch/a.zarr", "--output", model), f"s3://nosuch/a.zarr: {bucket}; check"),
        (("train", "s3://bucket/b.zarr", "--output", model), f"s3://bucket/b.zarr: {store}"),
        (("train", URL, "--output", "s3://nosuch/m.npz"), f"--output: s3://nosuch/m.npz: {bucket}; create it first"),
        (("convert", text, "s3://nosuch/b.zarr"), f"s3://nosuch/b.zarr: {bucket}; create it first"),
        (("convert", "s3://nosuch/a.svm", tmp_path / "b.zarr"), f"s3://nosuch/a.svm: {bucket}"),
        (("convert", "s3://bucket/b.svm", tmp_path / "b.zarr"), f"s3://bucket/b.svm: {store}"),
        (("info", "s3://nosuch/m.npz"), bucket),
        (("verify", "s3://bucket/m.npz"), f"s3://bucket/m.npz: {object_}"),
    ):
        server.asked.clear()
        code, _, err = run(*command_)
        assert (code, told in err) == (4, True), (command_, err)
        assert len(server.asked) < 20
        assert not model.exists()


def test_55_no_credentials_are_told_at_once(server, run, tmp_path, monkeypatch, work):
    import s3fs

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    s3fs.S3FileSystem.clear_instance_cache()
    monkeypatch.setattr(remote, "rest", lambda *_: pytest.fail("asked again"))
    for command_ in (("train", URL, "--output", tmp_path / "m.npz"), ("train", tmp_path, "--output", "s3://bucket/m.npz")):
        code, _, err = run(*command_)
        assert (code, "there are no credentials" in err, "AWS_ACCESS_KEY_ID" in err) == (4, True, True)


@pytest.mark.thirds
@pytest.mark.parametrize(
    ("code", "name", "more", "told"),
    [
        (301, b"PermanentRedirect", b"", "the bucket is in another region"),
        (400, b"AuthorizationHeaderMalformed", b"<Region>eu-north-1</Region>", "the bucket is in the region eu-north-1"),
        (403, b"AccessDenied", b"", "check the credentials"),
        pytest.param(403, b"SignatureDoesNotMatch", b"", "check the credentials", marks=pytest.mark.long),
        (405, b"MethodNotAllowed", b"", "check the URL"),
    ],
)
def test_55_what_cannot_change_is_not_asked_again(server, monkeypatch, code, name, more, told):
    monkeypatch.setattr(remote, "rest", lambda *_: pytest.fail("asked again"))
    server.spoil("GET", [(code, NOWHERE % (name, more))] * 9)
    with pytest.raises(NotFoundError, match=told):
        remote.read_object(f"{URL}/manifest.json", 3)
    server.spoil("PUT", [(code, NOWHERE % (name, more))] * 9)
    with pytest.raises(NotFoundError, match=told):
        remote.write_object("s3://bucket/x", b"x")


def test_55_who_may_not_look_at_a_bucket_may_write_to_it(server, monkeypatch):
    def ask(files, method, *arguments, **more):
        if arguments == ("bucket",):
            raise PermissionError("Forbidden")
        return answers.ask(files, method, *arguments, **more)

    monkeypatch.setattr(remote, "ask", ask)
    remote.expect_bucket("s3://bucket/m.npz")
    remote.write_object("s3://bucket/m.npz", b"x")


def test_54_an_interruptible_pass_is_given_up(server):
    from streamcut.execution.feed import Feed
    from streamcut.execution.lanes import plan_lanes
    from streamcut.execution.passes import Pass
    from streamcut.execution.runner import Runner

    class Count(Pass):
        interruptible = True

        def begin(self):
            return np.zeros(1)

        def visit_chunk(self, partial, rows, chunk):
            partial += chunk.n_rows

    data = streamcut.open(URL)
    server.stall = "/"
    for interruptible, ends in ((True, Interrupted), (False, GivenUp)):
        Count.interruptible = interruptible
        lanes = plan_lanes(data.manifest.statistics, 2)
        with Runner(Feed(data), lanes, 2, stop=server.stalled.is_set) as runner, pytest.raises(ends):
            runner.run(Count())
