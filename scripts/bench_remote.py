"""How fast a store is read from S3 next to a plain parallel download of the same objects, and what a cache leaves to ask for.

Interleaved in one run, medians by the clock: all chunks fetched by 16 threads and thrown away, by signed URLs and urllib3, and by
s3fs, which streamcut reads through; all shards read, checked and decoded. Asked: the last at 80 % of the faster one of the others
or more. Then two passes with a cache on this disk, and the requests that the server answers in the second: none. The server is
that of scripts/s3_server.py, on this machine, whose processors it shares.
Usage: python scripts/bench_remote.py [--size 200MB] [--repeats 5]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import urllib3
from s3_server import s3_server

import streamcut
from streamcut.io.stores.chunk_cache import ChunkCache
from streamcut.io.stores.remote_store import RemoteStore
from streamcut.remote import file_system, objects_below
from streamcut.units import format_bytes, parse_size

FEATURES, NNZ = 100_000, 80
ROWS = 20_000  # of a block


def make_store(url: str, size: int) -> None:
    """A store of about `size` bytes at `url`."""
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    with streamcut.create(url, FEATURES, shard_nnz=1 << 20, force=True) as out:
        for _ in range(max(1, size // (ROWS * NNZ * 7))):
            indices = np.sort(rng.integers(0, FEATURES, (ROWS, NNZ)), axis=1)
            indices = np.minimum(np.maximum.accumulate(indices + np.arange(NNZ), axis=1), FEATURES - NNZ + np.arange(NNZ))
            values = rng.random(ROWS * NNZ, dtype=np.float32)
            X = sp.csr_matrix((values, indices.ravel(), np.arange(ROWS + 1) * NNZ), shape=(ROWS, FEATURES))
            X.sum_duplicates()
            out.append(X, rng.integers(0, 2, ROWS) * 2 - 1)


def seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="200MB")
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

        def read(store: RemoteStore) -> None:
            buffers = store.buffers()
            for shard in range(len(store.manifest.shards)):
                store.expect(shard)
                store.read(shard, buffers)

        calls = {"plain download": plain, "download by s3fs": by_s3fs, "read, checked, decoded": lambda: read(RemoteStore(url))}
        took: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(options.repeats):
            for name, call in calls.items():
                took[name].append(seconds(call))
        rates = {name: total / float(np.median(each)) for name, each in took.items()}
        first, second, ours = rates.values()
        print(f"{server.name}: {format_bytes(total)} in {len(chunks)} chunks, medians of {options.repeats}")
        for name, rate in rates.items():
            print(f"{name:24}{rate / 1e6:8.0f} MB/s   {100 * ours / rate:4.0f} %")
        print("the last of the faster one of the others: asked 80 %")
        store = RemoteStore(url, ChunkCache(folder))
        asked = [server.requests()]
        passes = []
        for _ in range(2):
            passes.append(seconds(lambda: read(store)))
            asked.append(server.requests())
        print(f"with --cache-dir: first pass {passes[0]:.2f} s, second {passes[1]:.2f} s", end="")
        if None in asked:
            print("; this server does not say how many requests it had")
            return 1
        between = [after - before for before, after in pairwise(asked)]
        print(f"; requests at the server {between[0]} and {between[1]} (asked: none)")
        return 0 if between[0] >= len(chunks) and between[1] == 0 and ours >= 0.8 * max(first, second) else 1


if __name__ == "__main__":
    raise SystemExit(main())
