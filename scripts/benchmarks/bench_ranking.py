#!/usr/bin/env python
"""Seconds for an iteration of ROC area and of ranking against the number of rows; next to a list of pairs: bench_families.py.

    bench_ranking.py [--rows 10000,100000,1000000] [--plot FILE.png]

Text-like rows (make_data.py, 15 entries on average, 10,000 features) in memory; processor time of one thread. "sort" is the part
of an iteration that sorts and counts, "/(n log n)" the whole in nanoseconds over n·log₂ n: level when time grows like a sort.
Beside it, an iteration of the hinge loss with exact cuts, which has the same two passes and nothing to sort.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from streamcut.execution.feed import Feed
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.runner import Runner
from streamcut.io.memory import MemoryDataset
from streamcut.losses.pairs import Pairs, PairsOfLevels
from streamcut.oracles.global_risk import GlobalOracle
from streamcut.training import train

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from make_data import Recipe, Source

FEATURES = 10_000
LIMITS = {"scheduler": "sync", "tol_relative": None, "max_cuts": 50}


def rows(kind: str, n: int) -> MemoryDataset:
    recipe = Recipe(kind, n, FEATURES, 15, 0.3, 0)
    source = Source(recipe)
    blocks = [source.block(number) for number in range(-(-n // recipe.block_rows))]
    X = sp.vstack([sp.csr_array((b.data, b.indices, b.indptr), (b.n_rows, FEATURES)) for b in blocks], format="csr")
    qid = np.concatenate([b.qid for b in blocks]) if kind == "ranking" else None
    return MemoryDataset(X, np.concatenate([b.y for b in blocks]), qid=qid)


def per_iteration(data: MemoryDataset, **options) -> float:
    """Processor seconds of an iteration; the first two are left out."""
    times = []
    train(data, C=1.0, on_iteration=lambda _: times.append(time.thread_time()), max_passes=13, tol=1e-9, **options, **LIMITS)
    return (times[-1] - times[1]) / (len(times) - 2)


def sorting(data: MemoryDataset) -> float:
    """Processor seconds to sort and count once."""
    with Runner(Feed(data), plan_lanes(data.manifest.statistics, 1)) as runner:
        labels = data.manifest.statistics.labels
        risk = Pairs() if data.manifest.statistics.groups else PairsOfLevels(tuple(sorted(labels)))
        oracle = GlobalOracle(runner, risk, C=1.0, bias=0.0, keep_best=True)
        oracle.start()
        oracle.score(np.random.default_rng(0).standard_normal(oracle.dimension))
        started = time.thread_time()
        oracle.at(0.5)
        return time.thread_time() - started


def growth(sizes: list[int], plot: str | None) -> None:
    head = ("roc-area", "sort", "/(n log n)", "ranking", "sort", "hinge", "roc/hinge")
    print(f"{'rows':>10} " + " ".join(f"{name:>10}" for name in head))
    lines = []
    for n in sizes:
        text, ranking = rows("text", n), rows("ranking", n)
        area, queries = per_iteration(text, task="roc-area"), per_iteration(ranking, task="ranking")
        hinge = per_iteration(text, solver="ocas", cut="exact")
        each = area / (n * np.log2(n)) * 1e9
        seconds = (area, sorting(text), each, queries, sorting(ranking), hinge, area / hinge)
        print(f"{n:>10,} " + " ".join(f"{value:>10.4f}" for value in seconds), flush=True)
        lines.append((n, area, queries, hinge))
    if plot:
        _draw(np.array(lines), plot)


def _draw(lines: np.ndarray, plot: str) -> None:
    try:
        import matplotlib.pyplot as plt
    except ModuleNotFoundError:
        print(f"no {plot}: matplotlib is not installed")
        return
    n = lines[:, 0]
    for column, name in ((1, "ROC area"), (2, "ranking in queries"), (3, "hinge, two passes")):
        plt.loglog(n, lines[:, column], "o-", label=name)
    scale = lines[0, 1] / (n[0] * np.log2(n[0]))
    plt.loglog(n, scale * n * np.log2(n), "k:", label="n log n")
    plt.xlabel("rows")
    plt.ylabel("seconds an iteration, one thread")
    plt.legend()
    plt.savefig(plot, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="10000,100000,1000000")
    parser.add_argument("--plot", metavar="FILE.png")
    options = parser.parse_args()
    growth([int(n) for n in options.rows.split(",")], options.plot)


if __name__ == "__main__":
    main()
