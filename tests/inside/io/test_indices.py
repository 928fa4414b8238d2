"""Numbers that become indices are looked at before a cast can hide what is wrong with them."""

from __future__ import annotations

import numpy as np
import pytest

from streamcut.errors import BadInputError
from streamcut.io.indices import expect_indices, expect_pointers


@pytest.mark.parametrize("kind", ["i1", "u1", ">i4", "i8", "u8"])
def test_whole_numbers_in_bounds_stay_as_they_are(kind):
    values = np.array([0, 3, 99], kind)
    assert expect_indices(values, 100, "x") is values
    assert expect_indices(values[:0], 0, "x").size == 0
    assert expect_indices(np.array([2**64 - 1], np.uint64), 2**64, "x").size == 1


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (np.array([0.0, 1.0]), "index is of type float64, not a whole number"),
        (np.array([True, False]), "index is of type bool"),
        (np.array(["1"]), "not a whole number"),
        (np.array([1], object), "not a whole number"),
        (np.array([1], "M8[s]"), "not a whole number"),
        (np.array([1, -2, -3]), "index -2 is negative"),
        (np.array([1, 10, 11]), "index 10 is not below 10"),
        (np.array([1, 2**63 + 5], np.uint64), f"index {2**63 + 5} is not below 10"),
    ],
)
def test_others_are_refused_at_the_first_that_is_wrong(values, said):
    with pytest.raises(BadInputError, match=said):
        expect_indices(values, 10, "x")


def test_the_place_may_be_asked_for():
    with pytest.raises(BadInputError, match=r"^row 2: code 7 is not below 5$"):
        expect_indices(np.array([0, 1, 7, 8]), 5, lambda k: f"row {k}", "code")
    with pytest.raises(BadInputError, match=r"^row 0: code 0 is not below 0$"):
        expect_indices(np.array([0]), 0, lambda k: f"row {k}", "code")


def test_pointers():
    found = expect_pointers(np.array([0, 2, 2, 5], np.uint8), 5, "x")
    assert found.dtype == np.int64
    assert found.tolist() == [0, 2, 2, 5]
    for wrong, said in (
        ([0, 2, 1], "pointers decrease"),
        ([0, 6], "pointer 6 is not below 6"),
        ([-1, 0], "negative"),
        ([0.0], "type"),
    ):
        with pytest.raises(BadInputError, match=said):
            expect_pointers(np.array(wrong), 5, "x")
