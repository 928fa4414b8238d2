"""bundle-dca: its certificate above all, then what must never change the answer, then kernels against slow versions."""

import numpy as np
import pytest
from kit.shared.bundle_dca import problem

import streamcut
from streamcut import CheckpointOptions, train
from streamcut.errors import UsageError


@pytest.mark.parametrize("row_cache", ["0", "30%"])
def test_a_stopped_run_goes_on_to_the_same_bits(tmp_path, row_cache):
    X, y, _ = problem(3000, 20, seed=6)
    options = {
        "solver": "bundle-dca",
        "row_cache": row_cache,
        "C": 10.0,
        "max_cuts": 6,
        "tol_relative": None,
        "tol": 1e-7,
        "max_passes": 40,
        "lanes": 2,
    }
    whole = train(streamcut.rows(X, y), **options)
    calls = iter(range(10**9))
    stopped = train(streamcut.rows(X, y), checkpoint=str(tmp_path / "c"), stop=lambda: next(calls) > 12, **options)
    assert stopped.certificate.stop_reason == "interrupted"
    assert 1 < stopped.history[-1]["passes"] < whole.history[-1]["passes"]
    resumed = train(streamcut.rows(X, y), checkpoint=CheckpointOptions(str(tmp_path / "c"), resume=True), **options)
    np.testing.assert_array_equal(resumed.weights, whole.weights)
    assert resumed.certificate == whole.certificate


def test_too_small_a_bundle_or_cache_is_refused():
    X, y, _ = problem(50, 5, seed=8)
    with pytest.raises(UsageError, match="bundle-dca needs 4 cuts, not 3"):
        train(streamcut.rows(X, y), solver="bundle-dca", max_cuts=3)
    with pytest.raises(UsageError, match="row_cache: 100B is too little"):
        train(streamcut.rows(X, y), solver="bundle-dca", row_cache="100B")


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_a_run_goes_on_wherever_it_was_stopped(loss, tmp_path):
    X, y, _ = problem(600, 12, seed=5)
    data = streamcut.rows(X, y)
    common = {"C": 30.0, "loss": loss, "lanes": 1, "scheduler": "sync", "row_cache": "10%", "tol": 1e-9, "max_passes": 24}
    alone = train(data, **common)
    for stop in (1, 5, 14):
        place = str(tmp_path / f"{stop}")
        train(data, checkpoint=place, **{**common, "max_passes": stop})
        resumed = train(data, checkpoint=CheckpointOptions(place, resume=True), **common)
        assert resumed.weights.tobytes() == alone.weights.tobytes()
        assert resumed.certificate == alone.certificate
