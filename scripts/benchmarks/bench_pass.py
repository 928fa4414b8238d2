"""What a pass over rows in memory costs, next to SciPy and to the memory of this machine.

One thread and its processor time, the same matrix, interleaved runs, medians; then the speed-up of --workers threads by the
clock. SciPy: X @ w and X.T @ c in float64 (its fastest case: no conversion).
streamcut: one pass of scores + margins + loss + cut, as OCAS makes it, on the smallest exact values. Copying: how fast this
machine copies float64, in one thread, in the same run.
Usage: python scripts/benchmarks/bench_pass.py [--workers N] [NAME …]   (data from STREAMCUT_DATA, default ../shared/data)
"""

import argparse
import lzma
import os
import time
from collections.abc import Callable
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # peers, too: LIBSVM spins on OpenMP threads

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from streamcut.execution.feed import Feed
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.runner import Runner
from streamcut.io.dataset import shard_bytes
from streamcut.io.memory import MemoryDataset
from streamcut.losses.hinge import Hinge
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.oracles.linear import LinearOracle

DATA = Path(os.environ.get("STREAMCUT_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
REPEATS = 9
SETS = ["a9a", "ijcnn1", "reuters_moneyfx", "news20_bydate", "celegans_splice", "text-like"]


def text_like(rows: int, features: int, seed: int = 0) -> tuple[sp.csr_array, np.ndarray]:
    """Rows of about 60 features drawn ∝ 1/rank, float32 values."""
    rng = np.random.default_rng(seed)
    lengths = np.maximum(rng.poisson(60, rows), 3)
    cumulative = np.cumsum(1.0 / np.arange(1, features + 1))
    columns = np.searchsorted(cumulative, rng.random(lengths.sum()) * cumulative[-1]).astype(np.int32)
    X = sp.csr_array((rng.random(len(columns)).astype(np.float32), columns, np.append(0, np.cumsum(lengths))), (rows, features))
    X.sum_duplicates()
    return X, np.where(rng.random(rows) < 0.5, 1.0, -1.0)


def load(name: str) -> tuple[sp.csr_array, np.ndarray]:
    if name == "text-like":
        return text_like(200_000, 1_000_000)
    with lzma.open(DATA / name / "train.svm.xz") as file:
        X, y = load_svmlight_file(file, zero_based=False)
    return sp.csr_array(X.astype(np.float32)), np.where(y == y.max(), 1.0, -1.0)


def medians(calls: dict, clock: Callable[[], float]) -> dict:
    """Median seconds of each call, all interleaved, after one run of each."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for repeat in range(REPEATS + 1):
        for name, call in calls.items():
            started = clock()
            call()
            if repeat:
                times[name].append(clock() - started)
    return {name: float(np.median(values)) for name, values in times.items()}


def row(name: str, workers: int) -> str:
    """One line of the table."""
    X, y = load(name)
    data = MemoryDataset(X, y)
    wide = X.astype(np.float64)
    rng = np.random.default_rng(0)
    w, c = rng.standard_normal(X.shape[1]) * 0.1, np.where(rng.random(len(y)) < 0.5, y, 0.0)
    lanes = plan_lanes(data.manifest.statistics)
    every = frozenset(range(len(data.manifest.shards)))
    block = np.ones(8 << 20)
    target = np.empty_like(block)
    with Runner(Feed(data, every), lanes, 1) as one, Runner(Feed(data, every), lanes, workers) as many:
        alone, together = (
            LinearOracle(runner, PointwiseRisk(Hinge(1.0)), C=1.0, bias=0.0, keep_margins=True) for runner in (one, many)
        )
        alone.start()
        together.start()
        single = medians(
            {
                "scipy": lambda: (wide @ w, wide.T @ c),
                "pass": lambda: alone.score_and_cut(w, 0.7),
                "copy": lambda: np.copyto(target, block),
            },
            time.thread_time,  # other programs on this machine then disturb less
        )
        both = {"one": lambda: alone.score_and_cut(w, 0.7), "many": lambda: together.score_and_cut(w, 0.7)}
        wall = medians(both, time.perf_counter)
    size = sum(shard_bytes(data.manifest, shard) for shard in data.manifest.shards)
    return (
        f"{name:16} {X.nnz:11,} {1e3 * single['scipy']:9.2f} {1e3 * single['pass']:9.2f} {single['pass'] / single['scipy']:6.2f} "
        f"{1e9 * single['pass'] / X.nnz:7.2f} {size / single['pass'] / 1e9:6.2f} {2 * block.nbytes / single['copy'] / 1e9:6.2f} "
        f"{wall['one'] / wall['many']:9.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=SETS)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    print("set                      nnz  SciPy ms   pass ms  ratio  ns/nnz   GB/s   copy  speed-up")
    for name in options.names:
        print(row(name, options.workers), flush=True)


if __name__ == "__main__":
    main()
