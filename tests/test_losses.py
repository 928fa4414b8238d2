"""Every loss of the table against its definition; every linear solver with each: the bound is a bound, the primal is exact."""

from __future__ import annotations

import importlib
import pkgutil
import typing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar
from test_linear_solver import dense, problem

import streamcut.compiled
from streamcut.bundle.newton_search import minimise_by_newton
from streamcut.compiled import loss as methods
from streamcut.compiled import row_losses
from streamcut.config import ROW_LOSSES
from streamcut.errors import UsageError
from streamcut.io.memory import MemoryDataset
from streamcut.losses import row_loss
from streamcut.losses.hinge import Hinge
from streamcut.losses.logistic import Logistic
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.losses.squared_hinge import SquaredHinge
from streamcut.training import train
from streamcut.verification import verify

LOSSES = [row_loss(name, {}, 3.0) for name in ROW_LOSSES]
SMOOTH = [loss for loss in LOSSES if loss.smooth]
NAMES = [type(loss).__name__ for loss in LOSSES]
every = pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
z_values = st.floats(-30.0, 30.0) | st.sampled_from([0.0, 1.0, -1.0, 2.0])


def shares_of(loss, y=0.0):
    """Some shares in the domain of the conjugate."""
    low, high = max(loss.lowest(y), -20.0), min(loss.highest(y), 20.0)
    return np.linspace(low, high, 41)


def test_no_record_of_kernels_has_a_field_with_the_name_of_a_method():
    declared = {name for name, value in vars(methods).items() if getattr(value, "__module__", "") == methods.__name__}
    assert {"value", "dual", "step", "encode"} <= declared
    for info in pkgutil.iter_modules(streamcut.compiled.__path__):
        module = importlib.import_module(f"streamcut.compiled.{info.name}")
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, tuple) and typing.get_type_hints(value):
                assert not declared & set(value._fields), value


@every
@given(z=z_values)
def test_the_share_is_minus_the_slope(loss, z):
    step = 1e-6
    right, left = ((loss.value(z + h, 3.0) - loss.value(z, 3.0)) / h for h in (step, -step))
    assert left - 1e-4 <= -loss.dual(z, 3.0) <= right + 1e-4
    assert loss.value(z, 3.0) >= 0.0


@every
def test_the_conjugate_is_the_greatest_difference(loss):
    for f in shares_of(loss):
        found = minimize_scalar(lambda z, f=f: f * z + loss.value(z, 3.0), bounds=(-60.0, 60.0), method="bounded").fun
        assert loss.conjugate(f, 3.0) == pytest.approx(-found, abs=2e-5)
    assert loss.conjugate(0.0, 3.0) == 0.0


@every
@given(z=z_values)
def test_a_share_and_its_conjugate_touch_the_loss(loss, z):
    f = loss.dual(z, 3.0)
    assert -f * z - loss.conjugate(f, 3.0) == pytest.approx(loss.value(z, 3.0), rel=1e-9, abs=1e-12 * max(1.0, abs(f * z)))


@every
@given(z=z_values, q=st.floats(1e-3, 1e3), part=st.floats(0.0, 1.0))
def test_a_coordinate_step_is_the_best(loss, z, q, part):
    low, high = max(loss.lowest(3.0), -5.0), min(loss.highest(3.0), 5.0)
    f = low + part * (high - low)
    after = loss.step(f, z, q, 3.0)
    assert loss.lowest(3.0) <= after <= loss.highest(3.0)

    def cost(share):
        return share * z + 0.5 * q * (share - f) ** 2 + loss.conjugate(share, 3.0)

    others = np.clip(after + np.array([1e-4, -1e-4, 1e-2, -1e-2, 0.3, -0.3]), loss.lowest(3.0), loss.highest(3.0))
    assert cost(after) <= min(cost(share) for share in others) + 1e-12 * max(1.0, abs(z), q)


@every
@given(part=st.floats(0.0, 1.0))
def test_codes_are_near_their_shares_and_in_the_domain(loss, part):
    low, high = max(loss.lowest(3.0), -1e3), min(loss.highest(3.0), 1e3)
    for f in (low + part * (high - low), low, high, 0.0):
        again = loss.decode(loss.code_type(loss.encode(f)), 3.0)
        assert loss.lowest(3.0) <= again <= loss.highest(3.0)
        assert again == pytest.approx(f, rel=2e-5, abs=1e-4)
        if f in (loss.lowest(3.0), loss.highest(3.0), 0.0):
            assert again == f


def test_an_unknown_loss_raises():
    with pytest.raises(UsageError, match="'absolute' is not one of single rows; these are hinge"):
        row_loss("absolute", {})


# The line search


class _Rows:
    """SmoothLossAlongLine over plain arrays."""

    def __init__(self, loss, z_b, z, u):
        self.loss, self.looks, self.arrays = loss, 0, (z_b, z, u)

    def slopes(self, k):
        self.looks += 1
        z_b, z, u = self.arrays
        slope, curvature = np.zeros(2), np.zeros(2)
        row_losses.slopes(self.loss, z_b, z, k, None, u, slope, curvature)
        return slope.sum(), curvature.sum()


@pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: type(loss).__name__)
@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10_000), scale=st.floats(-3, 3), A0=st.floats(-6, 3), far=st.floats(-2, 2))
def test_the_line_search_is_exact(loss, seed, scale, A0, far):
    rng = np.random.default_rng(seed)
    n = 50
    z_b, u = rng.standard_normal(n) * 10.0**scale, rng.uniform(0.1, 3.0, n)
    z = z_b + rng.standard_normal(n) * 10.0**far + 0.3
    A0, B0 = 10.0**A0, float(rng.standard_normal())
    rows = _Rows(loss, z_b, z, u)
    k = minimise_by_newton(A0, B0, 0.7, rows)
    assert rows.looks <= 60  # lines of training take two to eight

    def rise(k):
        slope, curvature = _Rows(loss, z_b, z, u).slopes(k)
        return k * A0 + B0 + 0.7 * slope, A0 + 0.7 * curvature

    if k == 0.0:
        assert rise(0.0)[0] >= 0.0
        return
    size = 0.7 * np.abs(u * np.array([loss.dual(z, 0.0) for z in z_b + k * (z - z_b)]) * (z - z_b)).sum() + abs(B0) + A0 * k
    for side in (1.0 - 1e-11, 1.0 + 1e-11):
        assert (rise(k * side)[0]) * (side - 1.0) >= -1e-14 * size * 1e-11 or abs(rise(k)[0]) <= 1e-13 * size


# The solvers


def optimum(name, X, sign, C, u):
    """min F by L-BFGS on the dense problem, for smooth losses."""
    loss = row_loss(name, {})

    def objective(w):
        z = sign * (X @ w)
        values = np.array([loss.value(one, 0.0) for one in z])
        slopes = np.array([-loss.dual(one, 0.0) for one in z])
        return 0.5 * w @ w + C * u @ values, w + C * X.T @ (u * sign * slopes)

    return minimize(
        objective, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-11, "maxiter": 5000}
    ).fun


@pytest.mark.parametrize("name", [name for name in ROW_LOSSES if name != "hinge"])
@pytest.mark.parametrize(
    "options",
    [
        {"solver": "bundle-dca", "row_cache": "0"},
        {"solver": "bundle-dca", "row_cache": "50%", "lanes": 2, "bias": 0.0},
        {"solver": "ocas", "positive_weight": 2.5},
        {"solver": "ocas", "cut": "exact"},
        {"solver": "cpa"},
    ],
    ids=lambda options: "-".join(str(value) for value in options.values()),
)
@pytest.mark.parametrize("weights", [False, True])
def test_certificates_enclose_the_optimum(name, options, weights):
    X, y, u = problem(120, weights=weights, seed=3)
    sign = np.where(y == 3.0, 1.0, -1.0)
    bias, factor = options.get("bias", 1.0), options.get("positive_weight", 1.0)
    every = (np.ones(len(y)) if u is None else u) * np.where(sign > 0, factor, 1.0)
    data = MemoryDataset(X, y, weight=u)
    model = train(data, loss=name, C=0.8, tol=1e-4, tol_relative=None, scheduler="sync", **options)
    found, best = model.certificate, optimum(name, dense(X, bias), sign, 0.8, every)
    assert found.converged
    assert found.lower_bound <= best * (1.0 + 1e-9)
    assert best <= found.primal * (1.0 + 1e-9)
    checked = verify(model, data, bound=True)
    assert checked.consistent
    assert checked.own_bound <= checked.combined_bound <= best * (1.0 + 1e-9)


@pytest.mark.parametrize("name", ["squared-hinge", "logistic"])
def test_separable_data_with_a_large_weight_of_losses_converge(name):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((300, 8))
    y = np.where(X @ rng.standard_normal(8) > 0.0, 1.0, -1.0)
    model = train(MemoryDataset(X, y), loss=name, C=1e4, max_passes=200, scheduler="sync")
    assert model.converged


def test_values_of_many_scores_are_those_of_each():
    scores, y = np.linspace(-3.0, 3.0, 7), np.array([3.0, 1.0] * 4)[:7]
    for loss in (Hinge(3.0), SquaredHinge(3.0), Logistic(3.0)):
        risk = PointwiseRisk(loss)
        expected = [loss.value(loss.sign(t) * s - loss.offset(t), t) for s, t in zip(scores, y, strict=True)]
        np.testing.assert_allclose(risk.values(y, scores), expected, rtol=1e-15)
