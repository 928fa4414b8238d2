"""Runs with each loss of numbers: stopped and resumed, on Dask, along a path over C, from a model, saved and verified."""

from __future__ import annotations

import pytest
import scipy.sparse as sp
from kit import clusters
from kit.shared.loss_runs import OPTIONS, SOLVERS, bits, data, rows

import streamcut
from streamcut import train
from streamcut.errors import UsageError


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


def test_a_regression_starts_from_a_regression():
    X, y, _ = rows()
    classes = train(streamcut.rows(X, y > 0.0), max_passes=3)
    with pytest.raises(UsageError, match="model of task binary by bundle-dca; it takes a linear one for numbers"):
        train(data(), task="regression", warm_start=classes)
    with pytest.raises(UsageError, match="model of task regression by newton; it takes a linear one for two classes"):
        train(streamcut.rows(X, y > 0.0), warm_start=train(data(), task="regression", max_passes=3))
