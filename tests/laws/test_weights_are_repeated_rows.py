"""A row of weight 2 is two rows, one of weight 0 none: also where classes are balanced."""

from __future__ import annotations

import numpy as np
import pytest

from streamcut.sklearn import KernelSVM, LinearSVM, LogisticRegression

ESTIMATORS = {
    "squared hinge": (LinearSVM, {"loss": "squared-hinge"}),
    "logistic": (LogisticRegression, {}),
    "one against the rest": (LinearSVM, {"strategy": "one-vs-rest", "loss": "logistic"}),
    "kernel": (KernelSVM, {"kernel": "linear"}),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_balanced_classes_count_weights(name):
    make, options = ESTIMATORS[name]
    r = np.random.default_rng(3)
    X = r.normal(size=(200, 3))
    y = np.digitize(X[:, 0] + 0.8 * r.normal(size=200), [0.5, 1.2] if "rest" in name else [0.5])
    times = r.integers(0, 4, 200) * np.where(y == 1, 3, 1)
    weighted, repeated = (make(class_weight="balanced", tol=1e-5, tol_relative=1e-5, max_time=30.0, **options) for _ in range(2))
    weighted.fit(X, y, sample_weight=times.astype(float))
    repeated.fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=0.05)
