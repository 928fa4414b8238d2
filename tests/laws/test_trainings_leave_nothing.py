"""A training's memory is free when it ends, whether or not the collector of cycles runs, and its peak is its own."""

from __future__ import annotations

import gc
import sys

import numpy as np
import pytest

import streamcut

SOLVERS = ("bundle-dca", "newton", "ocas", "cpa")
TRAININGS = {
    **{f"{solver} {loss}": {"solver": solver, "loss": loss} for solver in SOLVERS for loss in ("hinge", "logistic")},
    "working set": {"loss": "logistic", "l1_only": 1.0},
    "elastic net, free": {"loss": "logistic", "l1": 0.1, "intercept": "free"},
    "one against the rest": {"task": "multiclass", "strategy": "one-vs-rest"},
    "all classes": {"task": "multiclass"},
    "softmax": {"task": "multiclass", "loss": "softmax"},
    "one class": {"task": "one-class", "nu": 0.2},
    "ranking": {"task": "ranking"},
    "F1": {"loss": "f1"},
    "sequence": {"task": "sequence"},
    "smo": {"solver": "smo", "kernel": "rbf", "gamma": 0.5},
    "bsca": {"solver": "bsca", "kernel": "rbf", "gamma": 0.5, "budget": 20},
    "sampled": {"solver": "sampled-linear"},
}


@pytest.fixture
def no_collector():
    yield
    gc.enable()


def runners() -> int:
    return sum(type(each).__name__ == "Runner" for each in gc.get_objects())


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Rows of svmlight text, with labels 0 and 1, or with three, in groups of ten."""
    r, folder = np.random.default_rng(0), tmp_path_factory.mktemp("rows")
    X, y = r.normal(size=(120, 4)), r.integers(0, 3, 120)
    for name, labels in (("two", y % 2), ("three", y)):
        rows = (f"{labels[i]} qid:{i // 10} " + " ".join(f"{j + 1}:{x:.6f}" for j, x in enumerate(X[i])) for i in range(120))
        (folder / f"{name}.txt").write_text("\n".join(rows) + "\n")
    return folder


@pytest.mark.parametrize("name", TRAININGS)
def test_no_cycle_keeps_the_data(name, text, no_collector):
    options = TRAININGS[name]
    labels = "three" if options.get("task") in ("multiclass", "ranking", "sequence") else "two"
    streamcut.train(str(text / f"{labels}.txt"), max_time=20.0, **options)  # Numba's compiler leaves cycles
    gc.collect()
    gc.disable()
    before = runners()
    streamcut.train(str(text / f"{labels}.txt"), max_time=20.0, **options)
    assert runners() == before


@pytest.mark.skipif(sys.platform != "linux", reason="other systems tell the peak of a process only")
def test_a_peak_is_that_of_its_own_training(text):
    first = streamcut.train(str(text / "two.txt")).resources["peak"]
    np.ones(50_000_000)  # 400 MB, free at once
    assert streamcut.train(str(text / "two.txt")).resources["peak"] < first + 200_000_000
