"""lower bound ≤ optimum ≤ F(w) ≤ primal, in exact arithmetic and in 500 bits, wherever numbers are badly scaled."""

from __future__ import annotations

import numpy as np
import pytest
from reference import truth
from sklearn.linear_model import Ridge

import streamcut
from streamcut import train

# --- a column that is 10⁹ times as large as the others ------------------------------------------------------------------------


def stamped(n: int = 60, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Two small columns and a Unix time, and what depends on the first."""
    rng = np.random.default_rng(seed)
    X = np.c_[rng.normal(size=(n, 2)), 1.6e9 + 3e6 * rng.random(n)]
    return X, X[:, 0] + 0.7 * rng.normal(size=n)


OPTIMA = {"hinge": 23.59037595177345, "logistic": 23.2174818287, "squared": 13.7706932231}  # in exact arithmetic and in 80 digits


@pytest.mark.parametrize("loss", OPTIMA)
def test_one_column_of_1e9_trains_at_default_options(loss):
    X, z = stamped()
    y, task = (z + 10.0, {"task": "regression"}) if loss == "squared" else (np.where(z > 0.0, 1.0, -1.0), {})
    found = streamcut.train((X, y), loss=loss, max_passes=100, **task).certificate
    assert found.converged
    assert found.lower_bound <= OPTIMA[loss] * (1.0 + 1e-11)  # as many digits as are written above
    assert OPTIMA[loss] * (1.0 - 1e-11) <= found.primal <= 1.01 * OPTIMA[loss]


@pytest.mark.parametrize("C", [1.0, 1e4])
def test_a_column_of_1e8_trains_as_well_with_a_large_c(C):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 5))
    X[:, 4] = 1e8 * (1.0 + 0.01 * rng.random(40))
    y = X[:, 0] + 0.7 * rng.normal(size=40) + 10.0
    assert streamcut.train((X, y), task="regression", loss="squared", C=C, max_passes=200).certificate.converged


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
    X, z = stamped(12)
    y = np.where(z > 0.0, 1.0, -1.0)
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


# --- what is not finite -------------------------------------------------------------------------------------------------------


def test_counts_with_a_price_of_weights_are_finite_and_converge():
    X, y = np.array([[-1800.0], [0.0]]), np.array([0.0, 174.0])
    model = streamcut.train((X, y), task="regression", loss="poisson", l1=0.0177, bias=10, max_passes=60)
    assert model.certificate.converged
    assert model.certificate.primal == pytest.approx(0.14241839, rel=0.01)
    assert np.isfinite(model.weights).all()


@pytest.mark.parametrize("C", [1e8, 1e12])
def test_separable_data_is_converged_only_within_both_tolerances(C):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 5))
    y = np.sign(X[:, 0] + 0.5 * np.sign(X[:, 0]))
    model = train(streamcut.rows(X, y), loss="logistic", C=C, max_passes=150)
    certificate = model.certificate
    assert certificate.gap <= min(1e-3 * certificate.c_bar, 0.01 * certificate.primal) or not certificate.converged
    assert certificate.converged == (certificate.stop_reason == "converged")
    assert model.history[-1]["waits_for"] == certificate.tolerance.rule == "tol_relative 0.01"


@pytest.mark.parametrize("kind", truth.KINDS)
def test_claims_hold_against_the_optimum_in_500_bits(kind):
    false = [violation for seed in range(2) for violation in truth.check(kind, seed)]
    assert not false, false[:3]


# --- the best point -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared-hinge", "logistic"])
def test_a_better_point_from_before_is_not_taken_for_one_that_rounding_made(loss):
    """Rounding of the last step is no reason for the gap of the point that is returned."""
    assert truth.check(f"one-vs-rest {loss} free l1", 28) == []
