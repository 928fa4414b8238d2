"""BSCA and BSGD: against a slow version, against the optimum, on real data, in files, stopped and gone on with."""

from __future__ import annotations

import numpy as np

import streamcut


def test_a_model_without_a_budget_is_trained_for_many_epochs(load):
    X, y = load("a9a")
    options = {"kernel": "rbf", "gamma": 0.0078125, "C": 32.0, "maintenance": "none", "solver": "bsca", "epochs": 60.0}
    model = streamcut.train(streamcut.rows(X[:500], y[:500]), **options)
    assert model.n_support <= 500
    assert model.facts["dual"] <= model.facts["primal_met"]
    assert model.facts["dual"] > 0.9 * model.facts["primal_met"]


def test_several_classes(load):
    X, y = load("dna")
    Xt, yt = load("dna", "test")
    model = streamcut.train(streamcut.rows(X, y), kernel="rbf", task="multiclass", gamma=0.01, C=10.0, budget=100, epochs=2.0)
    assert np.mean(model.predict(Xt) == yt) > 0.93


def test_one_epoch_of_adult_is_as_good_as_the_paper(load):
    (X, y), test = load("a9a"), load("a9a", "test")
    found = {}
    for solver in ("bsca", "bsgd"):
        models = [
            streamcut.train(streamcut.rows(X, y), kernel="rbf", gamma=2**-7, C=32.0, solver=solver, seed=s) for s in range(3)
        ]
        found[solver] = [streamcut.evaluate(model, test).accuracy for model in models]
    assert np.mean(found["bsca"]) >= 0.83
    assert np.mean(found["bsca"]) > np.mean(found["bsgd"])
    assert np.std(found["bsca"]) < np.std(found["bsgd"])
