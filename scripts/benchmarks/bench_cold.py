"""What a pass over files that are not in the page cache costs, next to reading these files and to a pass over rows in memory.

The files of STORE are dropped from the page cache (posix_fadvise, no root needed) before each cold measurement, and the kernel's
count of bytes read from storage (/proc/self/io) must say that it worked. Interleaved runs in one go, medians by the clock:

raw      all files in order, 1 MiB at a time, by one thread, no other work
cold     one pass of OCAS (scores, margins, loss and cut) from the dropped files
warm     the same pass with the files in the page cache
memory   the same pass over as many decoded shards as --keep holds, per decoded byte

Prints one line of JSON: rates in MB/s of stored and decoded bytes, and the ratios cold / raw and cold / memory. A cold pass is as
fast as the disk when the first is near 1, and as fast as the processors when the second is.

Usage: python scripts/benchmarks/bench_cold.py STORE [--workers N] [--lanes N] [--repeats N] [--keep 2GB]
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from streamcut.execution.feed import Feed
from streamcut.execution.lanes import Lanes, plan_lanes
from streamcut.execution.runner import Runner
from streamcut.foundation.units import parse_size
from streamcut.io.dataset import Dataset, shard_bytes
from streamcut.io.opening import open_dataset
from streamcut.losses.hinge import Hinge
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.oracles.linear import LinearOracle

COLD = 0.9  # of a cold measurement's bytes must come from storage


def files_of(store: Path) -> list[Path]:
    """The files that a pass reads, in the order of shards."""
    return sorted(path for path in (store / "shards").rglob("*") if path.name == "c.0" or path.suffix == ".h5")


def drop(files: list[Path]) -> None:
    """Take `files` out of the page cache."""
    for path in files:
        handle = os.open(path, os.O_RDONLY)
        os.fsync(handle)  # pages that are not on disk yet cannot be dropped
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)


def from_storage() -> int:
    """Bytes that this process has caused to be read from storage so far."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["read_bytes"])


def read_all(files: list[Path]) -> None:
    piece = memoryview(bytearray(1 << 20))
    for path in files:
        with open(path, "rb", buffering=0) as file:
            while file.readinto(piece):
                pass


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def cold_seconds(work: Callable[[], object], files: list[Path], size: int) -> float:
    drop(files)
    before = from_storage()
    taken = seconds(work)
    if (found := from_storage() - before) < COLD * size:
        raise SystemExit(f"only {found:,} of {size:,} bytes came from storage: the files stay in the page cache")
    return taken


def oracle_on(runner: Runner) -> Callable[[], object]:
    """A pass as OCAS makes it; the first one is done."""
    oracle = LinearOracle(runner, PointwiseRisk(Hinge(1.0)), C=1.0, bias=1.0, keep_margins=True)
    oracle.start()
    w = np.random.default_rng(0).standard_normal(oracle.dimension)
    oracle.score_and_cut(w, 0.7)
    return lambda: oracle.score_and_cut(w, 0.7)


def kept_shards(data: Dataset, room: int) -> int:
    """How many of the first shards fit into `room` bytes, at least one."""
    sizes = np.cumsum([shard_bytes(data.manifest, shard) for shard in data.manifest.shards])
    return max(1, int(np.searchsorted(sizes, room, side="right")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--lanes", type=int)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--keep", default="2GB")
    options = parser.parse_args()
    data, files = open_dataset(str(options.store)), files_of(options.store)
    shards, sizes = data.manifest.shards, [shard_bytes(data.manifest, shard) for shard in data.manifest.shards]
    stored, decoded = sum(path.stat().st_size for path in files), sum(sizes)
    lanes = plan_lanes(data.manifest.statistics, options.lanes)
    kept = kept_shards(data, parse_size(options.keep, option="--keep"))
    rows = sum(shard.rows for shard in shards[:kept])
    some = Lanes(tuple(rows * lane // len(lanes) for lane in range(len(lanes) + 1)))
    times: dict[str, list[float]] = {"raw": [], "cold": [], "warm": [], "memory": []}
    with (
        Runner(Feed(data), lanes, options.workers) as reading,
        Runner(Feed(data, frozenset(range(kept))), some, options.workers) as keeping,
    ):
        one_pass, in_memory = oracle_on(reading), oracle_on(keeping)
        for _ in range(options.repeats):
            times["raw"].append(cold_seconds(lambda: read_all(files), files, stored))
            times["cold"].append(cold_seconds(one_pass, files, stored))
            times["warm"].append(seconds(one_pass))
            times["memory"].append(seconds(in_memory) * decoded / sum(sizes[:kept]))
    median = {name: float(np.median(taken)) for name, taken in times.items()}
    print(
        json.dumps(
            {
                "stored_GB": round(stored / 1e9, 3),
                "decoded_GB": round(decoded / 1e9, 3),
                "workers": options.workers,
                **{f"{name}_MB_per_s": round(stored / taken / 1e6) for name, taken in median.items() if name != "memory"},
                **{f"{name}_decoded_MB_per_s": round(decoded / taken / 1e6) for name, taken in median.items() if name != "raw"},
                "cold_to_raw": round(median["raw"] / median["cold"], 3),
                "cold_to_memory": round(median["memory"] / median["cold"], 3),
                "warm_to_memory": round(median["memory"] / median["warm"], 3),
            }
        )
    )


if __name__ == "__main__":
    main()
