"""Options that follow from others, and rows of weight 0, which are rows that are not there."""

from __future__ import annotations

import numpy as np
import pytest
from kit.shared.options_and_weights import X, Y, with_hidden

import streamcut
from streamcut import calibrate


def test_kernel_poly_alone_trains():
    model = streamcut.train((X, Y), kernel="poly", gamma=0.5, coef0=1.0, budget=20)
    assert model.parameters["maintenance"] == "project"
    assert model.n_support <= 20
    assert streamcut.train((X, Y), kernel="rbf", budget=20).parameters["maintenance"] == "merge"


def test_a_target_may_weigh_nothing():
    Z, _, weight, counts = with_hidden(1.0)
    y = np.where(counts, 3.0, -7.25)
    y[counts] += X[:, 0]
    model = streamcut.train((Z, y, weight), task="regression", tol_relative=1e-6)
    expected = streamcut.train((X, y[counts]), task="regression", tol_relative=1e-6)
    np.testing.assert_allclose(model.weights, expected.weights, atol=1e-3)
    counted = np.where(counts, 2.0, 9.0)
    streamcut.train((Z, counted, weight), task="regression", loss="poisson", max_passes=5)


@pytest.mark.parametrize("classes", [2, 3])
def test_calibration_counts_weights(classes):
    Z, y, weight, counts = with_hidden(1e3)
    if classes == 3:
        y[counts] = np.digitize(X[:, 0], [-0.5, 0.5])
    y[~counts] = y[counts][0]
    model = streamcut.train((X, y[counts]), task="binary" if classes == 2 else "multiclass")
    hidden, shown = calibrate(model, (Z, y, weight)).link, calibrate(model, (X, y[counts])).link
    for name in hidden.__dataclass_fields__:
        np.testing.assert_allclose(getattr(hidden, name), getattr(shown, name), rtol=1e-9)
