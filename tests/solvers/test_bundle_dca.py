"""bundle-dca: its certificate above all, then what must never change the answer, then kernels against slow versions."""

import pytest
from kit.shared.bundle_dca import problem

import streamcut
from streamcut import train
from streamcut.errors import UsageError


def test_too_small_a_bundle_or_cache_is_refused():
    X, y, _ = problem(50, 5, seed=8)
    with pytest.raises(UsageError, match="bundle-dca needs 4 cuts, not 3"):
        train(streamcut.rows(X, y), solver="bundle-dca", max_cuts=3)
    with pytest.raises(UsageError, match="row_cache: 100B is too little"):
        train(streamcut.rows(X, y), solver="bundle-dca", row_cache="100B")
