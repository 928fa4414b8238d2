"""Writing to object storage: stores, models, checkpoints, predictions; what is interrupted, refused, and never shown."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import kit.shared.remote_writing
import numpy as np
import pytest
from kit.object_stores import SECRET, s3_server
from kit.shared.remote_writing import SHARDS

import streamcut
from streamcut import CheckpointOptions
from streamcut.errors import IncompleteError, LockedError, NotFoundError, UsageError
from streamcut.io.places import remote

text = kit.shared.remote_writing.text

STREAMCUT = [sys.executable, "-P", "-c", "from streamcut.cli import main; main()"]
OPTIONS = {"C": 1.0, "max_passes": 8, "tol": 1e-9, "tol_relative": None, "lanes": 2, "solver": "ocas"}


@pytest.fixture
def bucket(monkeypatch):
    """memory://bucket, empty."""
    monkeypatch.setattr(remote, "_PAUSE", 0.001)
    monkeypatch.delenv("STREAMCUT_FAILPOINT", raising=False)
    remote._store.cache_clear()
    return "memory://bucket"


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
    assert (
        streamcut.open(f"{bucket}/a.zarr").manifest.fingerprint == streamcut.open(text.with_name("t.zarr")).manifest.fingerprint
    )
    streamcut.convert(f"{bucket}/a.zarr", f"{bucket}/b.zarr", shuffle=3, split=0.7, **SHARDS)
    assert {name.partition("/")[0] for name in remote.objects_below(bucket)} == {"a.zarr", "b.zarr", "b-test.zarr"}


@pytest.mark.parametrize(
    "point",
    ["remote.put:3", "remote.put:40", "convert.journal:1", "convert.journal:4", "convert.manifest:1"],
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
    for name in remote.objects_below(bucket):
        remote.remove_object(f"{bucket}/{name}")
    for name, kept in copied.items():  # and once more from the same leftovers, anew
        remote.write_object(f"{bucket}/{name}", kept)
    streamcut.convert(text, f"{bucket}/a.zarr", **SHARDS)
    assert content(f"{bucket}/a.zarr") == local(text.with_name("t.zarr"))


@pytest.mark.parametrize("name", ["a.zarr/notes.txt", "a.zarr/journal/000001", "a.zarr/shards/000000/data/c.0"])
def test_what_is_not_ours_stays(text, bucket, name):
    remote.write_object(f"{bucket}/{name}", b"mine")
    for options in ({}, {"force": True}, {"resume": True}):
        with pytest.raises(UsageError, match="not written by"):
            streamcut.convert(text, f"{bucket}/a.zarr", **options, **SHARDS)
    assert content(bucket) == {name: b"mine"}


def test_of_two_that_write_one_store_the_first_gives_way(bucket):
    out = streamcut.create(f"{bucket}/a.zarr", shard_nnz=10).__enter__()
    out.append(np.eye(300), np.arange(300) % 2)
    with streamcut.create(f"{bucket}/a.zarr", shard_nnz=10) as other:
        other.append(np.eye(60), np.arange(60) % 2)
    with pytest.raises(LockedError, match="written by another process"):
        out.__exit__(None)
    assert streamcut.open(f"{bucket}/a.zarr").manifest.statistics.n_rows == 60


def test_every_command_reads_and_writes_urls(text, bucket, run, tmp_path):
    store, model = f"{bucket}/t.zarr", f"{bucket}/models/m.npz"
    line = ("--solver", "ocas", "--C", "1", "--max-passes", "8", "--set", "lanes=2", "--tol", "1e-9", "--quiet")
    for arguments in [
        ("convert", text, store, "--quiet"),
        ("train", store, "-o", model, *line),
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
    code, _, said = run("train", store, "-o", model, *line)
    assert (code, "replace it with --force" in said) == (2, True)
    code, _, said = run("predict", model, store, "-o", f"{store}/p.txt")
    assert (code, "lies in the store" in said) == (2, True)
    assert run("predict", f"{bucket}/nothing.npz", store)[0] == 4


def test_a_model_whose_url_fails_is_kept_here(text, bucket, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STREAMCUT_RETRIES", "1")
    monkeypatch.setenv("STREAMCUT_FAILPOINT", "remote.put:1:EIO,remote.put:2:EIO")
    code, _, said = run("train", text.with_name("t.zarr"), "-o", f"{bucket}/m.npz", "--max-passes", "3", "--quiet")
    assert code == 4
    assert "m.npz could not be written: the model is in m.1.npz" in said
    assert streamcut.load_model("m.1.npz").task == "binary"


def test_checkpoints_behind_a_url_go_on_to_the_same_bits(text, bucket, monkeypatch, caplog):
    store, place = text.with_name("t.zarr"), f"{bucket}/run"
    expected = bits(streamcut.train(store, **OPTIONS))
    streamcut.train(store, **{**OPTIONS, "max_passes": 3}, checkpoint=CheckpointOptions(place, every=0.0))
    assert set(content(place)) == {"state.checkpoint"}
    with pytest.raises(UsageError, match="holds the checkpoint of a run"):
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


@pytest.mark.parametrize("trouble", [503, "short"])
def test_uploads_that_fail_are_repeated(text, server, trouble):
    server.spoil("PUT", [None, trouble, None, None, trouble, trouble])
    streamcut.convert(text, "s3://bucket/a.zarr", **SHARDS)
    assert server.troubles == []
    assert content("s3://bucket/a.zarr") == local(text.with_name("t.zarr"))


def test_nothing_says_the_secret(text, server, run, tmp_path, caplog):
    caplog.set_level(1)
    line = ("--max-passes", "3", "--checkpoint", "s3://bucket/run", "--checkpoint-every", "0s")
    assert run("convert", text, "s3://bucket/a.zarr")[0] == 0
    code, out, said = run("train", "s3://bucket/a.zarr", "-o", "s3://bucket/m.npz", *line, "--tol", "1e-12", "-v")
    assert code == 0, said
    server.spoil("GET", [500] * 6)
    code, _, failed = run("evaluate", "s3://bucket/m.npz", "s3://bucket/a.zarr")
    assert code == 4
    server.spoil("GET", [])
    everything = content("s3://bucket")
    assert {"m.npz", "run/state.checkpoint", "a.zarr/manifest.json"} <= set(everything)
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
