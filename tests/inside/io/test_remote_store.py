"""Stores behind URLs: a real S3 server, errors and lines that break, and a cache that makes the second pass local."""

from __future__ import annotations

import json
import os
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from kit.object_stores import SECRET, s3_server, write_rows

import streamcut
from streamcut.errors import CorruptError, NotFoundError
from streamcut.io.places import remote
from streamcut.io.stores.remote_store import RemoteStore
from streamcut.io.stores.verify import verify_store


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    """A store of nine shards."""
    folder = tmp_path_factory.mktemp("remote")
    write_rows(folder / "a.svm", 900)
    streamcut.convert(folder / "a.svm", folder / "a.zarr", shard_nnz=900)
    assert len(streamcut.open(folder / "a.zarr").manifest.shards) >= 9
    return folder / "a.zarr"


@pytest.fixture
def server(store, monkeypatch):
    """An S3 server with that store at URL; `asked` holds the requests since."""
    monkeypatch.setattr(remote, "_PAUSE", 0.001)
    with s3_server(monkeypatch) as found:
        for path in (path for path in store.rglob("*") if path.is_file()):
            remote.write_object(f"{URL}/{path.relative_to(store).as_posix()}", path.read_bytes())
        found.asked.clear()
        yield found


def chunks_asked(server) -> list[str]:
    return [path for _, path in server.asked if path.endswith("/c.0")]


URL = "s3://bucket/a.zarr"
OPTIONS = {"C": 1.0, "max_passes": 4, "tol": 1e-9, "tol_relative": None, "lanes": 2, "memory": "4GB", "solver": "ocas"}


def bits(model) -> bytes:
    return model.weights.tobytes()


def test_the_same_bits_as_from_a_disk(store):
    """By http://, where nothing can be listed."""
    handler = partial(SimpleHTTPRequestHandler, directory=store.parent)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        root = f"http://127.0.0.1:{server.server_address[1]}"
        model = streamcut.train(store, **OPTIONS)
        assert bits(streamcut.train(f"{root}/a.zarr", **OPTIONS)) == bits(model)
        np.testing.assert_array_equal(streamcut.predict(model, f"{root}/a.zarr"), streamcut.predict(model, store))
        assert streamcut.open(f"{root}/a.zarr").recipe == streamcut.open(store).recipe
        assert verify_store(f"{root}/a.zarr", read_data=True).sound
        for path in ("nothing.zarr", "a.svm"):
            with pytest.raises(NotFoundError, match="not a streamcut store"):
                streamcut.open(f"{root}/{path}")
        server.shutdown()


def test_what_fails_for_ever_is_an_error_that_names_the_chunk(server):
    data = streamcut.open(URL)
    server.spoil("GET", [500] * 10_000)
    with pytest.raises(NotFoundError, match=r"a\.zarr/shards/\d+/\w+/c\.0: cannot be read .* after 5 retries"):
        data.read(0)
    server.spoil("GET", ["flip"] * 10_000)
    with pytest.raises(CorruptError, match=r"c\.0: does not have the checksum"):
        data.read(0)


def test_with_a_cache_the_second_run_asks_for_no_chunk(store, server, tmp_path, monkeypatch):
    monkeypatch.setenv("STREAMCUT_CACHE_DIR", str(tmp_path / "cache"))
    expected = bits(streamcut.train(store, **OPTIONS))
    assert bits(streamcut.train(URL, **OPTIONS)) == expected
    chunks = len(set(chunks_asked(server)))  # lanes that meet in a shard may both ask for it
    server.asked.clear()
    assert bits(streamcut.train(URL, **OPTIONS)) == expected
    assert chunks_asked(server) == []
    for place in (tmp_path / "cache").rglob("shards*indices*"):  # a disk that rots
        content = bytearray(place.read_bytes())
        content[5] ^= 4
        place.write_bytes(content)
    assert bits(streamcut.train(URL, **OPTIONS)) == expected
    assert 0 < len(chunks_asked(server)) < chunks


def test_a_cache_keeps_to_its_size(store, server, tmp_path, monkeypatch):
    monkeypatch.setenv("STREAMCUT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("STREAMCUT_CACHE_SIZE", "20kB")
    for _ in range(2):
        assert bits(streamcut.train(URL, **OPTIONS)) == bits(streamcut.train(store, **OPTIONS))
        used = sum(each.stat().st_size for each in (tmp_path / "cache").rglob("*") if each.is_file())
        assert 10_000 < used <= 20_000 + 200


def test_an_s3_server(store, server, run, tmp_path):
    there = RemoteStore(URL)
    for shard in range(len(there.manifest.shards)):
        there.expect(shard)
        there.read(shard)
    chunks = [(method, path) for method, path in server.asked if path.endswith("/c.0")]
    assert {method for method, _ in chunks} == {"GET"}  # one request for each, and none for how long it is
    assert len(chunks) == len(set(chunks)) == sum(1 for _ in store.rglob("c.0"))
    line = ("--solver", "ocas", "--C", "1", "--max-passes", "4", "--set", "lanes=2", "--output", tmp_path / "m.npz", "--json")
    code, out, err = run("train", URL, *line)
    assert code == 0, err
    assert json.loads(out.splitlines()[-1])["event"] == "result"
    local = streamcut.train(store, solver="ocas", C=1.0, max_passes=4, lanes=2)
    assert bits(streamcut.load_model(tmp_path / "m.npz")) == bits(local)
    model = (tmp_path / "m.npz").read_bytes()
    for secret in (os.environ["AWS_ACCESS_KEY_ID"], SECRET, server.url):
        assert secret.encode() not in model
