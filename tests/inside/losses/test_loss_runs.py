"""Runs with each loss of numbers: stopped and resumed, on Dask, along a path over C, from a model, saved and verified."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from kit.nights import by_night
from kit.shared.loss_runs import OPTIONS, SOLVERS, bits, data, rows

from streamcut import CheckpointOptions, load_model, save_model, train, verify
from streamcut.grids.selection import train_path
from streamcut.loss_table import ROW_LOSSES

OF_NUMBERS = [name for name, loss in ROW_LOSSES.items() if loss.targets == "numbers"]


# Their checkpoints hold what those of the other losses do.
NIGHTLY = ("huber", "epsilon-insensitive", "squared-epsilon-insensitive")


@pytest.mark.thirds
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", by_night(OF_NUMBERS, NIGHTLY))
def test_a_run_that_is_stopped_goes_on_to_the_same_bits(tmp_path, loss, solver):
    options = {**OPTIONS, **SOLVERS[solver], "loss": loss}
    for blocks in (12, 31):
        asked = iter(range(blocks))
        kept = CheckpointOptions(str(tmp_path / f"kept{blocks}"), every=0.0)
        train(data(), checkpoint=kept, stop=lambda asked=asked: next(asked, None) is None, **options)
        assert bits(train(data(), checkpoint=replace(kept, resume=True), **options)) == bits(train(data(), **options))


@pytest.mark.thirds
@pytest.mark.parametrize("loss", OF_NUMBERS)
def test_paths_and_warm_starts_have_certificates_as_good_as_any(tmp_path, loss):
    options = {"task": "regression", "loss": loss, "tol": 1e-4, "tol_relative": None}
    along = []
    train_path(data(), [0.01, 0.1, 1.0], on_model=lambda model, _: along.append(model), **options)
    for model in along:
        alone = train(data(), C=model.C, **options)
        assert model.converged
        assert model.certificate.lower_bound <= alone.certificate.primal
        assert alone.certificate.lower_bound <= model.certificate.primal
        assert verify(model, data()).consistent
    save_model(along[-1], tmp_path / "last.npz")
    again = train(data(), C=1.0, warm_start=tmp_path / "last.npz", **options)
    assert again.converged
    assert again.history[-1]["passes"] <= 3
    other = train(data(300), C=1.0, warm_start=tmp_path / "last.npz", **{**options, "loss": "squared"})
    assert other.converged
    loaded = load_model(tmp_path / "last.npz")
    assert (loaded.task, loaded.certificate) == ("regression", along[-1].certificate)
    np.testing.assert_array_equal(loaded.predict(rows()[0]), along[-1].predict(rows()[0]))
