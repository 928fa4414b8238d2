"""Losses of whole labellings: the search over tables against all labellings."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.multivariate import LOSSES
from reference import multivariate as slow
from reference.one_group import evaluated_by_ranges

from streamcut.errors import UsageError
from streamcut.losses.multivariate import Multivariate, rows_of


def evaluated(loss, k, truth, scores, room=None):
    """(risk, coefficients, offset) by streamcut's search; `room` for so many sorted scores."""
    return evaluated_by_ranges(Multivariate(loss, 1.0, k), np.where(truth, 1.0, 0.0), scores, room)


scores_of_rows = st.one_of(st.sampled_from([-1.0, -0.0, 0.0, 0.5, 1.0]), st.floats(-3, 3))


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), scores_of_rows, scores_of_rows), min_size=2, max_size=9),
    st.sampled_from([loss for loss, _ in LOSSES]),
    st.integers(1, 9),
)
def test_search_equals_all_labellings_and_is_a_subgradient(rows, loss, k):
    truth, scores, others = (np.array(column) for column in zip(*rows, strict=True))
    truth[0], truth[-1] = True, False
    k = min(k, len(truth))
    expected = slow.risk(scores, truth, loss, k)
    assert slow.risk_by_tables(scores, truth, loss, k) == pytest.approx(expected, abs=1e-12)
    found, coefficients, offset = evaluated(loss, k, truth, scores)
    assert found == pytest.approx(expected, abs=1e-12)
    assert coefficients @ scores + offset == pytest.approx(expected, abs=1e-12)
    assert coefficients @ others + offset <= slow.risk(others, truth, loss, k) + 1e-12


@pytest.mark.parametrize("loss", [loss for loss, _ in LOSSES])
def test_search_equals_all_tables_of_more_rows(loss):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(50, 90))
        truth = rng.random(n) < rng.choice([0.05, 0.4, 0.9])
        truth[:2] = True, False
        scores = np.round(rng.normal(0, rng.choice([0.1, 1.0, 5.0]), n), 1) + 2.0 * (truth - 0.5) * rng.random()
        k = int(rng.integers(1, n + 1))
        expected = slow.risk_by_tables(scores, truth, loss, k)
        assert evaluated(loss, k, truth, scores)[0] == pytest.approx(expected, abs=1e-12)


def test_k_is_a_number_of_rows_or_a_part_of_them():
    assert (rows_of("100", 500), rows_of("10%", 500), rows_of("0.5%", 500)) == (100, 50, 2)
    for k in ("0", "501", "101%", "0.01%", "ten", "1.5", ""):
        with pytest.raises(UsageError, match="k:"):
            rows_of(k, 500)
