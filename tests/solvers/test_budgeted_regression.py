"""Numbers on a budget: support vector and quantile regression by BSCA and BSGD."""

from __future__ import annotations

import numpy as np
import pytest
from kit.shared.budgeted_regression import GAMMA, _rows

import streamcut


def test_a_budget_of_vectors_fits_a_curve_and_its_quantiles():
    random = np.random.default_rng(4)
    X = random.uniform(0.0, 6.0, (2000, 1))
    y = 100.0 + 3.0 * np.sin(X[:, 0]) + random.normal(size=2000)
    options = {"kernel": "rbf", "gamma": 1.0, "C": 5.0, "budget": 25, "epochs": 5.0, "task": "regression"}
    model = streamcut.train((X, y), **options)
    assert (model.task, model.parameters["loss"], model.n_support <= 25) == ("regression", "epsilon-insensitive", True)
    assert model.intercept == pytest.approx(y.mean(), rel=1e-15)
    assert np.mean((model.predict(X) - 100.0 - 3.0 * np.sin(X[:, 0])) ** 2) < 0.1
    assert streamcut.evaluate(model, (X, y)).r2 > 0.8
    assert model.history[-1]["dual"] <= model.history[-1]["primal_met"]
    upper = streamcut.train((X, y), **options, loss="quantile", quantile=0.9)
    assert np.mean(y <= upper.predict(X)) == pytest.approx(0.9, abs=0.04)


def test_validation_is_told_as_r2(tmp_path):
    X, y, _ = _rows(n=200, seed=6)
    lines = (
        f"{float(t)!r} " + " ".join(f"{j + 1}:{float(v)!r}" for j, v in enumerate(x)) for t, x in zip(y, X.toarray(), strict=True)
    )
    (tmp_path / "rows.svm").write_text("\n".join(lines) + "\n")
    streamcut.convert(str(tmp_path / "rows.svm"), str(tmp_path / "rows.zarr"), dtype="float64")
    store = str(tmp_path / "rows.zarr")
    model = streamcut.train(store, kernel="rbf", gamma=GAMMA, budget=20, epochs=2.0, validation=store)
    assert model.task == "regression", "the labels are real numbers"
    assert model.history[-1]["validation"] == pytest.approx(streamcut.evaluate(model, store).r2)
    assert model.history[-1]["accuracy_met"] is None
