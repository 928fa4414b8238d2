"""Kernels, line search, master problem and the solvers against their slow versions, and what must never change the answer."""

from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kit.linear_solver import dense, problem
from reference import svm

from streamcut.bundle.bundle import Bundle
from streamcut.bundle.line_search import minimise_along_line
from streamcut.bundle.verified_master import solve_master
from streamcut.compiled import linear, row_losses
from streamcut.errors import BadInputError, CorruptError, MemoryBudgetError, UsageError
from streamcut.execution.lanes import plan_lanes
from streamcut.foundation.rounding import CutError, Grids
from streamcut.io.memory import MemoryDataset
from streamcut.losses.hinge import Hinge
from streamcut.models.certificate import StopReason
from streamcut.solvers.progress import StoppingRule
from streamcut.solvers.state import qp_tolerance
from streamcut.training import train

EXACT = CutError(0.0, 0.0)


@cache
def enclosed_optimum(weights, positive_weight, bias):
    """(primal, dual) around min F of `problem(120, weights=weights, seed=3)` at C = 0.8, and the rows' weights."""
    X, y, u = problem(120, weights=weights, seed=3)
    sign = np.where(y == 3.0, 1.0, -1.0)
    every = (np.ones(len(y)) if u is None else u) * np.where(sign > 0, positive_weight, 1.0)
    return *svm.optimum(dense(X, bias), sign, 0.8, every), every


class _Rows:
    """LossAlongLine over plain arrays, cut into two parts as lanes would."""

    def __init__(self, z_b, z, u):
        half = len(z) // 2
        self.parts = [(z_b[s].copy(), z[s].copy(), u[s].copy()) for s in (slice(half), slice(half, None))]

    def slope_at_zero(self):
        sums = np.zeros(2)
        for part in self.parts:
            row_losses.slope_at_zero(Hinge(), *part, sums)
        return sums.sum()

    def histogram(self, edges):
        jumps, counts = np.zeros(len(edges) - 1), np.zeros(len(edges) - 1, np.int64)
        for part in self.parts:
            row_losses.breakpoint_histogram(Hinge(), *part, edges, jumps, counts)
        return jumps, counts

    def breakpoints(self, low, high, count):
        k, jump = np.empty(count + 1), np.empty(count + 1)
        n = 0
        for part in self.parts:
            n += row_losses.breakpoints_between(Hinge(), *part, low, high, k[n:], jump[n:])
        assert n == count
        return k[:n], jump[:n]


numbers = st.one_of(st.floats(-4, 4), st.sampled_from([0.0, 1.0, -1.0, 0.5, 1.0 + 1e-15]))


@settings(max_examples=200, deadline=None)
@example(rows=[(0.0, 0.0, 1.0), (0.0, 1.1e-308, 1.0)], A0=2.0, B0=0.0)
@given(st.lists(st.tuples(numbers, numbers, st.floats(0.01, 5)), min_size=1, max_size=30), st.floats(1e-6, 10), st.floats(-5, 5))
def test_line_search_equals_sorting(rows, A0, B0):
    z_b, z, u = (np.array(column) for column in zip(*rows, strict=True))
    expected = svm.line_search_by_sorting(A0, B0, 0.7, z_b, z, u)
    found = minimise_along_line(A0, B0, 0.7, _Rows(z_b, z, u))
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("copies", [1, 20_000])
def test_line_search_with_many_breakpoints_in_one_place(copies):
    rng = np.random.default_rng(1)
    z_b, z = rng.normal(0, 1, 50_000), rng.normal(1, 1, 50_000)
    z_b[:copies], z[:copies] = 0.25, 1.5  # all at k = 0.6
    u = rng.uniform(0.5, 2, 50_000)
    expected = svm.line_search_by_sorting(30_000.0, -9000.0, 1.0, z_b, z, u)
    assert minimise_along_line(30_000.0, -9000.0, 1.0, _Rows(z_b, z, u)) == pytest.approx(expected, rel=1e-12)
    assert expected > 0.0


@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.float64, None])
@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_scores_and_scatter_equal_dense_products(dtype, bias):
    rng = np.random.default_rng(2)
    X = sp.random_array((60, 100), density=0.5, format="csr", rng=rng)  # rows on both sides of the unrolled length
    X.data = np.ones_like(X.data) if dtype is None else rng.integers(-9, 9, X.nnz).astype(dtype)
    data = None if dtype is None else X.data
    indptr, indices = X.indptr.astype(np.int64), X.indices.astype(np.int32)
    A = dense(X, bias)
    w, c = rng.standard_normal(A.shape[1]), rng.standard_normal(60)
    c[::3] = 0.0
    out = np.empty(60)
    linear.scores(indptr, indices, data, w, bias, out)
    np.testing.assert_allclose(out, A @ w, rtol=1e-12, atol=1e-12)
    grids = Grids.holding(1e4, 1e4)
    for grid in (grids, grids.finer(60)):
        total = np.zeros((grid.folds, A.shape[1]))
        linear.scatter(indptr, indices, data, c, bias, grid, total)
        np.testing.assert_allclose(total.sum(axis=0), A.T @ c, rtol=1e-9, atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 400), st.booleans())
def test_sums_on_a_grid_do_not_depend_on_order_or_parts(seed, n, fine):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(n) * 10.0 ** rng.integers(-8, 3, n)
    grids = Grids.holding(float(np.abs(values).sum()), 1.0)
    grids = grids.finer(n) if fine else grids
    indptr, indices, sums = np.arange(n + 1), np.zeros(n, np.int32), []
    for order in (np.arange(n), rng.permutation(n), np.argsort(values)):
        total = np.zeros((grids.folds, 1))
        cut = n // 3
        linear.scatter(indptr[: cut + 1], indices[:cut], values[order][:cut], np.ones(cut), 0.0, grids, total)
        linear.scatter(indptr[: n - cut + 1], indices[cut:], values[order][cut:], np.ones(n - cut), 0.0, grids, total)
        sums.append(total[:, 0].tolist())
    assert sums[0] == sums[1] == sums[2]
    exact = sum(map(Fraction, values))
    assert abs(sum(map(Fraction, sums[0])) - exact) <= grids.vector_error(n, n)
    assert grids.vector_error(n, n) <= n * (n * 1e-30 if fine else 2.0**-51) * np.abs(values).sum()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 7), st.integers(1, 6), st.floats(0.1, 100))
def test_master_problem_reaches_its_optimum_also_when_singular(seed, T, d, c_bar):
    rng = np.random.default_rng(seed)
    vectors, b = rng.standard_normal((T, d)), rng.uniform(-0.5, 1, T)
    vectors[T // 2] = vectors[0]  # more cuts than dimensions, and equal ones
    bundle = Bundle(d, c_bar, 10)
    for a, offset in zip(vectors, b, strict=True):
        bundle.add(a, offset, EXACT)
    solution = bundle.solve(1e-9 * c_bar)
    expected = svm.master_value(vectors, b, c_bar)
    assert solution.lower_bound == pytest.approx(expected, abs=1e-6 * c_bar)
    # the dual value never exceeds the primal value of the master problem at its own w
    value = 0.5 * solution.w @ solution.w + c_bar * max(0.0, np.max(vectors @ solution.w + b))
    assert solution.lower_bound <= value + 1e-12 * c_bar
    assert value - solution.lower_bound <= 1.1e-9 * c_bar
    assert solution.qp_gap <= 1e-9 * c_bar


def exact_gap(G, b, total, beta):
    """total·max g − ⟨β, g⟩ with g = b − Gβ in rational arithmetic, β made to add up to `total`."""
    exact = [Fraction(x) for x in beta.tolist()]
    factor = Fraction(total) / sum(exact)
    exact = [factor * x for x in exact]
    used = [t for t, x in enumerate(exact) if x]
    g = [Fraction(b[t]) - sum(Fraction(G[t, s]) * exact[s] for s in used) for t in range(len(b))]
    return float(Fraction(total) * max(g) - sum(exact[t] * g[t] for t in used))


@pytest.mark.parametrize("seed", range(4))
def test_master_problem_with_more_cuts_than_dimensions_is_finished(seed):
    rng = np.random.default_rng(seed)
    w = rng.normal(0, 1, (200, 3)) * [1e-2, 1e-3, 1e-1]  # tangents of a smooth function in 3 dimensions of very unequal scale:
    scale = np.array([100.0, 255.0, 1.0])  # pairwise steps zigzag for ever
    root = np.sqrt(1.0 + np.sum((scale * w) ** 2, axis=1))
    A, b = scale**2 * w / root[:, None], 1.0 / root
    beta = np.full(200, 500.0)
    gap = solve_master(A @ A.T, b, 1e5, beta, 1e-3)
    assert gap <= 1e-3  # of about 1e5
    assert exact_gap(A @ A.T, b, 1e5, beta) <= 2e-3
    assert beta.min() >= 0.0
    assert beta.sum() == pytest.approx(1e5, rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 30), st.integers(1, 12), st.floats(-4, 4))
def test_master_problem_of_nearly_equal_cuts(seed, n, d, scale):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    A[n // 2 :] = A[: n - n // 2] * (1.0 + 1e-9 * rng.standard_normal((n - n // 2, d)))
    G, b, total = A @ A.T, rng.uniform(-0.5, 1.0, n), 10.0**scale
    beta = total * rng.dirichlet(np.full(n, 0.3))
    worth = total * total * float(np.abs(G).max()) + total * n
    gap = solve_master(G, b, total, beta, 1e-12 * worth)
    assert gap <= 1e-12 * worth
    assert exact_gap(G, b, total, beta) <= 1e-11 * worth
    assert beta.min() >= 0.0
    np.testing.assert_allclose(beta.sum(), total, rtol=1e-12)


@pytest.mark.thirds
@pytest.mark.parametrize("max_cuts", [2, 3, 8])
def test_merged_cuts_keep_the_bound_valid(max_cuts):
    X, y, _ = problem()
    best, bound = svm.optimum(dense(X, 1.0), np.where(y == 3, 1.0, -1.0), 1.0, np.ones(len(y)))
    model = train(MemoryDataset(X, y), solver="ocas", max_cuts=max_cuts, tol=1e-2, max_passes=2000)
    assert model.history[-1]["cuts"] <= max_cuts
    for line in model.history:
        assert line["lower_bound"] <= best * (1 + 1e-12)
        assert line["primal"] >= bound * (1 - 1e-12)
    assert model.certificate.converged


SOLVERS = [{"solver": "ocas", "cut": "predicted"}, {"solver": "ocas", "cut": "exact"}, {"solver": "cpa"}]


@pytest.mark.thirds
@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: "-".join(s.values()))
@pytest.mark.parametrize(("weights", "positive_weight"), [(False, 1.0), (True, 1.0), (False, 3.5), (True, 0.4)])
@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_certificate_encloses_the_optimum(solver, weights, positive_weight, bias):
    X, y, u = problem(120, weights=weights, seed=3)
    data = MemoryDataset(X, y, weight=u)
    model = train(data, C=0.8, bias=bias, positive_weight=positive_weight, tol=1e-5, tol_relative=1e-4, **solver)
    sign = np.where(y == 3.0, 1.0, -1.0)
    best, bound, every = enclosed_optimum(weights, positive_weight, bias)
    certificate = model.certificate
    assert certificate.converged
    assert certificate.lower_bound <= best * (1 + 1e-12)
    assert certificate.primal >= bound * (1 - 1e-12)
    assert certificate.gap <= 1e-5 * certificate.c_bar
    assert certificate.gap <= 1e-4 * certificate.primal
    assert certificate.c_bar == pytest.approx(0.8 * every.sum(), rel=1e-12)
    fresh = svm.primal(model.augmented_weights, dense(X, bias), sign, 0.8, every)
    assert certificate.primal == pytest.approx(fresh, rel=1e-11)
    assert certificate.lower_bound == pytest.approx(model.witness.bound(certificate.c_bar), rel=1e-9)


def test_ocas_takes_the_path_of_the_paper():
    X, y, _ = problem(seed=5)
    sign = np.where(y == 3.0, 1.0, -1.0)
    _, F, bound, iterations = svm.ocas(dense(X, 1.0), sign, 1.0, np.ones(len(y)), 1e-3)
    model = train(MemoryDataset(X, y), solver="ocas", cut="exact", tol=1e-3, tol_relative=None)
    assert abs(model.history[-1]["iteration"] - iterations) <= 2
    assert model.certificate.primal == pytest.approx(F, rel=5e-3)
    assert model.certificate.lower_bound == pytest.approx(bound, rel=5e-3)


def test_exact_cuts_take_two_passes_and_predicted_ones_one():
    X, y, _ = problem()
    exact = train(MemoryDataset(X, y), cut="exact", tol_relative=None)
    predicted = train(MemoryDataset(X, y), cut="predicted", tol_relative=None)
    assert exact.history[3]["passes"] == 1 + 2 * exact.history[3]["iteration"]
    assert predicted.history[3]["passes"] == 1 + predicted.history[3]["iteration"]


def test_best_point_never_gets_worse_and_bound_never_falls():
    X, y, _ = problem(seed=8)
    history = train(MemoryDataset(X, y), tol=1e-6, tol_relative=None).history
    assert (np.diff([h["primal"] for h in history]) <= 1e-9).all()
    assert (np.diff([h["lower_bound"] for h in history]) >= 0).all()


def same(a, b):
    np.testing.assert_array_equal(a.weights, b.weights)
    assert (a.intercept, a.certificate.primal, a.certificate.lower_bound) == (
        b.intercept,
        b.certificate.primal,
        b.certificate.lower_bound,
    )


@pytest.mark.thirds
@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: "-".join(s.values()))
@pytest.mark.parametrize("weights", [False, True])
def test_shards_workers_and_memory_do_not_change_a_bit(solver, weights):
    X, y, u = problem(5000, 40, density=0.2, weights=weights, dtype=np.float32)
    solver = {**solver, "lanes": 5}
    base = train(MemoryDataset(X, y, weight=u), workers=1, **solver)
    for shard_nnz, options in ((997, {"workers": 2}), (5000, {"scheduler": "sync"}), (20_000, {"workers": 2, "memory": "3GB"})):
        same(base, train(MemoryDataset(X, y, weight=u, shard_nnz=shard_nnz), **options, **solver))


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: "-".join(s.values()))
def test_order_of_rows_changes_nothing_beyond_the_last_digits(solver):
    X, y, u = problem(3000, 30, weights=True, seed=11)
    order = np.random.default_rng(0).permutation(3000)
    one = train(MemoryDataset(X, y, weight=u), **solver).certificate
    other = train(MemoryDataset(X[order], y[order], weight=u[order]), **solver).certificate
    assert other.primal == pytest.approx(one.primal, rel=1e-9)
    assert other.lower_bound == pytest.approx(one.lower_bound, rel=1e-9)


def test_two_equal_rows_are_one_of_weight_two_and_weight_zero_is_no_row():
    X, y, _ = problem(150, 10, seed=4)
    twice = train(MemoryDataset(sp.vstack([X, X]), np.tile(y, 2)), tol=1e-7, tol_relative=None)
    double = train(MemoryDataset(X, y, weight=np.full(150, 2.0)), tol=1e-7, tol_relative=None)
    assert twice.certificate.primal == pytest.approx(double.certificate.primal, rel=1e-6)
    some = np.arange(150) % 3 > 0
    removed = train(MemoryDataset(X[some], y[some]), tol=1e-7, tol_relative=None)
    silenced = train(MemoryDataset(X, y, weight=some.astype(float)), tol=1e-7, tol_relative=None)
    assert removed.certificate.primal == pytest.approx(silenced.certificate.primal, rel=1e-6)


def test_lanes_come_from_the_data_and_cover_all_rows():
    X, y, _ = problem(5000, 40)
    statistics = MemoryDataset(X, y).manifest.statistics
    for lanes in (None, 1, 3, 7, 9999):
        bounds = plan_lanes(statistics, lanes).bounds
        assert bounds[0] == 0
        assert bounds[-1] == 5000
        assert (np.diff(bounds) > 0).all()
    assert len(plan_lanes(statistics)) == 1
    assert len(plan_lanes(replace(statistics, nnz=10**9))) == 16
    assert len(plan_lanes(replace(statistics, nnz=10**9, n_features=10**9))) == 1


def test_stop_reasons():
    X, y, _ = problem()
    data = MemoryDataset(X, y)
    assert train(data, max_passes=3).certificate.stop_reason is StopReason.MAX_PASSES
    assert train(data, max_passes=3).history[-1]["passes"] == 3
    assert train(data, max_time=1e-9).certificate.stop_reason is StopReason.TIME
    assert train(data, target=1e9).certificate.stop_reason is StopReason.TARGET
    assert train(data, tol=1e-30, tol_relative=None, max_cuts=32).certificate.stop_reason is StopReason.STALLED
    few = train(data, tol=1e-30, tol_relative=None).certificate  # what is left is not rounding, but sixteen cuts bring no less
    assert few.stop_reason is StopReason.SCALE
    assert few.gap < 1e-11 * few.primal


def test_one_label_against_the_rest():
    X, y, _ = problem()
    y[:60] = 7.0
    with pytest.raises(BadInputError, match="positive_label"):
        train(MemoryDataset(X, y), task="binary")
    model = train(MemoryDataset(X, y), positive_label=7.0)
    two = train(MemoryDataset(X, np.where(y == 7.0, 1.0, -1.0)))
    same(model, two)
    with pytest.raises(BadInputError, match="no row has the positive label 9"):
        train(MemoryDataset(X, y), positive_label=9.0)
    with pytest.raises(BadInputError, match="two classes"):
        train(MemoryDataset(X, np.ones(len(y))))


@pytest.mark.parametrize(
    "options",
    [{"C": 0}, {"C": -1.0}, {"C": float("nan")}, {"tol": -1}, {"max_passes": 0}, {"workers": 0}, {"bias": -1}, {"max_cuts": 1},
     {"lanes": 1.5}, {"no_such": 1}, {"tol": None, "tol_relative": None}, {"memory": "4"}, {"C": "1"},
     {"solver": "cpa", "cut": "exact"}],
    ids=str,
)  # fmt: skip
def test_options_that_make_no_sense_are_refused(options):
    X, y, _ = problem(20)
    with pytest.raises(UsageError):
        train(MemoryDataset(X, y), **options)


def test_memory_that_cannot_be_kept_is_refused_with_both_numbers():
    X, y, _ = problem(20)
    with pytest.raises(MemoryBudgetError, match=r"1\.00 MB is too little: this run needs at least \d+MB"):
        train(MemoryDataset(X, y), memory="1MB")


def test_a_score_that_is_not_finite_names_its_row():
    X, y, _ = problem(20, density=1.0)
    data = MemoryDataset(X, y)
    data.read(0).data[17 * X.shape[1]] = np.inf  # behind the back of the check at the border
    with pytest.raises(CorruptError, match="row 18"):
        train(data)


@pytest.mark.parametrize("primal", [0.03, 40.0, 1e9])
def test_the_master_problem_is_solved_to_a_part_of_the_gap_or_to_what_float64_tells(primal):
    assert qp_tolerance(StoppingRule(None, 0.01), primal, 5.0) == pytest.approx(1e-5 * primal, rel=0.02)
    assert qp_tolerance(StoppingRule(0.1, None), primal, 5.0) == pytest.approx(max(5e-4, 1e-13 * primal))
    assert qp_tolerance(StoppingRule(None, None, max_passes=3), primal, 5.0) == pytest.approx(1e-13 * primal)
