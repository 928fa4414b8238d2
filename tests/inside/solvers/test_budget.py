"""Models on a budget: steps next to a slow version, the optimum without a budget, merging next to brute force."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.shared.budgeted_regression import GAMMA, NEVER, _rows
from reference.budget import best_merge, bsca, bsgd
from reference.kernels import matrix
from scipy.optimize import minimize, minimize_scalar

import streamcut
from streamcut.compiled import budget as passes
from streamcut.compiled import kernel_rows
from streamcut.compiled.budget import SparseRows
from streamcut.compiled.merging import best_h, best_partner, least_degradations, smallest
from streamcut.errors import BadInputError
from streamcut.io.memory import MemoryDataset
from streamcut.kernels.kernel import Kernel
from streamcut.losses import row_loss
from streamcut.solvers.budget import MODES, BudgetProblem, exported, new_slots


def two_classes(n=60, d=6, seed=0):
    generator = np.random.default_rng(seed)
    X = sp.csr_array(generator.normal(size=(n, d)) * (generator.random((n, d)) < 0.7))
    y = np.where(X.sum(axis=1) + 0.5 * generator.normal(size=n) > 0, 1.0, -1.0)
    C = generator.uniform(0.5, 3.0, n)
    return X, y, C, of_labels(X, y, C)


def of_labels(X, y, C):
    """Rows of two classes, y ±1, as compiled code takes them."""
    return SparseRows(X.indptr.astype(np.int64), X.indices, X.data, y, np.minimum(C * y, 0.0), np.maximum(C * y, 0.0), 0.0, 0)


def _slots(n, d, budget, maintenance, kernel=None):
    kernel = kernel or Kernel("rbf", gamma=GAMMA)
    model = new_slots(BudgetProblem(kernel, 1.0, (1.0,), n, d), budget, MODES[maintenance])
    return model, kernel.compiled, MODES[maintenance]


@pytest.mark.parametrize("maintenance", ["merge", "remove"])
def test_a_thousand_steps_are_those_of_the_slow_version(maintenance):
    X, y, C, rows = two_classes()
    order = np.random.default_rng(1).integers(0, 60, 1000)
    model, parameters, mode = _slots(60, 6, 20, maintenance)
    alpha = np.zeros(60)
    passes.ascend(order, rows, alpha, NEVER, parameters, mode, model)
    slow, slow_alpha = bsca(X.toarray(), y, C, GAMMA, 20, order, maintenance)
    np.testing.assert_allclose(alpha * y, slow_alpha, atol=1e-10)
    _assert_same(exported(model, 1.0), slow)
    assert model.counts[passes.MAINTAINED] > 100
    used = int(model.counts[passes.USED])
    np.testing.assert_allclose(model.R[:used].T, model.V[:, :used])
    np.testing.assert_allclose(model.square[:used], (model.R[:used] ** 2).sum(axis=1))
    assert model.sums[passes.ALPHA] == pytest.approx(slow_alpha.sum())


@pytest.mark.parametrize("maintenance", ["merge", "remove"])
def test_gradient_steps_are_those_of_the_slow_version(maintenance):
    X, y, C, rows = two_classes(seed=2)
    order = np.random.default_rng(3).integers(0, 60, 250)
    model, parameters, mode = _slots(60, 6, 15, maintenance)
    passes.descend(order, rows, 60, parameters, mode, model)
    _assert_same(exported(model, 1.0 / 250), bsgd(X.toarray(), y, C, GAMMA, 15, order, maintenance))


def _assert_same(found, slow):
    """The same vectors with the same coefficients, in any order."""
    coefficients, vectors = found
    expected = np.array([(beta, *z) for beta, z, _ in slow.vectors if beta != 0.0])
    both = np.column_stack([coefficients, vectors])
    assert both.shape == expected.shape
    np.testing.assert_allclose(both[np.lexsort(both.T)], expected[np.lexsort(expected.T)], rtol=1e-10, atol=1e-10)


TUBE = {"loss": "epsilon-insensitive", "epsilon": 0.2, "quantile": 0.5}
PART = {"loss": "quantile", "epsilon": 0.1, "quantile": 0.8}


def _problem(options, d, n, C=2.0, kernel=None, **more):
    loss = row_loss(options["loss"], options)
    return BudgetProblem(kernel or Kernel("rbf", gamma=GAMMA), C, (float("nan"),), n, d, loss=loss, **more)


def _box(options, C):
    """(low, high, ε) of the α of a row."""
    if options["loss"] == "quantile":
        return (options["quantile"] - 1.0) * C, options["quantile"] * C, 0.0
    return -C, C, options["epsilon"]


@pytest.mark.parametrize("options", [TUBE, PART], ids=lambda options: options["loss"])
def test_without_a_budget_the_dual_reaches_its_optimum(options):
    X, y, weight = _rows(weighted=True)
    problem = _problem(options, 5, 60, offset=7.0)
    rows = problem.rows(streamcut.rows(X, y, weight=weight).read(0), float("nan"))
    model, alpha, random = new_slots(problem, None, MODES["none"]), np.zeros(60), np.random.default_rng(1)
    for _ in range(300):
        passes.ascend(random.permutation(60), rows, alpha, NEVER, problem.kernel.compiled, MODES["none"], model)
    low, high, epsilon = _box(options, 2.0)
    K, z = matrix(problem.kernel, X, X), y - 7.0

    def lost(parts):  # α = p − q
        a = parts[:60] - parts[60:]
        slope = K @ a - z
        return 0.5 * a @ K @ a - a @ z + epsilon * parts.sum(), np.concatenate([slope + epsilon, epsilon - slope])

    limits = [(0.0, high * u) for u in weight] + [(0.0, -low * u) for u in weight]
    best = minimize(lost, np.zeros(120), jac=True, bounds=limits, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-14})
    ours = alpha @ z - epsilon * np.abs(alpha).sum() - 0.5 * alpha @ K @ alpha
    assert ours == pytest.approx(-best.fun, rel=1e-6)
    assert model.sums[passes.ALPHA] == pytest.approx(alpha @ z - epsilon * np.abs(alpha).sum())
    assert (low * weight <= alpha).all()
    assert (alpha <= high * weight).all()
    residual = z - K @ alpha
    primal = 0.5 * alpha @ K @ alpha
    primal += weight @ (np.maximum(residual - epsilon, 0.0) * high - np.maximum(-residual - epsilon, 0.0) * low)
    assert primal == pytest.approx(ours, rel=1e-4)


LEAST = least_degradations()


@settings(max_examples=150, deadline=None)
@given(st.floats(1e-6, 1.0), st.floats(1e-6, 1.0), st.floats(1e-12, 1.0))
def test_h_and_the_merged_coefficient_are_those_of_brute_force(a, b, kappa):
    m = a / (a + b)
    _, best = best_merge(a, b, kappa)
    h, s = best_h(m, kappa)
    assert 0.0 <= h <= 1.0
    assert (a + b) * s == pytest.approx(best, rel=1e-9)
    assert (a + b) * s == pytest.approx(a * kappa ** ((1 - h) ** 2) + b * kappa ** (h**2), rel=1e-12)
    assert a * a + b * b + 2 * a * b * kappa - ((a + b) * s) ** 2 >= -1e-12 * (a + b) ** 2


def _lost(h, m, kappa):
    return -(m * kappa ** ((1.0 - h) ** 2) + (1.0 - m) * kappa ** (h * h))


def test_h_is_right_to_one_in_ten_thousand_everywhere():
    generator = np.random.default_rng(0)
    near = [(0.5 + x * x * 0.05, np.exp(-2) + y**3 * 0.05) for x, y in generator.uniform(-1, 1, (200, 2))]
    for m, kappa in [*generator.uniform(0, 1, (600, 2)), *near]:
        side = (0.5, 1.0) if m >= 0.5 else (0.0, 0.5)  # which has no other maximum
        found = minimize_scalar(_lost, args=(m, kappa), bounds=side, method="bounded", options={"xatol": 1e-9})
        h, best = found.x, -found.fun
        our_h, our_s = best_h(m, kappa)
        assert our_s == pytest.approx(best, rel=1e-9)
        if abs(m - 0.5) > 1e-6:  # at 1/2 there are two
            assert abs(our_h - h) < 1e-4, (m, kappa)


def test_edges():
    assert best_h(1.0, 0.5) == (1.0, 1.0)
    assert best_h(0.25, 0.0) == (0.0, 0.75)
    h, s = best_h(0.7, 1.0)
    assert (h, s) == (pytest.approx(0.7), pytest.approx(1.0))
    for kappa in (0.9, 0.1361, np.exp(-2.0)):
        assert best_h(0.5, kappa)[0] == 0.5


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0.01, 1.0, 20.0, 400.0]), st.sampled_from([0.1, 3.0, 30.0]))
def test_the_partner_is_the_best_of_all(seed, distance, spread):
    generator = np.random.default_rng(seed)
    n = int(generator.integers(2, 40))
    beta = np.exp(spread * generator.normal(size=n)) * generator.choice([-1.0, 1.0], n)
    kappa, least = np.exp(-distance * generator.random(n)), smallest(beta, n)
    lost = {}
    for j in range(n):
        if j != least and beta[j] * beta[least] > 0.0:
            h, merged = best_merge(abs(beta[least]), abs(beta[j]), kappa[j])
            lost[j] = beta[least] ** 2 + beta[j] ** 2 + 2 * beta[least] * beta[j] * kappa[j] - merged**2, h, merged
    found = best_partner(least, beta, kappa, n, LEAST, np.empty(n, np.int32), np.empty(n))
    if not lost:
        assert found[0] == -1
        return
    size = np.max(beta**2)  # of what degradations are the difference of
    assert found[1] == pytest.approx(lost[found[0]][0], abs=1e-11 * size)
    assert found[1] <= min(line[0] for line in lost.values()) + 1e-11 * size
    assert found[3] == pytest.approx(lost[found[0]][2], rel=1e-9)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=50))
def test_the_smallest_is_the_first_of_the_smallest(values):
    assert smallest(np.array(values), len(values)) == np.argmin(np.abs(values))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-750.0, 0.0), min_size=1, max_size=40))
def test_the_exponential(xs):
    x, out = np.array([*xs, 0.0]), np.empty(len(xs) + 1)
    kernel_rows.kernel_values(np.zeros(len(x)), 0.0, -x, np.uint64(len(x)), Kernel("rbf", 1.0).compiled, out)
    seen = x > -700.0
    np.testing.assert_allclose(out[seen], np.exp(x[seen]), rtol=1e-15)
    assert np.all(out[~seen] < 1e-303)
    assert out[-1] == 1.0


ODD = [np.nan, np.inf, -np.inf, 1.0000001, 1e300, -1.0]


@pytest.mark.parametrize("odd", ODD)
def test_odd_kernel_values_find_no_place_outside_the_tables(odd):
    assert best_h(0.7, odd) == (1.0, 0.7)
    beta, k = np.array([1.0, 0.5, 2.0, -1.0, 100.0]), np.array([1.0, 0.3, odd, 0.2, odd])
    slot, *_ = best_partner(1, beta, k, 5, LEAST, np.empty(5, np.int32), np.empty(5))
    assert slot in (-1, 0, 2, 4)


@pytest.mark.parametrize("odd", [np.nan, np.inf, 1e300])
def test_odd_coefficients_find_no_place_outside_the_tables(odd):
    assert best_h(odd, 0.5)[0] == 1.0
    beta, k = np.array([1.0, odd, 2.0, odd]), np.array([1.0, 0.3, 0.5, 0.2])
    for least in (0, 1):
        slot, *_ = best_partner(least, beta, k, 4, LEAST, np.empty(4, np.int32), np.empty(4))
        assert -1 <= slot < 4
        assert slot != least


def test_fewer_features_than_the_matrix_has_are_refused():
    with pytest.raises(BadInputError, match="X has 5 features, but n_features is 3"):
        MemoryDataset(np.eye(5), np.arange(5.0), n_features=3)
