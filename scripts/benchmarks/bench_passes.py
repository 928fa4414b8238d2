"""Passes over the data to gap ≤ 1e-3·C̄: cpa, both forms of ocas, and bundle-dca with row caches of 0, 10 and 30 % of the data.

Everything in memory, one thread, one lane or as many as --lanes says; seconds are that thread's processor time. "> n (gap)" is
where --max-passes ended it; --budget seconds end a run early ("…"). The sets in order of time or place are shuffled first.
Optima: reference_optima.py.
Usage: python scripts/benchmarks/bench_passes.py [--max-passes N] [--lanes 1,4]
           [NAME:C …] (data from STREAMCUT_DATA, default ../shared/data)
"""

import argparse
import lzma
import os
import sys
import time
from itertools import product
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # peers, too: LIBSVM spins on OpenMP threads

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from streamcut.io.memory import MemoryDataset
from streamcut.models.certificate import StopReason
from streamcut.training import train

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from make_data import Recipe, Source

DATA = Path(os.environ.get("STREAMCUT_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
IN_ORDER = {"celegans_splice", "flights3m"}
SOLVERS = {
    "cpa": {"solver": "cpa"},
    "ocas exact": {"solver": "ocas", "cut": "exact"},
    "ocas predicted": {"solver": "ocas", "cut": "predicted"},
    "dca 0 %": {"solver": "bundle-dca", "row_cache": "0"},
    "dca 10 %": {"solver": "bundle-dca", "row_cache": "10%"},
    "dca 30 %": {"solver": "bundle-dca", "row_cache": "30%"},
}
DEFAULT = [f"{name}:{C}" for name in ("a9a", "ijcnn1", "text-like") for C in (0.1, 1, 10)]
DEFAULT += ["celegans_splice:0.1", "celegans_splice:1", "flights3m:0.1"]


def load(name: str) -> tuple[sp.csr_array, np.ndarray]:
    """The training set, labels ±1; text-like is ALGORITHMS' recipe with 200,000 × 50,000."""
    if name == "text-like":
        recipe = Recipe("text", 200_000, 50_000, 60, 0.1, 0)
        source = Source(recipe)
        blocks = [source.block(number) for number in range(-(-recipe.rows // recipe.block_rows))]
        parts = [sp.csr_array((b.data, b.indices, b.indptr), (b.n_rows, recipe.features)) for b in blocks]
        return sp.csr_array(sp.vstack(parts)), np.concatenate([b.y for b in blocks])
    with lzma.open(DATA / name / "train.svm.xz") as file:
        X, y = load_svmlight_file(file, zero_based=False, dtype=np.float32)
    order = np.random.default_rng(0).permutation(len(y)) if name in IN_ORDER else slice(None)
    return sp.csr_array(X)[order], np.where(y == y.max(), 1.0, -1.0)[order]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="*", default=DEFAULT, metavar="NAME:C")
    parser.add_argument("--max-passes", type=int, default=60)
    parser.add_argument("--lanes", default="1", help="how many, several with commas between")
    parser.add_argument("--budget", type=float, default=300.0, help="seconds for one run")
    parser.add_argument("--solvers", default=",".join(SOLVERS))
    options = parser.parse_args()
    chosen, lanes = options.solvers.split(","), [int(number) for number in options.lanes.split(",")]
    print(f"{'set':16} {'C':>5} {'lanes':>5} " + " ".join(f"{name:>22}" for name in chosen), flush=True)
    loaded, data = "", None
    for problem, each in product(options.problems, lanes):
        name, C = problem.split(":")
        if name != loaded:
            loaded, data = name, MemoryDataset(*load(name))
        print(f"{name:16} {C:>5} {each:>5} ", end="")
        for solver in chosen:
            started = time.thread_time()
            limits = {"max_passes": options.max_passes, "max_time": options.budget, "lanes": each, "scheduler": "sync"}
            model = train(data, C=float(C), tol_relative=None, **limits, **SOLVERS[solver])
            seconds, certificate = time.thread_time() - started, model.certificate
            passes = f"{model.history[-1]['passes']}"
            if not certificate.converged:
                more = "… " if certificate.stop_reason is StopReason.TIME else "> "
                passes = f"{more}{passes} ({certificate.gap / certificate.c_bar:.0e})"
            print(f"{passes:>14} {seconds:6.1f}s", end=" ", flush=True)
        print(flush=True)


if __name__ == "__main__":
    sys.exit(main())
