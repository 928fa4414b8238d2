"""Newton's method: optima of other programs, slow versions of its parts, when it is chosen, and what must not change its bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from kit.shared.newton import EXACT, KINKED, OF_LABELS, bits, problem, targets

import streamcut
from streamcut import CheckpointOptions, train, verify
from streamcut.bundle import two_cuts
from streamcut.compiled import second_order
from streamcut.config import TrainOptions
from streamcut.grids.selection import train_path
from streamcut.losses import row_loss
from streamcut.oracles.second_order import _sparse_minimum
from streamcut.strategy import choose

OF_NUMBERS = ("squared", "huber", "squared-epsilon-insensitive", "poisson")


def objective(w, A, y, u, C, loss, l1=0.0):
    """F at w (D,), dense rows A (n, D), as it is defined."""
    one = row_loss(loss, {"epsilon": 0.1, "delta": 1.0, "quantile": 0.5}, 1.0)
    losses = [one.value(one.sign(t) * s - one.offset(t), t) for s, t in zip(A @ w, y, strict=True)]
    return 0.5 * w @ w + l1 * np.abs(w).sum() + C * (u @ np.array(losses))


# --- the answer ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [*OF_LABELS, *OF_NUMBERS, *KINKED])
@pytest.mark.parametrize(("l1", "bias", "weighted"), [(0.0, 1.0, True), (2.0, 0.0, False), (1.0, 0.5, True)])
def test_the_optimum_is_between_bound_and_primal(loss, l1, bias, weighted):
    X, score, u = problem()
    given, y = targets(loss, score)
    if not weighted:
        u = np.ones(len(y))
    data = streamcut.rows(X, y, weight=u if weighted else None, shard_nnz=300)
    rule = {**EXACT, "tol": 1e-4} if loss in KINKED else EXACT
    model = train(data, solver="newton", C=0.7, l1=l1, bias=bias, **given, **rule)
    found, A = model.certificate, np.hstack([X.toarray(), np.full((len(y), 1), bias)])[:, : 12 + (bias != 0.0)]
    assert found.stop_reason == "converged"
    F = objective(model.augmented_weights, A, y, u, 0.7, loss, l1)
    assert found.lower_bound <= F <= found.primal <= F * (1 + 1e-9)
    for near in 1e-3 * np.random.default_rng(1).standard_normal((20, len(model.augmented_weights))):
        assert found.lower_bound <= objective(model.augmented_weights + near, A, y, u, 0.7, loss, l1)
    assert verify(model, data).consistent


# --- its parts ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("bias", [0.0, 2.0])
@pytest.mark.parametrize("ones", [False, True])
def test_products_of_features_are_those_of_numpy(dense, bias, ones):
    X, _, h = problem(37, 9, density=0.6)
    X.sort_indices()
    X.data = np.ones_like(X.data) if ones else X.data
    A = np.hstack([X.toarray(), np.full((37, 1), bias)]) if bias else X.toarray()
    H, rows = np.zeros((A.shape[1],) * 2), (X.indptr, X.indices, None if ones else X.data)
    if dense:
        second_order.add_dense(*rows, h, bias, np.empty((second_order.TOGETHER, len(H))), H)
    else:
        second_order.add_sparse(*rows, h, bias, H)
    np.testing.assert_allclose(np.tril(H), np.tril((A.T * h) @ A), atol=1e-12)


@pytest.mark.thirds
@pytest.mark.parametrize("seed", range(6))
def test_models_with_a_price_on_weights_are_minimised(seed):
    rng = np.random.default_rng(seed)
    d = 15
    B = rng.standard_normal((d, d - 4))
    Q, q, l1 = np.eye(d) + B @ B.T, 10.0 * rng.standard_normal(d), 4.0
    slow = np.zeros(d)
    for _ in range(20_000):  # proximal gradient descent
        v = slow - (Q @ slow - q) / np.linalg.norm(Q, 2)
        slow = np.sign(v) * np.maximum(np.abs(v) - l1 / np.linalg.norm(Q, 2), 0.0)
    fast = _sparse_minimum(Q, q, np.full(d, l1), rng.standard_normal(d), 1e-18)
    np.testing.assert_allclose(fast, slow, atol=1e-7)
    assert np.array_equal(fast == 0.0, np.abs(slow) < 1e-9)


# --- when it is chosen --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "features", "chosen"),
    [
        ({"loss": "logistic"}, 12, True),
        ({"loss": "hinge"}, 8, True),
        ({"loss": "hinge", "scale": "max-abs"}, 8, False),
        ({"loss": "hinge"}, 12, False),
        ({"loss": "hinge", "tol": 1e-5}, 8, False),
        ({"loss": "logistic"}, 4000, False),
        ({"loss": "logistic", "row_cache": "0"}, 12, True),
        ({"loss": "logistic", "row_cache": "1MB"}, 12, False),
        ({"loss": "logistic", "solver": "bundle-dca"}, 12, False),
        ({"task": "regression", "loss": "squared"}, 12, True),
        ({"task": "regression", "loss": "quantile"}, 8, True),
    ],
)
def test_few_features_choose_it(options, features, chosen):
    rng = np.random.default_rng(0)
    X = sp.random_array((500, features), density=5 / features, format="csr", rng=rng)
    found = choose(
        TrainOptions(**{"task": "binary", **options}), streamcut.rows(100.0 * X, np.arange(500.0) % 2).manifest.statistics
    )
    assert (found.chosen_solver == "newton") == chosen


@pytest.mark.parametrize(
    ("loss", "per_row", "chosen"),
    [("logistic", 15, True), ("logistic", 17, False), ("squared", 17, True), ("squared", 250, True), ("squared", 260, False)],
)
def test_its_products_are_a_few_for_every_entry_read(loss, per_row, chosen):
    """Half the square of the entries of a row."""
    X = sp.random_array((500, 8), density=0.5, format="csr", rng=np.random.default_rng(0))
    statistics = streamcut.rows(X, np.arange(500.0) % 2).manifest.statistics
    large = replace(statistics, n_rows=10**9, nnz=per_row * 10**9, n_features=2000, labels=None)
    options = TrainOptions(task="regression" if loss == "squared" else "binary", loss=loss)
    assert (choose(options, large).chosen_solver == "newton") == chosen


@pytest.mark.parametrize(("positive", "chosen"), [(5, "bundle-dca"), (50, "newton")])
def test_a_rare_class_leaves_it_out(positive, chosen):
    X = sp.random_array((1000, 12), density=0.3, format="csr", rng=np.random.default_rng(0))
    statistics = streamcut.rows(X, np.arange(1000) < positive).manifest.statistics
    assert choose(TrainOptions(task="binary", loss="logistic"), statistics).chosen_solver == chosen


def test_matrices_that_memory_does_not_hold_leave_it_out():
    X = sp.random_array((500, 600), density=0.01, format="csr", rng=np.random.default_rng(0))
    statistics = streamcut.rows(X, np.arange(500.0) % 2).manifest.statistics
    options = TrainOptions(task="regression", loss="squared", memory="40MB")
    assert choose(options, statistics).chosen_solver == "bundle-dca"


def path(*given, **options) -> list:
    """All models of a path."""
    found: list = []
    train_path(*given, on_model=lambda model, _: found.append(model), **options)
    return found


@pytest.mark.parametrize(("loss", "most"), [("logistic", 4), ("hinge", 15)])
def test_a_path_goes_on_from_the_last_model_also_after_a_resume(tmp_path, loss, most):
    X, score, _ = problem()
    given, y = targets(loss, score)
    Cs = [0.01, 0.1, 1.0, 10.0]
    whole = path((X, y), Cs, solver="newton", **given)
    assert [model.solver for model in whole] == ["newton"] * 4
    assert all(model.certificate.converged and model.history[-1]["passes"] <= most for model in whole[1:])
    again = CheckpointOptions(str(tmp_path / "run"), every=0.0, resume=True)
    blocks = iter(range(12))
    broken = path((X, y), Cs, solver="newton", checkpoint=again, stop=lambda: next(blocks, None) is None, **given)
    assert broken[-1].stop_reason == "interrupted"
    assert 1 < len(broken) <= 4
    resumed = path((X, y), Cs, solver="newton", checkpoint=again, **given)
    assert [bits(model) for model in resumed] == [bits(model) for model in whole]


@pytest.mark.parametrize("steep", [1.0, 1e3, 1e6])
def test_a_line_search_ends_near_the_minimum_however_steep_powers_of_e_are(steep):
    """Poisson's loss of many counts of 10⁶ along a line."""

    def slopes(k):
        return k + 1e-3 * steep * (np.exp(np.minimum(steep * k, 700.0)) - 1e6)

    (k,) = two_cuts.minimise(slopes, 1)
    assert k * steep == pytest.approx(np.log(1e6), rel=0.02)
