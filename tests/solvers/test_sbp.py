"""The stochastic batch perceptron with held-out rows, from a store and in memory."""

from __future__ import annotations

import numpy as np
import pytest
from kit.shared.sbp import problem

import streamcut


def test_train_on_a_store_with_held_out_rows_is_train_in_memory(tmp_path, run):
    from sklearn.datasets import dump_svmlight_file

    X, signs = problem(n=300)
    for name, part in (("train", slice(0, 200)), ("test", slice(200, 300))):
        dump_svmlight_file(X[part], signs[part], str(tmp_path / f"{name}.svm"), zero_based=False)
        code, _, _ = run("convert", tmp_path / f"{name}.svm", tmp_path / f"{name}.zarr", "--dtype", "float64", "--shard-nnz", 400)
        assert code == 0
    options = {"solver": "sbp", "kernel": "rbf", "gamma": 0.3, "epochs": 20, "validation": str(tmp_path / "test.zarr")}
    stored = streamcut.train(str(tmp_path / "train.zarr"), **options)
    dataset = streamcut.open(str(tmp_path / "train.zarr"))
    rows = np.concatenate([dataset.read(shard).y for shard in range(len(dataset.manifest.shards))])
    assert len(dataset.manifest.shards) > 1
    errors = [line["error"] for line in stored.history]
    assert np.mean(stored.predict(X[200:]) != signs[200:]) == pytest.approx(min(errors))
    in_memory = streamcut.train(streamcut.rows(X[:200], rows), **options)
    np.testing.assert_allclose(stored.decision_function(X), in_memory.decision_function(X), rtol=1e-9, atol=1e-12)
