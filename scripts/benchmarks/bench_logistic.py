"""Logistic regression: passes to a certified gap, and a race on flight delays out of core against tools in memory and online.

passes   gap ≤ 1e-3·C̄ by bundle-dca with row caches of 0 and 30 % of the data (the sets in memory, one lane), and the passes that
         SciPy's L-BFGS takes to come as near: each of its evaluations of F and its gradient is one pass over the same rows.
         Rows are shuffled, unless --in-order: dual ascent takes twice the passes where neighbours are alike (ijcnn1)
race     flights3m, in order of time, C = 1: streamcut on a store under --memory 300MB; Vowpal Wabbit from its cache file, as many
         passes as it takes to come within 1 % of the optimum; scikit-learn's SAGA and averaged SGD with all rows in memory. F is
         judged against streamcut's lower bound; log loss is on the test set. One thread each

Usage: python scripts/benchmarks/bench_logistic.py passes [NAME:C …]
       python scripts/benchmarks/bench_logistic.py race --out FOLDER [--C 1] [--memory 300MB] [--seconds 300]
Data from STREAMCUT_DATA, default ../shared/data.
"""

from __future__ import annotations

import argparse
import lzma
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import scipy.sparse as sp
from bench_linear_tools import ONE, VW_KINDS, Problem, VowpalWabbit, finished, sgd, vw_lines
from bench_passes import DATA, IN_ORDER, load
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from streamcut.io.memory import MemoryDataset
from streamcut.io.opening import open_dataset
from streamcut.models.files import load_model
from streamcut.training import train

DEFAULT = [f"{name}:{C}" for name in ("a9a", "ijcnn1") for C in (0.1, 1, 10)] + ["flights3m:0.1", "flights3m:1"]
TOL = 1e-3
GAP = 0.01
CONVERT = ("from streamcut.cli import main; main()", "convert")


def passes(problems: list[str], most: int, in_order: bool) -> None:
    print("| data | C | no cache | 30 % | L-BFGS | F | bound |\n|" + "---|" * 7)
    for each in problems:
        name, C = each.split(":")
        X, y = load(name)
        if not in_order and name not in IN_ORDER:
            order = np.random.default_rng(0).permutation(len(y))
            X, y = X[order], y[order]
        problem = Problem(name, X, y, float(C), "logistic")
        data = MemoryDataset(X, y)
        taken, best, bound = [], np.inf, -np.inf
        for cache in ("0", "30%"):
            options = {"loss": "logistic", "C": problem.C, "row_cache": cache, "max_passes": most, **ONE}
            model = train(data, solver="bundle-dca", tol=TOL, tol_relative=None, **options)
            taken.append(f"{model.history[-1]['passes']}" if model.converged else f"> {most}")
            best, bound = min(best, model.certificate.primal), max(bound, model.certificate.lower_bound)
        close = train(data, loss="logistic", C=problem.C, tol=TOL / 50, tol_relative=None, max_passes=3 * most)
        bound = max(bound, close.certificate.lower_bound)
        lbfgs = _lbfgs_passes(problem, bound + TOL * problem.C * len(y))
        print(f"| {name} | {C} | {taken[0]} | {taken[1]} | {lbfgs} | {best:.6g} | {bound:.6g} |", flush=True)


def _lbfgs_passes(problem: Problem, target: float) -> str:
    """Evaluations until F ≤ target."""
    X, y, C = problem.with_bias(), problem.y, problem.C
    count = 0

    class Reached(Exception):  # noqa: N818
        pass

    def value_and_gradient(w: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal count
        count += 1
        margins = y * (X @ w)
        F = 0.5 * (w @ w) + C * np.logaddexp(0.0, -margins).sum()
        if target >= F:
            raise Reached
        return F, w - C * (X.T @ (y * expit(-margins)))

    try:
        minimize(value_and_gradient, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 2000, "maxfun": 4000})
    except Reached:
        return f"{count}"
    return f"not in {count}"


def race(folder: Path, C: float, memory: str, seconds: float) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    store, test = folder / "train.zarr", _test_set()
    if not store.exists():
        source = DATA / "flights3m" / "train.svm.xz"
        subprocess.run([sys.executable, "-c", *CONVERT, str(source), str(store), "--quiet"], check=True)
    lines = [_streamcut(store, folder, C, memory, seconds)]
    bound, n_features = lines[0].pop("bound"), open_dataset(str(store)).manifest.statistics.n_features
    X, y = _rows(store)
    problem = Problem("flights3m", X, y, C, "logistic")
    lines += [_wabbit(problem, store, folder, kind, bound, seconds) for kind in VW_KINDS]
    wide = problem.with_bias()
    lines += [_saga(problem, wide, bound, seconds), _sgd(problem, wide, bound, seconds)]
    head = ("tool", "passes", "seconds", "processor s", "GB read", "peak MB", "F above the bound", "log loss on the test set")
    print(f"| {' | '.join(head)} |\n|" + "---|" * len(head))
    for line in lines:
        w = line.pop("w")
        scores = test[0][:, :n_features] @ w[:-1] + w[-1]
        above = 100 * (problem.objective(w) / bound - 1)
        shown = [line.get(name, "–") for name in ("tool", "passes", "wall", "processor", "read", "peak")]
        print("| " + " | ".join(map(str, shown)) + f" | {above:.2f} % | {log_loss(test[1], expit(scores)):.5f} |", flush=True)
    baseline = np.full(len(test[1]), (y > 0).mean())
    print(f"\nlog loss of the rate of late flights alone: {log_loss(test[1], baseline):.5f}")


def _streamcut(store: Path, folder: Path, C: float, memory: str, seconds: float) -> dict:
    path = folder / "model.npz"
    command = [sys.executable, "-c", CONVERT[0], "train", str(store), "--output", str(path), "--force", "--quiet"]
    command += ["--loss", "logistic", "--C", repr(C), "--tol", "0", "--tol-relative", str(GAP), "--memory", memory]
    command += ["--max-time", f"{seconds:g}s"]
    started = time.time()
    usage = finished([*command, "--workers", "1"], 2 * seconds)
    wall, model = time.time() - started, load_model(path)
    last = model.history[-1]
    return {
        "tool": f"streamcut --memory {memory}",
        "passes": last["passes"],
        "wall": f"{wall:.1f}",
        "processor": f"{usage.ru_utime + usage.ru_stime:.1f}",
        "read": f"{last['bytes_read'] / 1e9:.2f}",
        "peak": f"{model.resources['peak'] / 1e6:.0f}",
        "w": model.augmented_weights,
        "bound": model.certificate.lower_bound,
    }


def _rows(store: Path) -> tuple[sp.csr_array, np.ndarray]:
    data = open_dataset(str(store))
    chunks = [data.read(shard) for shard in range(len(data.manifest.shards))]
    width = data.manifest.statistics.n_features
    parts = [
        sp.csr_array(
            (np.ones(c.nnz, np.float32) if c.data is None else c.data.astype(np.float32), c.indices, c.indptr), (c.n_rows, width)
        )
        for c in chunks
    ]
    y = np.concatenate([c.y for c in chunks])
    return sp.csr_array(sp.vstack(parts)), np.where(y == y.max(), 1.0, -1.0)


def _test_set() -> tuple[sp.csr_array, np.ndarray]:
    with lzma.open(DATA / "flights3m" / "test.svm.xz") as file:
        X, y = load_svmlight_file(file, zero_based=False, dtype=np.float32)
    return sp.csr_array(X), (y == y.max()).astype(float)


def _wabbit(problem: Problem, store: Path, folder: Path, kind: str, bound: float, seconds: float) -> dict:
    """As many passes as it takes to come within GAP of the bound, else its best."""
    place = folder / "vw"
    place.mkdir(exist_ok=True)
    vw = VowpalWabbit(place, len(problem.y), problem.X.shape[1], "logistic")
    if not vw.cache.exists():
        data = open_dataset(str(store))
        vw.convert(vw_lines((data.read(shard) for shard in range(len(data.manifest.shards))), problem.X.shape[1]))
    run = vw.run(kind, problem.C, 64, seconds)
    best = (np.inf, 0, np.zeros(problem.X.shape[1] + 1))
    for number in sorted(number for number in run.saved if number > 0):
        w = vw.weights(run.saved[number])
        best = min(best, (problem.objective(w), number, w), key=lambda found: found[0])
        if best[0] <= (1.0 + GAP) * bound:
            break
    processor = (run.usage.ru_utime + run.usage.ru_stime) / run.wall * run.when[best[1]]
    size = vw.cache.stat().st_size
    return {
        "tool": kind,
        "passes": best[1],
        "wall": f"{run.when[best[1]]:.1f}",
        "processor": f"{processor:.1f}",
        "read": f"{best[1] * size / 1e9:.2f}",
        "peak": f"{run.usage.ru_maxrss / 1e3:.0f}",
        "w": best[2],
    }


def _saga(problem: Problem, X: sp.csr_array, bound: float, seconds: float) -> dict:
    """Trained anew with 1, 2, 4, … epochs until it is within GAP."""
    epochs, taken, w = 1, 0.0, np.zeros(X.shape[1])
    while taken < seconds:
        machine = LogisticRegression(solver="saga", C=problem.C, fit_intercept=False, max_iter=epochs, tol=0.0, random_state=0)
        before = time.thread_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # not converged, of course
            machine.fit(X, problem.y)
        taken, w = time.thread_time() - before, machine.coef_[0].astype(np.float64)
        if problem.objective(w) <= (1.0 + GAP) * bound:
            break
        epochs *= 2
    return {"tool": "scikit-learn SAGA", "passes": epochs, "processor": f"{taken:.1f}", "peak": "in memory", "w": w}


def _sgd(problem: Problem, X: sp.csr_array, bound: float, seconds: float) -> dict:
    weights: list[np.ndarray] = []
    points = sgd(problem, X, seconds, weights)
    within = [k for k, point in enumerate(points) if point.primal <= (1.0 + GAP) * bound]
    k = within[0] if within else int(np.argmin([point.primal for point in points]))
    point = points[k]
    shown = {"passes": int(point.passes), "processor": f"{point.seconds:.1f}", "peak": "in memory"}
    return {"tool": "scikit-learn SGD, averaged", **shown, "w": weights[k]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    first = commands.add_parser("passes")
    first.add_argument("problems", nargs="*", default=DEFAULT, metavar="NAME:C")
    first.add_argument("--max-passes", type=int, default=100)
    first.add_argument("--in-order", action="store_true", help="keep a9a and ijcnn1 in the order of their files")
    second = commands.add_parser("race")
    second.add_argument("--out", type=Path, required=True)
    second.add_argument("--C", type=float, default=1.0)
    second.add_argument("--memory", default="300MB")
    second.add_argument("--seconds", type=float, default=300.0)
    options = parser.parse_args()
    if options.command == "passes":
        passes(options.problems, options.max_passes, options.in_order)
    else:
        race(options.out, options.C, options.memory, options.seconds)


if __name__ == "__main__":
    main()
