"""Numbers on a budget: support vector and quantile regression by BSCA and BSGD."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from kit.nights import by_night
from scipy.optimize import minimize

import streamcut
from streamcut.compiled import budget as passes
from streamcut.config import CheckpointOptions
from streamcut.errors import UsageError
from streamcut.estimators import BudgetedKernelSVR
from streamcut.io.memory import MemoryDataset
from streamcut.kernels.kernel import Kernel
from streamcut.losses import row_loss
from streamcut.models.certificate import StopReason
from streamcut.solvers.budget import MODES, exported, new_slots
from streamcut.solvers.budget_problem import Problem

GAMMA, NEVER = 0.4, (1 << 61, 1 << 62)
TUBE = {"loss": "epsilon-insensitive", "epsilon": 0.2, "quantile": 0.5}
PART = {"loss": "quantile", "epsilon": 0.1, "quantile": 0.8}


def _rows(n=60, d=5, seed=0, weighted=False):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) * (random.random((n, d)) < 0.8)
    y = 7.0 + np.sin(X.sum(axis=1)) + 0.3 * random.normal(size=n)
    return sp.csr_array(X), y, random.uniform(0.5, 2.0, n) if weighted else None


def _problem(options, d, n, C=2.0, kernel=None, **more):
    loss = row_loss(options["loss"], options)
    return Problem(kernel or Kernel("rbf", gamma=GAMMA), C, (float("nan"),), n, d, loss=loss, **more)


def _box(options, C):
    """(low, high, ε) of the α of a row."""
    if options["loss"] == "quantile":
        return (options["quantile"] - 1.0) * C, options["quantile"] * C, 0.0
    return -C, C, options["epsilon"]


@pytest.mark.parametrize("options", by_night([TUBE, PART], [PART]), ids=lambda options: options["loss"])
def test_without_a_budget_the_dual_reaches_its_optimum(options):
    X, y, weight = _rows(weighted=True)
    problem = _problem(options, 5, 60, offset=7.0)
    rows = problem.rows(MemoryDataset(X, y, weight=weight).read(0), float("nan"))
    model, alpha, random = new_slots(problem, None, MODES["none"]), np.zeros(60), np.random.default_rng(1)
    for _ in range(300):
        passes.ascend(random.permutation(60), rows, alpha, NEVER, problem.kernel.compiled, MODES["none"], model)
    low, high, epsilon = _box(options, 2.0)
    K, z = problem.kernel.matrix(X, X), y - 7.0

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


@pytest.mark.parametrize("options", [TUBE, PART], ids=lambda options: options["loss"])
def test_gradient_steps_are_those_of_the_slow_version(options):
    X, y, _ = _rows(n=40, seed=2)
    problem = _problem(options, 5, 40, C=0.5)
    model, order = new_slots(problem, None, MODES["none"]), np.random.default_rng(3).integers(0, 40, 150)
    passes.descend(order, problem.rows(MemoryDataset(X, y).read(0), 0.0), 40, problem.kernel.compiled, MODES["none"], model)
    low, high, epsilon = _box(options, 0.5)
    K, beta = problem.kernel.matrix(X, X), np.zeros(40)
    for t, i in enumerate(order.tolist(), 1):
        residual = y[i] - K[i] @ beta
        beta *= 1.0 - 1.0 / t
        beta[i] += 40 / t * (high if residual > epsilon else low if residual < -epsilon else 0.0)
    coefficients, vectors = exported(model, 1.0 / 150)
    np.testing.assert_allclose(problem.kernel.matrix(X, vectors) @ coefficients, K @ beta, atol=1e-9)


def test_a_budget_of_vectors_fits_a_curve_and_its_quantiles():
    random = np.random.default_rng(4)
    X = random.uniform(0.0, 6.0, (2000, 1))
    y = 100.0 + 3.0 * np.sin(X[:, 0]) + random.normal(size=2000)
    options = {"kernel": "rbf", "gamma": 1.0, "C": 5.0, "budget": 25, "epochs": 5.0, "task": "regression"}
    model = streamcut.train((X, y), **options)
    assert (model.task, model.parameters["loss"], model.n_support <= 25) == ("regression", "epsilon-insensitive", True)
    assert model.intercept == pytest.approx(y.mean(), rel=1e-15)
    assert np.mean((model.predict(X) - 100.0 - 3.0 * np.sin(X[:, 0])) ** 2) < 0.1
    assert streamcut.evaluate(model, (X, y)).r2 > 0.8
    assert model.history[-1]["dual"] <= model.history[-1]["primal_met"]
    upper = streamcut.train((X, y), **options, loss="quantile", quantile=0.9)
    assert np.mean(y <= upper.predict(X)) == pytest.approx(0.9, abs=0.04)


@pytest.mark.parametrize("solver", ["bsca", "bsgd"])
def test_the_model_is_kept_verified_and_gone_on_with(solver, tmp_path, monkeypatch):
    monkeypatch.setattr("streamcut.solvers.budget._STEPS", 50)
    X, y, weight = _rows(n=300, seed=5, weighted=True)
    data = MemoryDataset(X, y, weight=weight)
    options = {"kernel": "rbf", "gamma": GAMMA, "budget": 20, "epochs": 3.0, "solver": solver, "task": "regression"}
    whole, asked = streamcut.train(data, **options), iter(range(100))
    first = CheckpointOptions(str(tmp_path / "c"))
    part = streamcut.train(data, **options, checkpoint=first, stop=lambda: next(asked) == 9)
    assert part.stop_reason is StopReason.INTERRUPTED
    again = streamcut.train(data, **options, checkpoint=replace(first, resume=True))
    np.testing.assert_array_equal(again.coefficients, whole.coefficients)
    streamcut.save_model(whole, tmp_path / "m.npz")
    loaded = streamcut.load_model(tmp_path / "m.npz")
    np.testing.assert_array_equal(loaded.predict(X), whole.predict(X))
    K = whole.kernel.matrix(whole.support, whole.support)
    residual = np.abs(y - whole.predict(X))
    primal = 0.5 * whole.coefficients @ K @ whole.coefficients + weight @ np.maximum(residual - 0.1, 0.0)
    assert streamcut.verify(loaded, data).primal == pytest.approx(primal, rel=1e-9)
    warm = streamcut.train(data, **options, warm_start=str(tmp_path / "m.npz"))
    assert warm.intercept == whole.intercept
    assert warm.history[0]["primal_met"] < whole.history[0]["primal_met"]


def test_validation_is_told_as_r2(tmp_path):
    X, y, _ = _rows(n=200, seed=6)
    lines = (
        f"{float(t)!r} " + " ".join(f"{j + 1}:{float(v)!r}" for j, v in enumerate(x)) for t, x in zip(y, X.toarray(), strict=True)
    )
    (tmp_path / "rows.svm").write_text("\n".join(lines) + "\n")
    streamcut.convert(str(tmp_path / "rows.svm"), str(tmp_path / "rows.zarr"), dtype="float64")
    store = str(tmp_path / "rows.zarr")
    model = streamcut.train(store, kernel="rbf", gamma=GAMMA, budget=20, epochs=2.0, validation=store)
    assert model.task == "regression", "the labels are real numbers"
    assert model.history[-1]["validation"] == pytest.approx(streamcut.evaluate(model, store).r2)
    assert model.history[-1]["accuracy_met"] is None


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"loss": "squared"}, "loss: 'squared' is not trained by bsca, which trains hinge, epsilon-insensitive, quantile"),
        ({"loss": "logistic", "task": "binary"}, "loss: 'logistic' is not trained by bsca"),
        ({"loss": "hinge"}, "loss: 'hinge' is not one of task regression"),
        ({"loss": "huber", "delta": 0.5}, "delta"),
        ({"loss": "quantile", "epsilon": 0.3}, "epsilon: loss 'quantile' does not have it"),
        ({"positive_weight": 2.0}, "positive_weight: 2.0 is an option of task binary"),
        ({"solver": "smo"}, "task regression is trained by bundle-dca, newton, working-set, ocas, cpa, bsca, bsgd, not by smo"),
    ],
)
def test_options_that_mean_nothing_are_refused(options, complaint):
    X, y, _ = _rows()
    with pytest.raises(UsageError, match=complaint):
        streamcut.train((X, y), **{"kernel": "rbf", "task": "regression", **options})


def test_a_model_of_another_loss_is_no_start():
    X, y, _ = _rows()
    start = streamcut.train((X, y), kernel="rbf", gamma=GAMMA, task="regression", budget=10)
    with pytest.raises(UsageError, match="trained with loss epsilon-insensitive"):
        streamcut.train((X, y), kernel="rbf", gamma=GAMMA, task="regression", loss="quantile", budget=10, warm_start=start)


def test_the_estimator_of_numbers():
    random = np.random.default_rng(7)
    X = random.uniform(0.0, 6.0, (1200, 1))
    y = np.sin(X[:, 0])
    svr = BudgetedKernelSVR(C=10.0, gamma=1.0, budget=30)
    svr.fit(X, y)
    assert svr.score(X, y) > 0.95
    assert svr.intercept_[0] == pytest.approx(y.mean())
    assert svr.support_vectors_.shape[0] <= 30
    with pytest.raises(UsageError, match="'huber' is not a loss of BudgetedKernelSVR, which has epsilon_insensitive, pinball"):
        BudgetedKernelSVR(loss="huber").fit(X, y)
