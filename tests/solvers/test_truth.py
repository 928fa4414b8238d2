"""lower bound ≤ optimum ≤ F(w) ≤ primal, in exact arithmetic and in 500 bits, wherever numbers are badly scaled."""

from __future__ import annotations

import numpy as np
import pytest
from reference import truth
from sklearn.linear_model import Ridge

import streamcut
from streamcut import train

# --- a column that is 10⁹ times as large as the others ------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_large_columns_leave_a_free_intercept_and_its_bound_what_they_are(loss):
    """As large as those of tables are: an intercept in units of 1 would lose it to their rounding."""
    rng = np.random.default_rng(5)
    X = rng.gamma(1.0, 1.0, (400, 6)) * [1.0, 1e6, 2e6, 50.0, 1e3, 1e4]
    y = X @ [1.0, 1e-6, -1e-6, 0.1, 1e-3, 1e-4] + rng.standard_normal(400) + 7.0
    asked = {"task": "regression", "loss": loss, "intercept": "free", "solver": "newton", "tol": None, "tol_relative": 1e-7}
    model = train((X, y), **asked, max_passes=40)
    assert model.certificate.gap <= 1e-7 * model.certificate.primal
    assert streamcut.verify(model, (X, y)).consistent
    if loss == "squared":
        np.testing.assert_allclose(model.intercept, Ridge(alpha=1.0).fit(X, y).intercept_, rtol=1e-6)


def test_a_stop_for_rounding_names_the_column_and_the_option():
    rng = np.random.default_rng(3)
    X = np.c_[rng.normal(size=(12, 2)), 1.6e9 + 3e6 * rng.random(12)]  # two small columns and a Unix time
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=12) > 0.0, 1.0, -1.0)
    found = streamcut.train((X, y), tol=None, tol_relative=1e-15, max_passes=400).certificate
    assert found.stop_reason in ("stalled", "scale")
    assert "feature 2 is" in found.in_words()
    assert "scale std brings them to similar sizes" in found.in_words()


@pytest.mark.parametrize("seed", [14, 398])
def test_ocas_returns_the_best_point_that_it_was_at(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 6)), int(rng.integers(1, 5))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-3, 4, size=(1, d))
    y = np.where(rng.random(n) > 0.5, 1.0, -1.0)
    y[0], y[-1] = 1.0, -1.0
    C, loss = 10.0 ** rng.uniform(-2, 5), str(rng.choice(["error", "f1", "prbep"]))
    model = streamcut.train((X, y), loss=loss, C=C, bias=10.0, tol_relative=1e-13, tol=None, max_passes=100)
    assert model.certificate.primal <= min(line["primal"] for line in model.history) * (1.0 + 1e-9)


# --- every kind of problem, badly scaled ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", truth.KINDS)
def test_claims_hold_against_the_optimum_in_500_bits(kind):
    false = [violation for seed in range(2) for violation in truth.check(kind, seed)]
    assert not false, false[:3]


@pytest.mark.parametrize("loss", ["squared-hinge", "logistic"])
def test_a_better_point_from_before_is_not_taken_for_one_that_rounding_made(loss):
    """Rounding of the last step is no reason for the gap of the point that is returned."""
    assert truth.check(f"one-vs-rest {loss} free l1", 28) == []
