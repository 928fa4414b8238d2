"""Kernel Pegasos, SDCA and the Perceptron against what they are said to compute."""

from __future__ import annotations

import pytest
from kit.shared.kernel_baselines import problem

import streamcut


@pytest.mark.parametrize("solver", ["pegasos", "sdca", "perceptron"])
def test_same_model_however_it_is_run(solver):
    X, signs = problem(n=200)
    options = {"solver": solver, "kernel": "rbf", "gamma": 0.4, "bias": 0, "epochs": 2, "batch": 3}
    models = [
        streamcut.train(streamcut.rows(X, signs, shard_nnz=shard_nnz), workers=workers, **options)
        for shard_nnz, workers in ((1 << 20, 1), (150, 2))
    ]
    scores = {model.decision_function(X).tobytes() for model in models}
    assert len(scores) == 1
    assert models[0].history[-1]["rows_seen"] >= 400


def test_gamma_auto_is_that_of_scikit_learn():
    X, signs = problem()
    model = streamcut.train(streamcut.rows(X, signs), solver="smo", kernel="rbf")
    assert model.kernel.gamma == pytest.approx(1.0 / (X.shape[1] * X.toarray().var()), rel=1e-12)
