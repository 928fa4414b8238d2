"""Pairs: the counts against the list of all pairs, sorting, and the line search."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import pairs as slow

from streamcut.bundle.line_search import minimise_by_tangents
from streamcut.compiled import pairs
from streamcut.losses.pairs import Pairs


def runs_of(qid, n):
    if qid is None:
        return np.array([0, n])
    return np.append(np.flatnonzero(np.append(True, qid[1:] != qid[:-1])), n)


def evaluated(risk, y, qid, scores):
    """(loss, coefficients, offset) by streamcut's kernels, all groups at once."""
    starts, codes, out = runs_of(qid, len(y)), np.empty(len(y), np.int32), np.empty(len(y))
    risk.encode(y, starts, codes)
    weights = risk.weights(risk.sizes(codes, starts))
    sums = risk.evaluate(codes, starts, weights, scores, out)
    return sums[0].sum(), out, sums[1].sum()


rounded = st.sampled_from([-1.0, -0.5, 0.0, -0.0, 0.25, 0.5, 1.0, 1.5, 2.0])
rows = st.tuples(st.sampled_from([-2.0, 0.0, 1.0, 7.5]), st.integers(0, 3), st.one_of(rounded, st.floats(-2, 2)))


@settings(max_examples=150, deadline=None)
@given(st.lists(rows, min_size=1, max_size=25), st.sampled_from(["pairs", "queries"]), st.booleans())
def test_counts_equal_the_list_of_all_pairs(found, normalisation, grouped):
    y, qid, scores = (np.array(column) for column in zip(*sorted(found, key=lambda row: row[1]), strict=True))
    qid = qid if grouped else None
    listed = slow.all_pairs(y, qid)
    expected = slow.risk(scores, listed, slow.pair_weights(listed, qid, normalisation))
    loss, coefficients, offset = evaluated(Pairs(normalisation), y, qid, scores)
    assert loss == pytest.approx(expected[0], rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(coefficients, expected[1], rtol=1e-12, atol=1e-15)
    assert offset == pytest.approx(expected[2], rel=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([1, 2, 63, 64, 65, 300]))
def test_sorting_is_stable(seed, n):
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 1, n) * 10.0 ** rng.integers(-300, 300, n) if seed % 2 else np.round(rng.normal(0, 2, n))
    keys, order = np.empty(n, np.uint64), np.empty(n, np.int32)
    pairs.sort_scores(scores, keys, order, np.empty(n, np.uint64), np.empty(n, np.int32))
    assert scores[order].tobytes() == keys.view(np.float64).tobytes()
    scores[scores == 0.0] = 0.0  # the bits of -0.0 sort below those of 0.0
    pairs.sort_scores(scores, keys, order, np.empty(n, np.uint64), np.empty(n, np.int32))
    np.testing.assert_array_equal(order, np.argsort(scores, kind="stable"))


class _Convex:
    """A SmoothLoss: the largest of some lines plus a sum of hinges."""

    def __init__(self, seed, guess):
        rng = np.random.default_rng(seed)
        self.slopes, self.offsets = rng.normal(0, 2, 9), rng.normal(0, 1, 9)
        self.rates, self.rooms = rng.normal(0, 1, 40), rng.normal(0.5, 1, 40)
        self.guess, self.looks = guess, 0

    def at(self, k):
        self.looks += 1
        lines, hinges = self.offsets + self.slopes * k, self.rooms - self.rates * k
        loss = lines.max() + np.maximum(hinges, 0).sum()
        return loss, self.slopes[np.argmax(lines)] - self.rates[hinges > 0].sum()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.floats(1e-3, 10), st.floats(-5, 5), st.floats(1e-3, 10))
def test_line_search_by_tangents_reaches_most_of_the_decrease(seed, A0, B0, guess):
    rows = _Convex(seed, guess)

    def objective(k):
        return 0.5 * A0 * k * k + B0 * k + 0.7 * rows.at(k)[0]

    k = minimise_by_tangents(A0, B0, 0.7, rows)
    assert rows.looks <= 21
    slope = B0 + 0.7 * rows.at(0.0)[1]
    if slope >= 0.0:
        assert k == 0.0
        return
    lowest = min(objective(t) for t in np.linspace(0.0, -slope / A0, 1000))
    assert objective(k) <= objective(0.0)
    assert objective(0.0) - objective(k) >= 0.85 * (objective(0.0) - lowest)
