"""Water levels against sorting, and what characterises them: the volume, and the best bias."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import water_level as reference

from streamcut.compiled import water_level

HEIGHTS = st.lists(st.one_of(st.floats(-10, 10), st.sampled_from([0.0, 0.5, 1.0])), min_size=1, max_size=40)
VOLUMES = st.one_of(st.just(0.0), st.floats(1e-9, 1e3))
EVERY = 0


GUESSES = st.integers(0, 50)


def level(c, volume, guess=1):
    work = np.array(c, np.float64)
    return water_level.level(work, len(work), float(volume), guess)


def level_of_two(positive, negative, volume, guess=1):
    positive, negative = np.array(positive, np.float64), np.array(negative, np.float64)
    return water_level.level_of_two(positive, len(positive), negative, len(negative), float(volume), guess)


def poured(c, surface):
    return np.maximum(0.0, surface - np.asarray(c)).sum()


@settings(max_examples=200, deadline=None)
@given(HEIGHTS, VOLUMES, GUESSES)
def test_as_by_sorting(c, volume, guess):
    gamma, covered = level(c, volume, guess)
    expected, _ = reference.level(c, volume)
    assert gamma == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert poured(c, gamma) == pytest.approx(volume, rel=1e-9, abs=1e-10)
    assert np.count_nonzero(np.asarray(c) < gamma - 1e-9) <= covered <= np.count_nonzero(np.asarray(c) <= gamma + 1e-9)


@settings(max_examples=200, deadline=None)
@given(HEIGHTS, HEIGHTS, VOLUMES, GUESSES)
def test_two_basins_as_by_sorting(positive, negative, volume, guess):
    up, down, covered = level_of_two(positive, negative, volume, guess)
    assert (up + down) / 2 == pytest.approx(reference.level_with_bias(positive, negative, volume), rel=1e-12, abs=1e-11)
    assert poured(positive, up) + poured(negative, down) == pytest.approx(volume, rel=1e-9, abs=1e-10)
    for c, surface in ((positive, up), (negative, down)):
        assert np.count_nonzero(np.asarray(c) < surface - 1e-9) <= covered <= np.count_nonzero(np.asarray(c) <= surface + 1e-9)


@settings(max_examples=50, deadline=None)
@given(HEIGHTS, HEIGHTS, st.floats(0.01, 100), st.floats(-3, 3))
def test_no_other_bias_has_a_higher_level(positive, negative, volume, off):
    up, down, _ = level_of_two(positive, negative, volume)
    bias = (down - up) / 2 + off
    other, _ = level([*(np.array(positive) + bias), *(np.array(negative) - bias)], volume)
    assert other <= (up + down) / 2 + 1e-9


def test_equal_responses_are_all_covered():
    assert level([0.0] * 10, 5.0) == (0.5, 10)
    assert level_of_two([0.0] * 4, [0.0] * 4, 8.0) == (1.0, 1.0, 4)


def test_a_class_of_one_takes_what_the_other_has_no_room_for():
    """Its only row is covered; one row of the other class is, up to the next; the rest lifts the single row."""
    up, down, covered = level_of_two([0.0], [0.0, 1.0, 1.0], 7.0)
    assert (up + down, covered) == (7.0, 1)
    assert 0.0 <= down <= 1.0


def test_without_slack_the_level_is_the_smallest_response():
    assert level([3.0, 1.0, 2.0], 0.0) == (1.0, 1)
    assert level_of_two([3.0, 1.0], [5.0, -2.0], 0.0) == (1.0, -2.0, 1)


def test_keep_below():
    c, sign = np.array([0.5, -1.0, 2.0, 0.1]), np.array([1, -1, 1, -1], np.int8)
    work = np.empty(4)
    for wanted, expected in ((EVERY, [0.5, -1.0, 0.1]), (1, [0.5]), (-1, [-1.0, 0.1])):
        n = water_level.keep_below(c, sign, wanted, 1.0, work)
        assert list(work[:n]) == expected
