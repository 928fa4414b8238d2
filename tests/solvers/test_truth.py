"""No false stop, no lost point, nothing that is not finite: trainings against optima in 500 bits, and data that is badly scaled.

scripts/checks/check_truth.py tries as many more problems as one likes.
"""

import numpy as np
import pytest
from kit.nights import by_night
from reference import truth

import streamcut
from streamcut.bundle.kinks import Kinks, minimise_with_kinks
from streamcut.bundle.precise_master import solve_precisely
from streamcut.bundle.shelf import MEMORY
from streamcut.bundle.verified_master import solve_verified
from streamcut.models.certificate import Certificate, StopReason
from streamcut.solvers.best import Best
from streamcut.solvers.standstill import Standing, Standstill

EACH = 200 // len(truth.KINDS) + 1


# Alike with others but for the loss, and slow.
NIGHTLY = [kind for kind in truth.KINDS if kind.endswith("l1") and kind.split()[0] not in ("hinge", "logistic", "poisson")]


@pytest.mark.thirds
@pytest.mark.parametrize("kind", by_night(truth.KINDS, NIGHTLY))
def test_claims_hold_against_the_optimum_in_500_bits(kind):
    false = [violation for seed in range(EACH) for violation in truth.check(kind, seed)]
    assert not false, false[:3]


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


def test_the_price_of_weights_changes_nothing_about_that():
    X, z = stamped()
    assert streamcut.train((X, np.where(z > 0.0, 1.0, -1.0)), l1=0.1, max_passes=100).certificate.converged


def test_a_stop_for_rounding_names_the_column_and_the_option():
    X, z = stamped(12)
    y = np.where(z > 0.0, 1.0, -1.0)
    found = streamcut.train((X, y), tol=None, tol_relative=1e-15, max_passes=400).certificate
    assert found.stop_reason in (StopReason.STALLED, StopReason.SCALE)
    assert "feature 2 is" in found.in_words()
    assert "scale brings columns" in found.in_words()


# --- the master problem -------------------------------------------------------------------------------------------------------


def cuts(large: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(8, 4))
    rows[:, 3] *= large
    rows[0], b = 0.0, np.append(0.0, rng.random(7))
    return rows, b


@pytest.mark.parametrize("l1", [0.0, 0.05])
@pytest.mark.parametrize("large", [1.0, 1e6, 1e9])
def test_its_gap_is_known_whatever_the_columns(large, l1):
    rows, b = cuts(large)
    beta = np.append(60.0, np.zeros(7))
    found = solve_verified(rows, rows @ rows.T, b, 60.0, beta, 1e-8, l1)
    assert found.gap <= 1e-6
    v = -(beta @ rows) if found.v is None else found.v
    w = np.sign(v) * np.maximum(np.abs(v) - l1, 0.0)
    assert 60.0 * np.max(b + rows @ w) - beta @ (b + rows @ w) <= 1e-6  # of what w says of itself


def test_more_digits_find_what_fewer_do():
    rows, b = cuts(1.0)
    few, many = np.append(60.0, np.zeros(7)), np.append(60.0, np.zeros(7))
    solve_verified(rows, rows @ rows.T, b, 60.0, few, 1e-12)
    assert solve_precisely(rows, b, 60.0, many, 1e-12).gap <= 1e-11
    np.testing.assert_allclose(few, many, atol=1e-9)


def test_its_value_never_falls_even_where_it_cannot_be_solved():
    rows, b = cuts(1e200)  # whose products are not float64
    beta = np.append(60.0, np.zeros(7))
    with np.errstate(all="ignore"):
        gram = rows @ rows.T
        solve_verified(rows, gram, b, 60.0, beta, 1e-8)
    np.testing.assert_array_equal(beta, np.append(60.0, np.zeros(7)))


def test_its_gap_is_no_rounding():
    standstill = Standstill()
    for _ in range(10):
        standstill.see(Standing(primal=10.0, value=9.0, qp_gap=5.0, error=0.0, full=False))
    assert standstill.reason() is StopReason.SCALE


# --- the best point -----------------------------------------------------------------------------------------------------------


def test_only_a_lower_and_finite_objective_is_taken():
    zero, other = np.zeros(2), np.ones(2)
    best = Best(zero, 5.0, 0.0)
    assert not any(best.offer(other, F, 0.0) for F in (6.0, np.inf, np.nan))
    assert best.w is zero
    assert best.offer(other, 4.0, 1.0)
    assert best.F == 4.0


def test_the_point_before_a_doubtful_step_is_kept():
    moving = np.ones(2)
    best = Best(moving, 5.0, 0.0)
    best.before(moving, doubt=1e-6, gap=1.0, shelf=MEMORY)
    assert best.w is moving
    best.before(moving, doubt=1.0, gap=1.0, shelf=MEMORY)
    moving += 1.0
    best.offer(moving, 9.0, 4.0)
    assert best.F == 5.0
    assert best.w.tolist() == [1.0, 1.0]


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


def test_a_line_on_which_the_loss_is_infinite_is_searched_nearer():
    def slopes(k: float) -> tuple[float, float]:
        with np.errstate(over="ignore"):
            return float(np.exp(1e3 * k) - 2.0), float(1e3 * np.exp(1e3 * k))

    kinks = Kinks(np.array([0.0, 1.0]), np.array([1.0, 1.0]), 0.1)
    k = minimise_with_kinks(1e-9, -1e-9, 1.0, slopes, kinks)
    assert k == pytest.approx(np.log(1.8) / 1e3, rel=1e-6)


def test_a_certificate_says_its_detail():
    words = Certificate(10.0, 9.0, 1e3, 1e-3, 1e-2, False, StopReason.SCALE, detail="feature 2 is large; --scale").in_words()
    assert "columns of one size (scale) or more max_cuts may help (feature 2 is large; scale), and the gap is 1" in words


@pytest.mark.parametrize("loss", ["squared-hinge", "logistic"])
def test_a_better_point_from_before_is_not_taken_for_one_that_rounding_made(loss):
    """Rounding of the last step is no reason for the gap of the point that is returned."""
    assert truth.check(f"one-vs-rest {loss} free l1", 28) == []
