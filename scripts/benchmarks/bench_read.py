"""How fast shards are read and decoded: our reader against zarr-python, on one and two threads, page cache warm, in one run.

    python scripts/benchmarks/bench_read.py [--shards 8] [--folder /tmp]

Prints decoded MB/s, the ratio to zarr-python, the ratio of processor time (which other work on the machine disturbs less), and
what a warmed-up read allocates.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import zarr

from streamcut.foundation.chunk import Chunk
from streamcut.io.dataset import shard_bytes
from streamcut.io.opening import open_dataset
from streamcut.io.stores.stored import StoredDataset
from streamcut.io.stores.writer import StoreWriter

NNZ, PER_ROW, FEATURES = 4 << 20, 80, 1_000_000  # 16 MiB an array
REPEATS = 7  # taken in turns, so that both meet the same disturbances; the fastest counts


def make(path: Path, shards: int, kind: str) -> None:
    """Rows of 80 entries with Zipf-like features; values of three digits as in weighted text, or all 1 as in click logs."""
    rng = np.random.default_rng(0)
    rows = NNZ // PER_ROW
    with StoreWriter(path, n_features=FEATURES, options={}) as writer:
        for k in range(shards):
            steps = rng.zipf(1.3, (rows, PER_ROW)).clip(1, FEATURES // PER_ROW)
            indices = np.cumsum(steps, axis=1, dtype=np.int64).astype(np.int32) - 1
            values = None if kind == "clicks" else np.round(rng.random(rows * PER_ROW), 3).astype(np.float32)
            y = rng.integers(0, 2, rows) * 2.0 - 1
            writer.append(Chunk(np.arange(rows + 1) * PER_ROW, indices.ravel(), values, y), {"block": k})
        writer.finish({})


def timed(read: Callable[[int, int], object], shards: int, threads: int) -> tuple[float, float]:
    """(seconds, processor seconds) for all shards, dealt to `threads` threads."""

    def work(thread: int) -> None:
        for shard in range(thread, shards, threads):
            read(shard, thread)

    workers = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
    start, cpu = time.perf_counter(), time.process_time()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return time.perf_counter() - start, time.process_time() - cpu


def allocated(data: StoredDataset, buffers: object) -> int:
    """Most bytes that Python and NumPy hold at once for one read with warm buffers."""
    data.read(0, buffers)
    tracemalloc.start()
    data.read(1 % len(data.manifest.shards), buffers)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def compare(kind: str, shards: int, folder: str | None) -> None:
    """Make the data, read it both ways, print the result."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = Path(place) / "bench.zarr"
        make(path, shards, kind)
        data = open_dataset(path)
        shards = len(data.manifest.shards)
        size = sum(shard_bytes(data.manifest, shard) for shard in data.manifest.shards) / 1e6
        disk = sum(a.stored_bytes for shard in data.manifest.shards for a in shard.arrays.values()) / 1e6
        print(f"{kind}: {shards} shards, {size:.0f} MB decoded, {disk:.0f} MB on disk")
        group = zarr.open_group(path, mode="r")["shards"]
        buffers = [data.buffers(), data.buffers()]

        def ours(shard: int, thread: int) -> None:
            data.read(shard, buffers[thread])

        def through_zarr(shard: int, thread: int) -> None:
            for name in data.manifest.shards[shard].arrays:
                group[f"{shard:06d}/{name}"][...]

        for threads in (1, 2):
            rounds = [(timed(ours, shards, threads), timed(through_zarr, shards, threads)) for _ in range(REPEATS + 1)][1:]
            own, others = (size / min(seconds for seconds, _ in found) for found in zip(*rounds, strict=True))
            cpu = [min(cpu for _, cpu in found) for found in zip(*rounds, strict=True)]
            print(
                f"{threads} thread(s): streamcut {own:.0f} MB/s, zarr-python {others:.0f} MB/s, ratio {own / others:.2f}, "
                f"processor time {cpu[1] / cpu[0]:.2f} times less"
            )
        print(f"allocated by a warm read: {allocated(data, buffers[0])} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--folder", default=None, help="where to make the temporary store")
    options = parser.parse_args()
    for kind in ("text", "clicks"):
        compare(kind, options.shards, options.folder)


if __name__ == "__main__":
    main()
