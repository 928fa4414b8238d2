"""Fits of a few milliseconds next to scikit-learn: every loss on 150 to 5,000 rows, processor milliseconds, medians.

  python scripts/benchmarks/bench_small_fits.py [--repeat 15] [--only LOSS …] [--sets NAME …] [--arrays] [--profile LOSS SET]

Fits take turns, so that a busy machine slows both. Sets of scikit-learn, and 5,000 rows of a9a from STREAMCUT_DATA (default
../shared/data), scaled to at most 1; C = 1 and a regularised intercept for both, defaults else. `--arrays` has `streamcut.train`
on arrays in place of the estimators. `--profile` lists what our fit spends.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import time
import warnings
from collections.abc import Callable
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import scipy.sparse as sp
from families_linear import load, narrow
from sklearn import datasets, linear_model, svm
from sklearn.preprocessing import MaxAbsScaler

from streamcut import sklearn as estimators
from streamcut import train

ROWS = 5000  # of a9a
EPSILON = {"task": "regression", "loss": "epsilon-insensitive", "epsilon": 0.1}

Pair = tuple[Any, Any, dict[str, Any]]  # our estimator, that of scikit-learn, what `train` is told

TWO: dict[str, Callable[[], Pair]] = {
    "hinge": lambda: (estimators.LinearSVM(), svm.LinearSVC(loss="hinge"), {}),
    "squared-hinge": lambda: (estimators.LinearSVM(loss="squared-hinge"), svm.LinearSVC(), {"loss": "squared-hinge"}),
    "logistic": lambda: (estimators.LogisticRegression(), linear_model.LogisticRegression(), {"loss": "logistic"}),
}
NUMBERS: dict[str, Callable[[], Pair]] = {
    "squared": lambda: (estimators.LinearSVR(loss="squared"), linear_model.Ridge(), {"task": "regression", "loss": "squared"}),
    "epsilon": lambda: (estimators.LinearSVR(epsilon=0.1), svm.LinearSVR(epsilon=0.1), EPSILON),
    "huber": lambda: (estimators.LinearSVR(loss="huber"), linear_model.HuberRegressor(), {"task": "regression", "loss": "huber"}),
}
APART = {"task": "multiclass", "strategy": "one-vs-rest"}
SEVERAL: dict[str, Callable[[], Pair]] = {
    "one-vs-rest": lambda: (estimators.LinearSVM(strategy="one-vs-rest"), svm.LinearSVC(loss="hinge"), APART),
    "crammer-singer": lambda: (estimators.LinearSVM(), svm.LinearSVC(multi_class="crammer_singer"), {"task": "multiclass"}),
    "softmax": lambda: (
        estimators.LogisticRegression(), linear_model.LogisticRegression(), {"task": "multiclass", "loss": "softmax"},
    ),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--only", nargs="+", choices=[*TWO, *NUMBERS, *SEVERAL], metavar="LOSS")
    parser.add_argument("--sets", nargs="+", metavar="NAME")
    parser.add_argument("--arrays", action="store_true")
    parser.add_argument("--profile", nargs=2, metavar=("LOSS", "SET"))
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    if chosen.profile:
        chosen.only, chosen.sets = chosen.profile[:1], chosen.profile[1:]
    print(f"{'loss':16}{'set':16}{'rows':>6}{'ours ms':>10}{'theirs ms':>11}{'ratio':>7}{'passes':>8}{'gap':>9}")
    ratios = []
    for losses, sets in ((TWO, _two()), (NUMBERS, _numbers()), (SEVERAL, _several())):
        for loss, made in losses.items():
            for name, (X, y) in sets.items():
                if loss in (chosen.only or losses) and name in (chosen.sets or sets):
                    ours, theirs, told = made()
                    fit = _trained(X, y, told) if chosen.arrays else _fitted(ours, X, y)
                    if chosen.profile:
                        _profile(fit)
                    spent = _milliseconds((fit, _fitted(theirs, X, y)), chosen.repeat)
                    model, ratio = fit(), spent[0] / spent[1]
                    ratios.append(ratio)
                    found = next(iter(model.result().get("classes", {}).values()), None) or model.result()
                    passes, gap = model.history[-1]["passes"], found["gap"] / found["primal"]
                    line = f"{loss:16}{name:16}{len(y):6}{spent[0]:10.2f}{spent[1]:11.2f}{ratio:7.1f}{passes:8}{gap:9.1e}"
                    print(line, flush=True)
    print(f"ratios: median {np.median(ratios):.1f}, worst {max(ratios):.1f}")


def _fitted(model: Any, X: Any, y: np.ndarray) -> Callable[[], Any]:
    """Fits `model`; gives ours."""
    return lambda: getattr(model.fit(X, y), "model_", None)


def _trained(X: Any, y: np.ndarray, told: dict[str, Any]) -> Callable[[], Any]:
    return lambda: train((X, y), **told)


def _milliseconds(fits: tuple[Callable[[], Any], ...], repeat: int) -> list[float]:
    """Medians of processor milliseconds, the first fits left out."""
    times: list[list[float]] = [[] for _ in fits]
    for turn in range(repeat + 2):
        for fit, spent in zip(fits, times, strict=True):
            start = time.process_time()
            fit()
            if turn > 1:
                spent.append(time.process_time() - start)
    return [1000.0 * float(np.median(spent)) for spent in times]


def _profile(fit: Callable[[], Any], times: int = 50) -> None:
    fit()
    profile = cProfile.Profile()
    profile.runcall(lambda: [fit() for _ in range(times)])
    for order in ("tottime", "cumtime"):
        pstats.Stats(profile).sort_stats(order).print_stats(60)


def _scaled(X: Any) -> Any:
    return MaxAbsScaler().fit_transform(X)


def _two() -> dict[str, tuple[Any, np.ndarray]]:
    X, y = datasets.load_iris(return_X_y=True)
    cancer, labels = datasets.load_breast_cancer(return_X_y=True)
    adult, sides, _ = load("a9a")
    return {
        "iris: 1": (_scaled(X), np.where(y == 1, 1, -1)),
        "breast cancer": (_scaled(cancer), labels),
        "a9a": (narrow(adult[:ROWS]), sides[:ROWS]),
    }


def _numbers() -> dict[str, tuple[Any, np.ndarray]]:
    X, y = datasets.load_diabetes(return_X_y=True)
    abalone, ages, _ = load("ord_abalone")
    dense = abalone.toarray() if sp.issparse(abalone) else abalone
    return {
        "diabetes": (_scaled(X), (y - y.mean()) / y.std()),
        "abalone": (_scaled(dense), (ages - ages.mean()) / ages.std()),
    }


def _several() -> dict[str, tuple[Any, np.ndarray]]:
    return {
        name: (_scaled(X), y)
        for name, (X, y) in {
            "iris": datasets.load_iris(return_X_y=True),
            "wine": datasets.load_wine(return_X_y=True),
            "digits": datasets.load_digits(return_X_y=True),
        }.items()
    }


if __name__ == "__main__":
    main()
