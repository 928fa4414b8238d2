"""Every training ends at its gap, in about as many passes as the same problem takes alone."""

import numpy as np
import pytest

import streamcut

MOST = 150  # passes; the runs below take a tenth of them to half


def unscaled(rows=400, features=6, classes=3, seed=0):
    """(X, y): rows whose features differ in size by four orders of magnitude, with noisy linear classes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, features)) * 10.0 ** rng.uniform(-1.0, 3.0, features)
    scores = X / X.std(axis=0) @ rng.standard_normal((features, classes)) + rng.standard_normal((rows, classes))
    return X, scores.argmax(axis=1).astype(float)


@pytest.mark.parametrize(("loss", "C", "row_cache"), [("squared-hinge", 100.0, "auto"), ("logistic", 100.0, "0")])
def test_one_against_the_rest_does_not_diverge_where_nothing_bounds_dual_variables(loss, C, row_cache):
    rng = np.random.default_rng(1)
    X = (rng.random((600, 120)) < 0.25).astype(float)
    y = (X @ rng.standard_normal((120, 3)) + 0.3 * rng.standard_normal((600, 3))).argmax(axis=1).astype(float)
    options = {"loss": loss, "C": C, "row_cache": row_cache, "solver": "bundle-dca", "max_passes": MOST}
    assert streamcut.train((X, y), task="multiclass", strategy="one-vs-rest", **options).converged
