"""Columns whose features differ in size: where passes stall, cached rows are solved for at once."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut import CheckpointOptions, train, verify

DEFAULT = {"tol": None, "tol_relative": 1e-2}


def problem(n=400, *, classes=2, seed=0):
    """Features of sizes 1, 30 and 1000; numbers, or labels of so many classes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    s = X @ np.array([1.0, -1.0, 0.5]) + 0.5 * rng.standard_normal(n)
    y = s if classes == 0 else np.searchsorted(np.quantile(s, np.arange(1, classes) / classes), s).astype(float)
    return sp.csr_array(X * np.array([1.0, 30.0, 1000.0])), y, rng.uniform(0.5, 2.0, n)


REST = {"task": "multiclass", "strategy": "one-vs-rest", "scheduler": "sync"}


def test_classes_of_unscaled_features_converge_and_are_proved():
    data = streamcut.rows(*problem(classes=4)[:2])
    model = train(data, **REST, C=10.0, solver="bundle-dca", **DEFAULT)
    assert model.converged
    assert model.history[-1]["passes"] <= 40
    assert verify(model, data).consistent


@pytest.mark.parametrize("late", [1, 3])
def test_stopped_and_resumed_is_uninterrupted(late, tmp_path):
    data = streamcut.rows(*problem(classes=4)[:2])
    options = {**REST, "C": 10.0, "tol": 1e-7, "tol_relative": None, "max_passes": 16}
    whole = train(data, **options)
    checkpoint = CheckpointOptions(str(tmp_path), every=0.0)
    train(data, **{**options, "max_passes": 9 + late}, checkpoint=checkpoint)
    resumed = train(data, **options, checkpoint=replace(checkpoint, resume=True))
    assert [line["primal"] for line in resumed.history] == [line["primal"] for line in whole.history]
    assert resumed.weights.tobytes() == whole.weights.tobytes()
