"""What holds of every exact kernel machine: it ends, its bound and its objective are true, a free intercept is LIBSVM's."""

from __future__ import annotations

import time

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.svm import SVC

import streamcut
from streamcut.errors import BadInputError
from streamcut.sklearn import KernelSVM

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
KERNELS = {
    "linear": ({"kernel": "linear"}, lambda X, Z: X @ Z.T),
    "rbf": ({"kernel": "rbf", "gamma": 0.5}, lambda X, Z: rbf_kernel(X, Z, 0.5)),
    "poly": ({"kernel": "poly", "gamma": 0.5, "degree": 3, "coef0": 1.0}, lambda X, Z: polynomial_kernel(X, Z, 3, 0.5, 1.0)),
}


def objective(model, X, y, C, k) -> float:
    """½‖w‖² + C Σ max(0, 1 − y f(x)), written out."""
    support = model.support.toarray()
    square = model.coefficients @ k(support, support) @ model.coefficients
    scores = k(X, support) @ model.coefficients + model.intercept
    return float(0.5 * square + np.sum(C * np.maximum(0.0, 1.0 - y * scores)))


def noisy(n=60, d=3, offset=0.0):
    rng = np.random.default_rng(19)
    X = rng.standard_normal((n, d))
    y = np.where(rng.random(n) < 0.2, -1.0, 1.0) * np.where(X @ np.arange(1.0, d + 1) > 0, 1.0, -1.0)
    return X + offset, y


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("C", [1e-4, 1e-3, 1e-2])
def test_a_free_intercept_is_the_middle_of_those_that_are_best(kernel, C):
    """Where all dual variables are at a bound, one end of the interval would predict one class alone."""
    X, y = make_blobs(n_samples=200, centers=2, cluster_std=1.0, random_state=0)
    ours, theirs = KernelSVM(C=C, kernel=kernel).fit(X, y), SVC(C=C, kernel=kernel).fit(X, y)
    assert ours.score(X, y) >= theirs.score(X, y) - 0.01
    assert ours.intercept_[0] == pytest.approx(theirs.intercept_[0], abs=0.02)
    assert ours.lower_bound_ <= ours.primal_objective_ * (1 + 1e-12)


def test_the_middle_counts_weights_and_costs_nothing():
    """Weights whose sums are equal only up to rounding: 3 · 0.1 and 0.3."""
    X, y = np.array([[-1.0], [1.0], [1.1], [1.2]]), np.array([-1.0, 1.0, 1.0, 1.0])
    weight = np.array([0.3, 0.1, 0.1, 0.1])
    model = streamcut.train((X, y, weight), solver="smo", C=1e-3, tol_relative=1e-9)
    b = model.intercept
    assert b == pytest.approx(0.0, abs=1e-2)
    assert objective(model, X, y, 1e-3 * weight, KERNELS["linear"][1]) == pytest.approx(model.certificate.primal, rel=1e-9)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("C", [1e-12, 1e3, 1e12])
def test_every_training_ends_with_a_true_certificate(C, kernel, fit_intercept):
    X, y = noisy()
    options, k = KERNELS[kernel]
    bias = float(fit_intercept)
    model = streamcut.train((X, y), solver="smo", C=C, bias=bias, workers=1, max_time=100.0, **options)
    found, F = model.certificate, objective(model, X, y, C, k)
    assert found.stop_reason != "time"
    assert found.lower_bound <= F * (1 + 1e-9)
    assert F * (1 - 1e-9) <= found.primal <= F * (1 + 1e-6) + 1e-6 * C
    assert found.converged or C > 1.0
    assert found.converged == (found.gap <= found.tolerance.gap)


@pytest.mark.parametrize("options", [{"degree": 2, "coef0": 1.0}, {"degree": 3}], ids=["degree 2", "degree 3"])
def test_polynomials_of_rows_far_from_the_origin_end(options):
    """Values near 1e8 and 1e12, of which float32 keeps seven digits."""
    r = np.random.RandomState(0)
    X, y = r.normal(loc=100, size=(100, 2)), np.where(r.randint(0, 2, size=100) > 0, 1.0, -1.0)
    ours = KernelSVM(kernel="poly", gamma=0.5, max_time=100, workers=1, **options).fit(X, y)
    assert ours.model_.stop_reason != "time"
    assert ours.converged_ or "steps" in ours.model_.in_words()
    assert ours.converged_ or options["degree"] == 3
    F = objective(ours.model_, X, y, 1.0, lambda X, Z: polynomial_kernel(X, Z, options["degree"], 0.5, options.get("coef0", 0)))
    assert ours.lower_bound_ <= F * (1 + 1e-6)
    assert ours.primal_objective_ >= F * (1 - 1e-6)


def test_a_kernel_far_from_the_origin_is_the_kernel_near_it():
    """With a free intercept only differences of rows count: the linear kernel of whole numbers, shifted."""
    rng = np.random.default_rng(3)
    X = rng.integers(-8, 9, (80, 3)).astype(float)
    y = np.where(X @ [1.0, -2.0, 0.5] + 3.0 * rng.standard_normal(80) > 0, 1.0, -1.0)
    near, far = (streamcut.train((X + shift, y), solver="smo", C=1.0, tol_relative=1e-6) for shift in (0.0, 128.0))
    assert far.converged
    assert far.certificate.primal == pytest.approx(near.certificate.primal, rel=1e-5)


def test_a_limit_of_time_holds_within_the_first_steps():
    """Columns that take long: 6,000 rows of 1,500 features each."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((6000, 1500)), np.where(rng.random(6000) < 0.5, 1.0, -1.0)
    streamcut.train((X[:50], y[:50]), solver="smo", kernel="rbf", workers=1)  # kernels are compiled
    started = time.monotonic()
    model = streamcut.train((X, y), solver="smo", kernel="rbf", gamma=1e-4, C=1e6, workers=1, max_time=0.2)
    assert model.stop_reason == "time"
    assert model.facts["evaluations"] < 200 * 6000, "far fewer columns than rows"
    assert time.monotonic() - started < 30.0


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_large_weight_of_losses_does_not_keep_training_from_its_first_row(kernel):
    rng = np.random.default_rng(19)
    X = rng.normal(size=(400, 6))
    z = X @ rng.normal(size=6)
    X, y = X[abs(z) > 0.4], np.sign(z[abs(z) > 0.4])
    ours = KernelSVM(kernel=kernel, C=1e12, max_time=15.0).fit(X, y)
    assert ours.model_.stop_reason != "time"
    assert ours.score(X, y) == 1.0
    assert ours.lower_bound_ <= ours.primal_objective_


def test_kernel_values_that_float32_does_not_hold_are_refused():
    X, y = noisy()
    with pytest.raises(BadInputError, match=r"values of poly reach .*scale the features"):
        streamcut.train((1e5 * X, y), solver="smo", kernel="poly", gamma=1.0, degree=10)


def test_weights_of_all_sizes_balance():
    """Dual variables of which one is nothing next to another still add up to 0 exactly: the bound is one."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((20, 3)), np.where(np.arange(20) % 2, 1.0, -1.0)
        weight = 10.0 ** rng.choice([-30, -20, -10, 0, 3], 20)
        model = streamcut.train((X, y, weight), solver="smo", kernel="rbf", gamma=0.5, C=10.0)
        F = objective(model, X, y, 10.0 * weight, KERNELS["rbf"][1])
        assert model.certificate.lower_bound <= F * (1 + 1e-9)
        assert model.certificate.primal >= F * (1 - 1e-9)
