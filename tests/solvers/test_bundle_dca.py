"""bundle-dca: what it refuses, and runs that go on."""

import pytest
from kit.shared.bundle_dca import problem

import streamcut
from streamcut import CheckpointOptions, train
from streamcut.errors import UsageError


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
