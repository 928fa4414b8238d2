"""A training's memory is free when it ends, whether or not the collector of cycles runs, and its peak is its own."""

from __future__ import annotations

import gc
import sys

import numpy as np
import pytest
from laws.problems import KERNELS, TRAININGS

import streamcut

ALL = {**TRAININGS, **KERNELS}


@pytest.fixture
def no_collector():
    yield
    gc.enable()


def runners() -> int:
    return sum(type(each).__name__ == "Runner" for each in gc.get_objects())


SOME = (  # dual ascent, columns, newton, working sets, ocas, cpa, pairs, labellings, chains, smo, budgets, maps, samples
    "hinge, C 30, cached", "one-vs-rest, logistic, not cached", "softmax, elastic net", "Crammer-Singer", "squared hinge, newton",
    "lasso, working set, free intercept", "hinge, ocas, exact cuts", "hinge, cpa", "ranking", "ranking, newton", "F1",
    "sequences", "one class", "smo", "bsca, numbers", "fourier", "pegasos", "sampled-constant, classes",
)  # fmt: skip


@pytest.mark.parametrize("name", SOME)
def test_no_cycle_keeps_the_data(name, store, no_collector):
    rows, options, _ = ALL[name]
    streamcut.train(store(rows), max_time=20.0, **options)  # Numba's compiler leaves cycles
    gc.collect()
    gc.disable()
    before = runners()
    streamcut.train(store(rows), max_time=20.0, **options)
    assert runners() == before


@pytest.mark.skipif(sys.platform != "linux", reason="other systems tell the peak of a process only")
def test_a_peak_is_that_of_its_own_training(store):
    first = streamcut.train(store("signs")).resources["peak"]
    np.ones(50_000_000)  # 400 MB, free at once
    assert streamcut.train(store("signs")).resources["peak"] < first + 200_000_000
