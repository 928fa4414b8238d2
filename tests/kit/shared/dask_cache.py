"""What tests/dask/test_dask_cache.py and tests/inside/dask/test_dask_cache.py share."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from kit.clusters import two_workers

import streamcut
from streamcut import save_model

FEW = {"solver": "bundle-dca", "row_cache": "30%", "sweeps": 4, "max_passes": 4, "tol": 1e-9, "tol_relative": None}
TASKS = {
    "binary": {},
    "multiclass": {"task": "multiclass"},
    "softmax": {"task": "multiclass", "loss": "softmax"},
    "rest": {"task": "multiclass", "strategy": "one-vs-rest"},
    "rest, squared": {"task": "multiclass", "strategy": "one-vs-rest", "loss": "squared-hinge"},
}


def rows(n=2000, d=30):
    """X, labels of three classes."""
    rng = np.random.default_rng(3)
    X = sp.random_array((n, d), density=0.2, format="csr", rng=rng, data_sampler=rng.standard_normal)
    scores = X @ rng.standard_normal((d, 3)) + 0.3 * rng.standard_normal((n, 3))
    return X, scores.argmax(axis=1).astype(float)


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """{name of TASKS: opened store}, with row weights."""
    found = {}
    for task, n in (("binary", 2000), ("multiclass", 2000), ("few rows", 300)):
        X, y = rows(n)
        labels, u = y if task == "multiclass" else np.minimum(y, 1.0), np.random.default_rng(0).uniform(0.5, 2.0, n)
        path = tmp_path_factory.mktemp("cached") / f"{task}.zarr"
        with streamcut.create(path, X.shape[1], shard_nnz=1000) as out:
            out.append(X, labels, weight=u)
        found[task] = streamcut.open(path)
    return {**found, "rest": found["multiclass"], "softmax": found["multiclass"], "rest, squared": found["multiclass"]}


@pytest.fixture(scope="module")
def on_threads(stores, tmp_path_factory):
    """The path of the model of (name of TASKS, lanes)."""
    folder = tmp_path_factory.mktemp("models")

    @cache
    def trained(task, lanes):
        path = str(folder / f"{task}{lanes}.npz")
        save_model(streamcut.train(stores[task], lanes=lanes, workers=2, **TASKS.get(task, {}), **FEW), path)
        return path

    return trained


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


def on_cluster(client, dataset, tmp_path, **options):
    (tmp_path / "scratch").mkdir()
    model = streamcut.train(dataset, scheduler=client, scratch=str(tmp_path / "scratch"), **FEW, **options)
    assert list((tmp_path / "scratch").iterdir()) == []
    save_model(model, str(tmp_path / "m.npz"))
    return model
