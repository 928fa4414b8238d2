"""bundle-dca: what it refuses, and runs that go on."""

import pytest
from kit.shared.bundle_dca import problem

import streamcut
from streamcut import train
from streamcut.errors import UsageError


def test_a_bundle_and_too_small_a_cache_are_refused():
    X, y, _ = problem(50, 5, seed=8)
    with pytest.raises(
        UsageError,
        match=r"max_cuts: 8 is an option of newton, .*; bundle-dca does not have it",
    ):
        train(streamcut.rows(X, y), solver="bundle-dca", max_cuts=8)
    with pytest.raises(UsageError, match="row_cache: 100B is too little"):
        train(streamcut.rows(X, y), solver="bundle-dca", row_cache="100B")
