"""Every linear family next to its best peer: processor seconds to the default stops, and to the objective that the peer reached.

All in memory, one thread, medians of three (runs of more than five seconds: one). Both minimise the same objective: the bias is a
feature of ones for everybody. The best of several peers is the one that takes least time, of those whose objectives are within
2 % of one another. "above" is how far an objective is above our best lower bound, as a part of it. Sets marked with * were used
for no tuning.

Usage: python scripts/benchmarks/bench_families.py [FAMILY …] [--C 0.1,1,10] [--json FILE] (data from STREAMCUT_DATA)
"""

import argparse
import json
import lzma
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import scipy.sparse as sp
from liblinear import liblinearutil
from scipy.special import logsumexp
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression, Ridge

from streamcut.compiled import multiclass
from streamcut.io.memory import MemoryDataset
from streamcut.training import train

DATA = Path(os.environ.get("STREAMCUT_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
LONG = 5.0  # seconds of a run that is not repeated
NEAR = 1.02  # times the best of their objectives: further ones are not compared
EPSILON, L1 = 0.1, 1.0
TWO = ("a9a", "ijcnn1", "reuters_moneyfx", "usps:3*", "susy_30k*", "covtype_20k:2", "skin_nonskin*")
NUMBERS = ("ord_computer", "ord_abalone", "ord_bank32nh", "ord_california*")
CLASSES = ("dna", "usps", "letter*", "news20_bydate", "sector*")


@cache
def load(name: str) -> tuple[sp.csr_array, np.ndarray, sp.csr_matrix]:
    """(rows, labels, rows with a feature of ones) of a set, shuffled; `NAME:LABEL` is that label against the rest."""
    name, _, positive = name.rstrip("*").partition(":")
    with lzma.open(DATA / name / "train.svm.xz") as file:
        X, y = load_svmlight_file(file, zero_based=False)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = sp.csr_array(X)[order], y[order]
    if name in ("skin_nonskin", "covtype_20k"):
        X = sp.csr_array(X @ sp.diags_array(1.0 / np.maximum(abs(X).max(axis=0).toarray().ravel(), 1e-300)))
    if positive or len(np.unique(y)) == 2:
        y = np.where(y == (float(positive) if positive else y.max()), 1.0, -1.0)
    ones = sp.csr_matrix(sp.hstack([X, np.ones((len(y), 1))]))
    ones.indices, ones.indptr = ones.indices.astype(np.int32), ones.indptr.astype(np.int32)  # which scikit-learn insists on
    return X, y, ones


def margins(loss: Callable) -> Callable:
    """The sum of `loss` of the margins of two classes."""
    return lambda scores, y: float(loss(y * scores.ravel()).sum())


def residuals(loss: Callable) -> Callable:
    """The sum of `loss` of the residuals."""
    return lambda scores, y: float(loss(np.abs(scores.ravel() - y)).sum())


def crammer_singer(scores: np.ndarray, y: np.ndarray) -> float:
    losses = np.empty(len(y))
    multiclass.losses(np.searchsorted(np.unique(y), y), np.ascontiguousarray(scores), losses)
    return float(losses.sum())


def one_vs_rest(scores: np.ndarray, y: np.ndarray) -> float:
    return float(np.maximum(0.0, 1.0 - np.where(y[:, None] == np.unique(y), 1.0, -1.0) * scores).sum())


def softmax(scores: np.ndarray, y: np.ndarray) -> float:
    return float((logsumexp(scores, axis=1) - scores[np.arange(len(y)), np.searchsorted(np.unique(y), y)]).sum())


def liblinear(kind: int, more: str = "") -> Callable:
    """LIBLINEAR -s `kind` at its own tolerance: (seconds, weights (d, K))."""

    def run(X: sp.csr_matrix, y: np.ndarray, C: float) -> tuple[float, np.ndarray]:
        problem = liblinearutil.problem(y, X)
        started = time.process_time()
        model = liblinearutil.train(problem, liblinearutil.parameter(f"-s {kind} -c {C} -q {more}"))
        seconds = time.process_time() - started
        columns = 1 if kind >= 11 or (model.nr_class == 2 and kind != 4) else model.nr_class
        W = np.ctypeslib.as_array(model.w, (X.shape[1] * columns,)).reshape(-1, columns).copy()
        if kind < 11:
            labels = np.array(model.get_labels())
            W = W * (1.0 if labels[0] == y.max() else -1.0) if columns == 1 else np.ascontiguousarray(W[:, np.argsort(labels)])
        return seconds, W

    return run


def estimator(make: Callable) -> Callable:
    """An estimator of scikit-learn at its own tolerance."""

    def run(X: sp.csr_matrix, y: np.ndarray, C: float) -> tuple[float, np.ndarray]:
        model = make(C)
        started = time.process_time()
        model.fit(X, y)
        return time.process_time() - started, np.atleast_2d(model.coef_).T

    return run


def logistic(**how: object) -> Callable:
    return estimator(lambda C: LogisticRegression(C=C, fit_intercept=False, **how))


def ridge(**how: object) -> Callable:
    return estimator(lambda C: Ridge(alpha=1 / C, fit_intercept=False, **how))


@dataclass(frozen=True)
class Family:
    """What `train` is told, the sum of losses of scores, sets, and peers by name."""

    ours: dict
    loss: Callable
    sets: tuple[str, ...]
    peers: dict[str, Callable]
    l1: float = 0.0
    Cs: tuple[float, ...] = field(default=(0.1, 1.0, 10.0))


def net(C: float) -> LogisticRegression:
    return LogisticRegression(C=C / 2, l1_ratio=0.5, solver="saga", fit_intercept=False, max_iter=1000)


FAMILIES = {
    "hinge": Family({"loss": "hinge"}, margins(lambda z: np.maximum(0.0, 1.0 - z)), TWO, {"LIBLINEAR -s 3": liblinear(3)}),
    "squared hinge": Family(
        {"loss": "squared-hinge"}, margins(lambda z: np.maximum(0.0, 1.0 - z) ** 2), TWO,
        {"LIBLINEAR -s 1": liblinear(1), "LIBLINEAR -s 2": liblinear(2)},
    ),
    "logistic": Family(
        {"loss": "logistic"}, margins(lambda z: np.logaddexp(0.0, -z)), TWO,
        {"LIBLINEAR -s 0": liblinear(0), "LIBLINEAR -s 7": liblinear(7), "lbfgs": logistic()},
    ),
    "logistic, elastic net": Family(
        {"loss": "logistic", "l1": L1}, margins(lambda z: np.logaddexp(0.0, -z)), TWO[:5], {"saga": estimator(net)}, l1=L1
    ),
    "squared": Family(
        {"task": "regression", "loss": "squared"}, residuals(lambda r: 0.5 * r * r), NUMBERS,
        {"Ridge": ridge(), "Ridge, Cholesky": ridge(solver="cholesky")},
    ),
    "ε-insensitive": Family(
        {"task": "regression", "loss": "epsilon-insensitive", "epsilon": EPSILON},
        residuals(lambda r: np.maximum(0.0, r - EPSILON)), NUMBERS, {"LIBLINEAR -s 13": liblinear(13, f"-p {EPSILON}")},
    ),
    "squared ε-insensitive": Family(
        {"task": "regression", "loss": "squared-epsilon-insensitive", "epsilon": EPSILON},
        residuals(lambda r: np.maximum(0.0, r - EPSILON) ** 2), NUMBERS,
        {"LIBLINEAR -s 11": liblinear(11, f"-p {EPSILON}"), "LIBLINEAR -s 12": liblinear(12, f"-p {EPSILON}")},
    ),
    "one-vs-rest": Family(
        {"task": "multiclass", "loss": "hinge", "strategy": "one-vs-rest"}, one_vs_rest, CLASSES, {"LIBLINEAR -s 3": liblinear(3)}
    ),
    "Crammer-Singer": Family({"task": "multiclass"}, crammer_singer, CLASSES, {"LIBLINEAR -s 4": liblinear(4)}),
    "softmax": Family({"task": "multiclass", "loss": "softmax"}, softmax, CLASSES[:4], {"lbfgs": logistic()}, Cs=(0.1, 1.0)),
}  # fmt: skip


def ours(family: Family, X: sp.csr_array, y: np.ndarray, C: float, **stop: object) -> tuple[float, float, float, int]:
    """(seconds, objective, lower bound, passes)."""
    data = MemoryDataset(X, y)
    started = time.process_time()
    model = train(data, C=C, scheduler="sync", **family.ours, **stop)
    seconds = time.process_time() - started
    certificates = getattr(model, "certificates", None) or (model.certificate,)
    return seconds, sum(c.primal for c in certificates), sum(c.lower_bound for c in certificates), model.history[-1]["passes"]


def median(run: Callable) -> tuple:
    """The result of the run with the median of seconds, the first of what it returns."""
    found = [run()]
    while len(found) < 3 and found[0][0] < LONG:
        found.append(run())
    return sorted(found, key=lambda each: each[0])[len(found) // 2]


def compared(family: Family, name: str, C: float) -> dict:
    """One line of the table."""
    X, y, ones = load(name)

    def objective(W: np.ndarray) -> float:
        return 0.5 * float((W * W).sum()) + family.l1 * float(np.abs(W).sum()) + C * family.loss(ones @ W, y)

    theirs = {peer: median(lambda run=run: run(ones, y, C)) for peer, run in family.peers.items()}
    objectives = {peer: objective(W) for peer, (_, W) in theirs.items()}
    near = [peer for peer in theirs if objectives[peer] <= NEAR * min(objectives.values())]
    peer = min(near, key=lambda name: theirs[name][0])
    their_seconds, reached = theirs[peer][0], objectives[peer]
    seconds, primal, bound, passes = median(lambda: ours(family, X, y, C))
    limits = {"tol": 1e-9, "tol_relative": None, "max_passes": 300, "max_time": max(30.0, 10.0 * their_seconds)}
    split = family.ours.get("strategy") == "one-vs-rest"  # an objective for each class
    target = None if split else median(lambda: ours(family, X, y, C, target=reached * (1 + 1e-9), **limits))
    best = max(bound, 0.0 if target is None else target[2])
    found = {"set": name, "C": C, "peer": peer, "their seconds": their_seconds, "seconds": seconds, "passes": passes}
    found |= {"above": primal / best - 1, "theirs above": reached / best - 1, "ratio": seconds / their_seconds}
    if target is not None:
        found |= {"to target": target[0] / their_seconds, "reached": target[1] <= reached * (1 + 1e-8)}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=f"of {', '.join(FAMILIES)}; default: all")
    parser.add_argument("--C", help="instead of each family's values")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    table: dict[str, list[dict]] = {}
    print("| family | set | C | best peer | its s | ours, s | ratio | above: its, ours | passes | to its objective |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in options.families or FAMILIES:
        family = FAMILIES[name]
        few = load(family.sets[0])
        ours(family, few[0][:200], few[1][:200], 1.0)  # kernels are loaded
        for data in family.sets:
            for C in family.Cs if options.C is None else map(float, options.C.split(",")):
                found = compared(family, data, C)
                table.setdefault(name, []).append(found)
                to = (
                    ""
                    if "to target" not in found
                    else f"{found['to target']:.2f}" + ("" if found["reached"] else " (not reached)")
                )
                print(
                    f"| {name} | {data} | {C:g} | {found['peer']} | {found['their seconds']:.3f} | {found['seconds']:.3f} "
                    f"| {found['ratio']:.2f} | {found['theirs above']:.1e}, {found['above']:.1e} | {found['passes']} | {to} |",
                    flush=True,
                )
    print("\n| family | lines | median ratio | worst | median to its objective | worst |\n|---|---|---|---|---|---|")
    for name, lines in table.items():
        ratios, to = [each["ratio"] for each in lines], [each["to target"] for each in lines if "to target" in each] or [np.nan]
        print(f"| {name} | {len(lines)} | {np.median(ratios):.2f} | {max(ratios):.2f} | {np.median(to):.2f} | {max(to):.2f} |")
    if options.json:
        options.json.write_text(json.dumps(table, indent=1, default=float))


if __name__ == "__main__":
    main()
