"""How fast a store is read from S3 next to a plain parallel download of the same objects, and what a cache leaves to ask for.

Interleaved in one run, medians by the clock: all chunks fetched by 16 threads and thrown away; all shards read, checked and
decoded. Asked: the second at 80 % of the first or more. Then two passes with a cache on this disk, and the requests of the
second: none. The server is moto on loopback, which takes a processor itself, or that of AWS_ENDPOINT_URL, which needs a bucket
`streamcut`.
Usage: python scripts/bench_remote.py [--size 200MB] [--repeats 5]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
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
    with s3_server() as bucket, tempfile.TemporaryDirectory() as folder:
        url = f"{bucket}/bench.zarr"
        make_store(url, parse_size(options.size, option="--size"))
        files, root = file_system(url)
        chunks = {name: size for name, size in objects_below(url).items() if name.endswith("/c.0")}
        total = sum(chunks.values())

        def download() -> None:
            with ThreadPoolExecutor(16) as pool:
                got = sum(pool.map(lambda name: len(files.cat_file(f"{root}/{name}")), chunks))
            assert got == total

        def read(store: RemoteStore) -> None:
            buffers = store.buffers()
            for shard in range(len(store.manifest.shards)):
                store.expect(shard)
                store.read(shard, buffers)

        plain, ours = [], []
        for _ in range(options.repeats):
            plain.append(seconds(download))
            ours.append(seconds(lambda: read(RemoteStore(url))))
        first, second = float(np.median(plain)), float(np.median(ours))
        print(f"{format_bytes(total)} in {len(chunks)} chunks, medians of {options.repeats}")
        print(f"plain download, 16 at once  {total / first / 1e6:8.0f} MB/s")
        print(f"read, checked and decoded   {total / second / 1e6:8.0f} MB/s  {100 * first / second:.0f} % (asked: 80 %)")
        store = RemoteStore(url, ChunkCache(folder))
        began = seconds(lambda: read(store))
        asked = []
        fetch = store._files.cat_file
        store._files.cat_file = lambda *given, **more: asked.append(given) or fetch(*given, **more)
        again = seconds(lambda: read(store))
        print(f"with --cache-dir: first pass {began:.2f} s, second {again:.2f} s with {len(asked)} requests (asked: none)")
        return 0 if not asked and first >= 0.8 * second else 1


if __name__ == "__main__":
    raise SystemExit(main())
