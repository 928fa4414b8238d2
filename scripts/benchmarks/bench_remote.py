"""How fast a store is read from S3 next to a plain parallel download of the same objects, and what a cache leaves to ask for.

Interleaved in one run, medians by the clock: all chunks fetched by 16 threads and thrown away, by signed URLs and urllib3, by
s3fs, and, where they are installed, by obstore alone and behind Zarr's own store interface (zarr.storage.ObjectStore), and by
pyarrow's S3FileSystem; all shards fetched and checked as a pass does, by streamcut's own client and without it by s3fs, and
decoded, too. Asked: what is fetched and checked at 80 % of the faster one of the first two or more. The server is that of
scripts/tools/s3_server.py, on this machine, whose processors it shares with us; so the seconds of processor time that each way
takes here are shown, which on a machine of its own would not keep the line waiting. Then two passes with a cache on this disk,
and the requests that the server answers in the second: none.
Usage: python scripts/benchmarks/bench_remote.py [--size 400MB] [--repeats 5]
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import urllib3

import streamcut
from streamcut.foundation.units import format_bytes, parse_size
from streamcut.io.places.remote import file_system, objects_below
from streamcut.io.stores.chunk_cache import ChunkCache
from streamcut.io.stores.remote_store import RemoteStore
from streamcut.io.stores.zarr_layout import chunk_name

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from s3_server import s3_server

FEATURES, NNZ = 100_000, 80
ROWS = 20_000  # of a block


def make_store(url: str, size: int) -> None:
    """A store of about `size` bytes at `url`."""
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    with streamcut.create(url, FEATURES, force=True) as out:
        for _ in range(max(1, size // (ROWS * NNZ * 7))):
            indices = np.sort(rng.integers(0, FEATURES, (ROWS, NNZ)), axis=1)
            indices = np.minimum(np.maximum.accumulate(indices + np.arange(NNZ), axis=1), FEATURES - NNZ + np.arange(NNZ))
            values = rng.random(ROWS * NNZ, dtype=np.float32)
            X = sp.csr_matrix((values, indices.ravel(), np.arange(ROWS + 1) * NNZ), shape=(ROWS, FEATURES))
            X.sum_duplicates()
            out.append(X, rng.integers(0, 2, ROWS) * 2 - 1)


def seconds(call: Callable[[], object]) -> tuple[float, float]:
    """(by the clock, of processor time in this process)."""
    began, worked = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - began, time.process_time() - worked


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="400MB")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with s3_server() as server, tempfile.TemporaryDirectory() as folder:
        url = f"{server.bucket}/bench.zarr"
        make_store(url, parse_size(options.size, option="--size"))
        files, root = file_system(url)
        chunks = {name: size for name, size in objects_below(url).items() if name.endswith("/c.0")}
        total = sum(chunks.values())

        signed = [files.url(f"{root}/{name}", expires=3600) for name in chunks]
        web = urllib3.PoolManager(maxsize=16)

        def fetched(call: Callable[[str], bytes], names: Iterable[str]) -> None:
            with ThreadPoolExecutor(16) as pool:
                assert sum(pool.map(lambda name: len(call(name)), names)) == total

        def plain() -> None:
            fetched(lambda place: web.request("GET", place).data, signed)

        def by_s3fs() -> None:
            fetched(lambda name: files.cat_file(f"{root}/{name}"), chunks)

        others: dict[str, Callable[[], object]] = {}
        place = os.environ["AWS_ENDPOINT_URL"]
        if importlib.util.find_spec("obstore"):
            import obstore
            from obstore.store import S3Store
            from zarr.core.buffer import default_buffer_prototype
            from zarr.storage import ObjectStore

            bucket, _, prefix = root.partition("/")
            rust = S3Store(
                bucket, prefix=prefix, endpoint=place, client_options={"allow_http": True}, virtual_hosted_style_request=False
            )
            behind, buffers = ObjectStore(rust, read_only=True), default_buffer_prototype()
            others["download by obstore"] = lambda: fetched(lambda name: obstore.get(rust, name).bytes(), chunks)

            async def by_zarr() -> None:
                free, found = asyncio.Semaphore(16), 0

                async def one(name: str) -> int:
                    async with free:
                        return len((await behind.get(name, buffers)).to_bytes())

                found = sum(await asyncio.gather(*(one(name) for name in chunks)))
                assert found == total

            others["obstore behind Zarr"] = lambda: asyncio.run(by_zarr())
        import pyarrow.fs

        arrow = pyarrow.fs.S3FileSystem(endpoint_override=place)
        others["download by pyarrow"] = lambda: fetched(lambda name: arrow.open_input_file(f"{root}/{name}").read(), chunks)

        def ask(store: RemoteStore) -> None:
            count, nothing = len(store.manifest.shards), np.empty(0, np.uint8)
            for shard in range(count):
                store.expect(*range(shard, count))
                there = {file for file, _ in store.files(shard)}
                for name in store.manifest.shards[shard].arrays:
                    if chunk_name(shard, name) in there:
                        store.content(shard, name, nothing)

        def read(store: RemoteStore) -> None:
            count, buffers = len(store.manifest.shards), store.buffers()
            for shard in range(count):
                store.expect(*range(shard, count))
                store.read(shard, buffers)

        there, without = RemoteStore(url), RemoteStore(url)
        without._direct = None
        calls = {
            "plain download": plain,
            "download by s3fs": by_s3fs,
            **others,
            "fetched and checked": lambda: ask(there),
            "the same by s3fs": lambda: ask(without),
            "and decoded": lambda: read(there),
        }
        took: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
        for _ in range(options.repeats):
            for name, call in calls.items():
                took[name].append(seconds(call))
        medians = {name: np.median(each, axis=0) for name, each in took.items()}
        fastest = min(medians[name][0] for name in ("plain download", "download by s3fs"))
        print(f"{server.name}: {format_bytes(total)} in {len(chunks)} chunks, medians of {options.repeats}")
        print(f"{'':24}{'MB/s':>8}{'of the faster download':>26}{'processor s a GB':>20}")
        for name, (clock, worked) in medians.items():
            print(f"{name:24}{total / clock / 1e6:8.0f}{100 * fastest / clock:24.0f} %{1e9 * worked / total:20.2f}")
        part = fastest / medians["fetched and checked"][0]
        print(f"fetched and checked: {100 * part:.0f} % of the faster download (asked: 80 %)")
        store = RemoteStore(url, ChunkCache(folder))
        asked = [server.requests()]
        passes = []
        for _ in range(2):
            passes.append(seconds(lambda: read(store))[0])
            asked.append(server.requests())
        print(f"with --cache-dir: first pass {passes[0]:.2f} s, second {passes[1]:.2f} s", end="")
        if None in asked:
            print("; this server does not say how many requests it had")
            return 1
        between = [after - before for before, after in pairwise(asked)]
        print(f"; requests at the server {between[0]} and {between[1]} (asked: none)")
        return 0 if between[0] >= len(chunks) and between[1] == 0 and part >= 0.8 else 1


if __name__ == "__main__":
    raise SystemExit(main())
