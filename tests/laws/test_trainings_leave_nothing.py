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


@pytest.mark.parametrize("name", list(ALL)[1::3])  # dual ascent, newton, ocas, cpa, smo, budgets, rounds
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
