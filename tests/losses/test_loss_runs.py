"""Runs with each loss of numbers: stopped and resumed, on Dask, along a path over C, from a model, saved and verified."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from kit import clusters
from kit.nights import by_night

import streamcut
from streamcut.config import CheckpointOptions
from streamcut.errors import UsageError
from streamcut.grids.selection import train_path
from streamcut.io.memory import MemoryDataset
from streamcut.loss_table import ROW_LOSSES
from streamcut.models.files import load_model, save_model
from streamcut.training import train
from streamcut.verification import verify

OF_NUMBERS = [name for name, loss in ROW_LOSSES.items() if loss.targets == "numbers"]
SOLVERS = {
    "ocas": {"solver": "ocas", "max_cuts": 6},
    "exact": {"solver": "ocas", "cut": "exact"},
    "cpa": {"solver": "cpa"},
    "bundle-dca": {"solver": "bundle-dca", "max_cuts": 6, "row_cache": "30%"},
}
OPTIONS = {"task": "regression", "C": 0.3, "lanes": 2, "max_passes": 9, "tol": 1e-9, "tol_relative": None}


def rows(n: int = 400, seed: int = 0):
    """(X, counts, weights): every loss takes counts."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, 15), density=0.3, format="csr", rng=rng, data_sampler=rng.standard_normal)
    return X, rng.poisson(np.exp(0.5 * (X @ rng.standard_normal(15)))).astype(float), rng.uniform(0.2, 3.0, n)


def data(n: int = 400, shard_nnz: int = 400) -> MemoryDataset:
    X, y, u = rows()
    return MemoryDataset(X[:n], y[:n], weight=u[:n], shard_nnz=shard_nnz)


def bits(model) -> tuple:
    path = [[line[name] for name in ("passes", "primal", "lower_bound", "step", "cuts")] for line in model.history]
    return model.weights.tobytes(), model.witness.a.tobytes(), model.certificate, path


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


@pytest.fixture(scope="module")
def client():
    with clusters.two_workers() as client:
        yield client


@pytest.mark.parametrize("loss", ["quantile", "poisson"])  # piecewise linear; smooth, with a target in each row
def test_dask_gives_the_bits_of_threads(tmp_path, client, loss):
    store, chunk = str(tmp_path / "rows.zarr"), data(shard_nnz=10_000).read(0)
    X = sp.csr_array((chunk.data, chunk.indices, chunk.indptr), shape=(chunk.n_rows, 15))
    with streamcut.create(store, 15, shard_nnz=400) as out:
        out.append(X, chunk.y, weight=chunk.weight)
    (tmp_path / "scratch").mkdir()
    for solver in ("ocas", "bundle-dca"):
        options = {**OPTIONS, **SOLVERS[solver], "loss": loss, "max_passes": 5}
        assert bits(train(store, scheduler=client, scratch=str(tmp_path / "scratch"), **options)) == bits(train(store, **options))


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


def test_a_regression_starts_from_a_regression():
    X, y, _ = rows()
    classes = train(MemoryDataset(X, y > 0.0), max_passes=3)
    with pytest.raises(UsageError, match="model of task binary by bundle-dca; it takes a linear one for numbers"):
        train(data(), task="regression", warm_start=classes)
    with pytest.raises(UsageError, match="model of task regression by newton; it takes a linear one for two classes"):
        train(MemoryDataset(X, y > 0.0), warm_start=train(data(), task="regression", max_passes=3))
