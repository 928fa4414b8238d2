"""One group larger than memory: whatever room there is to sort, the same bits as with all of it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st
from kit.multivariate import LOSSES
from kit.multivariate import problem as two_classes
from kit.ranking import bits, problem

import streamcut
from streamcut import train
from streamcut.jobs.global_risk import GlobalJob
from streamcut.oracles import groups, row_blocks

rounded = st.sampled_from([-1.0, -0.5, 0.0, -0.0, 0.25, 0.5, 1.0, 1.5, 2.0])
near_margin = st.sampled_from([0.3, 1.3, np.nextafter(1.3, 2), np.nextafter(1.3, 1), 1e-17, 1.0, np.nextafter(1.0, 0), -1e-300])
rows = st.tuples(st.sampled_from([-2.0, 0.0, 1.0, 7.5]), st.one_of(rounded, near_margin, st.floats(-2, 2), st.floats(-1e6, 1e6)))


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of few rows, so that small problems have many."""
    for module in (groups, row_blocks):
        monkeypatch.setattr(module, "BLOCK_ROWS", 50)


@pytest.fixture
def little_room(monkeypatch):
    """A function that lets jobs sort so many scores at once."""

    def limit(scores):
        plain = GlobalJob.trainer
        little = {"row_cache": 9 * scores}
        monkeypatch.setattr(GlobalJob, "trainer", lambda job, runner, plan: plain(job, runner, replace(plan, **little)))

    return limit


TASKS = [{"task": "ranking"}, *({"loss": loss, "k": k} for loss, k in LOSSES)]


@pytest.mark.parametrize(
    "options",
    TASKS[:3],
    ids=lambda options: "-".join(str(value) for value in options.values()),
)
def test_training_in_little_room_gives_the_same_bits(options, small_blocks, little_room):
    X, y = problem(400, 15, levels=6)[:2] if "task" in options else two_classes(400, 15)
    options = {**options, "C": 0.3, "max_passes": 30, "workers": 2}
    expected = bits(train(streamcut.rows(X, y), **options))
    little_room(60)
    assert bits(train(streamcut.rows(X, y), **options)) == expected
