"""Features in place of a kernel: Nyström's landmarks and random waves."""

from dataclasses import replace

import numpy as np
import pytest

import streamcut
from streamcut import evaluate, train
from streamcut.errors import UsageError


def rings(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, 3)) > 0.2, rng.standard_normal((n, 3)), 0.0)
    return X, np.where(X[:, 0] ** 2 + np.sin(2 * X[:, 1]) + 0.2 * rng.standard_normal(n) > 0.8, 2.0, 1.0)


OPTIONS = {"kernel": "rbf", "gamma": 0.5, "nystroem": 40, "C": 1.0}


def test_approaches_the_exact_machine():
    X, y = rings(150)
    exact = train(streamcut.rows(X, y), solver="sampled-linear", kernel="rbf", gamma=0.5, samples=150, bias=0, tol=1e-4)
    model = train(streamcut.rows(X, y), **{**OPTIONS, "nystroem": 150}, bias=0, tol_relative=1e-4)
    assert model.certificate.lower_bound <= exact.certificate.primal * (1 + 1e-3)
    assert exact.certificate.lower_bound <= model.certificate.primal * (1 + 1e-3)


def test_other_tasks_take_features():
    X, _ = rings(300)
    y = np.digitize(np.sin(2 * X[:, 0]) + X[:, 1], [-0.5, 0.5]).astype(float)
    model = train(streamcut.rows(X, y), task="multiclass", **OPTIONS)
    assert evaluate(model, (X, y)).accuracy > 0.8
    with pytest.raises(UsageError, match="sequence"):
        train(streamcut.rows(X, y, qid=np.arange(300) // 3), task="sequence", solver="ocas", **OPTIONS)


def test_a_map_with_other_frequencies_is_refused():
    rng = np.random.default_rng(0)
    data = streamcut.rows(rng.standard_normal((40, 3)), np.where(rng.random(40) < 0.5, 1.0, -1.0))
    model = train(data, kernel="rbf", gamma=0.5, fourier=8)
    for frequencies in (model.map.frequencies[:, :3], model.map.frequencies[:3, :2]):
        with pytest.raises(ValueError, match="does not fit a map"):  # as it would be where a file is read
            replace(model, map=replace(model.map, frequencies=frequencies))
