"""One-vs-rest with losses beside the hinge: what each class's own training proves, and what must never change the answer."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from test_ovr import REST, problem

import streamcut
from streamcut.bundle.bundle import BundleSize
from streamcut.bundle.newton_search import minimise_by_newton
from streamcut.bundle.newton_searches import minimise_by_newton_along
from streamcut.config import CheckpointOptions
from streamcut.errors import UsageError
from streamcut.execution.feed import Feed
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.row_cache import CacheSize
from streamcut.execution.runner import Runner
from streamcut.io.memory import MemoryDataset
from streamcut.losses import row_loss
from streamcut.losses.classes import OneVsRest
from streamcut.oracles.dual.ovr import OvrDualOracle
from streamcut.oracles.dual.ovr_cache import row_bytes
from streamcut.training import train
from streamcut.verification import verify

LOSSES = ["logistic", "squared-hinge"]
WAYS = {"cpa": {"solver": "cpa"}, "ocas": {"solver": "ocas"}, "bundle-dca": {}, "uncached": {"row_cache": "0"}}
losses, ways = pytest.mark.parametrize("loss", LOSSES), pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
LABELS = (-1.0, 2.0, 5.0, 9.0)


def values(loss, margins):
    if loss == "logistic":
        return np.logaddexp(0.0, -margins)
    return np.maximum(0.0, 1.0 - margins) ** (1 if loss == "hinge" else 2)


def optimum(loss, X, sign, C, u):
    """min F of one class; the constant feature is the last of X."""
    common = {"C": C, "fit_intercept": False, "tol": 1e-10}
    fitted = LogisticRegression(**common, max_iter=10_000) if loss == "logistic" else LinearSVC(**common, max_iter=1_000_000)
    w = fitted.fit(X, sign, sample_weight=u).coef_[0]
    return 0.5 * w @ w + C * u @ values(loss, sign * (X @ w))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_searches_in_step_are_those_of_each_line(seed):
    rng = np.random.default_rng(seed)
    z_b, delta, A0, B0 = rng.standard_normal((3, 9)), rng.standard_normal((3, 9)), rng.uniform(0.01, 5, 3), rng.uniform(-5, 1, 3)

    def slopes(k, a):
        p = expit(-(z_b[a] + k * delta[a]))
        return float(-p @ delta[a]), float((p * (1 - p)) @ delta[a] ** 2)

    class Rows:
        def slopes(self, k):
            return tuple(np.array(x) for x in zip(*(slopes(k[a], a) for a in range(3)), strict=True))

    class Row:
        def __init__(self, a):
            self.a = a

        def slopes(self, k):
            return tuple(np.array(x) for x in zip(*(slopes(each, self.a) for each in k), strict=True))

    found = minimise_by_newton_along(A0, B0, 0.7, Rows())
    np.testing.assert_allclose(found, [minimise_by_newton(A0[a], B0[a], 0.7, Row(a)) for a in range(3)], rtol=1e-9)


@losses
@ways
@pytest.mark.parametrize(("bias", "weights"), [(0.0, True), (2.0, False)])
def test_every_class_has_a_certificate(loss, way, bias, weights):
    X, y, u = problem(150, weights=weights)
    data = MemoryDataset(X, y, weight=u)
    model = train(data, **REST, **way, loss=loss, C=0.5, bias=bias, tol=1e-4, tol_relative=None)
    rows = np.hstack([X.toarray(), np.full((len(y), 1), bias)]) if bias else X.toarray()
    every = np.ones(len(y)) if u is None else u
    assert model.converged
    for k, (label, found) in enumerate(zip(model.labels, model.certificates, strict=True)):
        sign = np.where(y == label, 1.0, -1.0)
        best, w = optimum(loss, rows, sign, 0.5, every), model.augmented_weights[:, k]
        assert found.lower_bound <= best * (1 + 1e-12)
        assert best <= found.primal * (1 + 1e-6)  # theirs is this close to the optimum
        assert found.gap <= 1e-4 * found.c_bar
        assert 0.5 * w @ w + 0.5 * every @ values(loss, sign * (rows @ w)) == pytest.approx(found.primal, rel=1e-11)
    assert verify(model, data).consistent
    model.weights[0, 1] += 0.1
    assert not verify(model, data).consistent


@losses
@ways
def test_workers_and_shards_change_no_bit(loss, way):
    X, y, u = problem(1000, 20, weights=True)
    options = {**REST, **way, "loss": loss, "lanes": 3, "max_passes": 6}
    expected = train(MemoryDataset(X, y, weight=u), **options, scheduler="sync")
    model = train(MemoryDataset(X, y, weight=u, shard_nnz=3000), **options, workers=2)
    np.testing.assert_array_equal(model.weights, expected.weights)
    assert model.certificates == expected.certificates


@losses
@ways
def test_stopped_and_resumed_is_uninterrupted(loss, way, tmp_path):
    X, y, u = problem(weights=True)
    data, options = MemoryDataset(X, y, weight=u), {**REST, **way, "loss": loss, "C": 10.0, "tol": 1e-8, "tol_relative": None}
    whole = train(data, **options, max_passes=10)
    train(data, **options, max_passes=4, checkpoint=str(tmp_path))
    resumed = train(data, **options, max_passes=10, checkpoint=CheckpointOptions(str(tmp_path), resume=True))
    np.testing.assert_array_equal(resumed.weights, whole.weights)
    assert resumed.certificates == whole.certificates


@pytest.mark.parametrize("loss", ["hinge", *LOSSES])
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_both_cuts_are_what_rows_remember(loss, seed):
    X, y, u = problem(60, seed=seed % 7, weights=True)
    data, rng, risk = MemoryDataset(X, y, weight=u), np.random.default_rng(seed), OneVsRest(LABELS, row_loss(loss, {}))
    rows, size = np.hstack([X.toarray(), np.ones((60, 1))]), CacheSize.planned(data.manifest, 20_000, 2, row_bytes(4))
    signs = np.where(y[:, None] == np.asarray(LABELS), 1.0, -1.0)
    constant = np.vectorize(lambda f: risk.loss.constant(f, 1.0))
    decode = np.vectorize(lambda code: risk.loss.decode(code, 1.0))
    with Runner(Feed(data, frozenset([0])), plan_lanes(data.manifest.statistics, 2)) as runner:
        oracle = OvrDualOracle(runner, risk, C=1.0, bias=1.0, cuts=BundleSize(6, 6), size=size, sweeps=3)
        for number in range(3):
            w, mixture = list(rng.standard_normal((4, oracle.features))), np.zeros(6)
            mixture[: 2 * number] = rng.dirichlet(np.ones(2 * number)) if number else 0.0
            slots = np.repeat([[2 * number], [2 * number + 1]], 4, axis=1)
            found = oracle.ascend_all(w, [mixture] * 4, slots, np.ones(4), np.zeros(4), np.zeros(4), first=number == 0)
            for k, cuts in enumerate(found):
                for cut, slot in zip(cuts, slots[:, k], strict=True):
                    f = decode(runner.rows["codes"][:, slot, k])
                    off = np.linalg.norm(cut.a + (u * signs[:, k] * f) @ rows / u.sum())
                    assert off <= cut.error.slope + 1e-14 * (u @ f)
                    assert abs(cut.b - u @ constant(f) / u.sum()) <= cut.error.offset + 1e-14 * (u @ np.abs(constant(f)))
                for cut in cuts:  # below the loss, wherever that is looked at
                    point = rng.standard_normal(oracle.features)
                    there = u @ values(loss, signs[:, k] * (rows @ point)) / u.sum()
                    allowed = cut.error.offset + cut.error.slope * np.linalg.norm(point)
                    assert cut.a @ point + cut.b <= there + allowed + 1e-12


def test_probabilities_are_the_odds_of_the_classes(tmp_path):
    X, y, _ = problem()
    model = train(MemoryDataset(X, y), **REST, loss="logistic")
    streamcut.save_model(model, tmp_path / "m.npz")
    again = streamcut.load_model(tmp_path / "m.npz")
    p = expit(again.decision_function(X))
    np.testing.assert_allclose(again.probabilities_of(again.decision_function(X)), p / p.sum(axis=1, keepdims=True), rtol=1e-12)
    found = streamcut.evaluate(model, (X, y))
    every = np.where(y[:, None] == np.asarray(LABELS), 1.0, -1.0)
    assert found.mean_loss == pytest.approx(values("logistic", every * model.decision_function(X)).sum(axis=1).mean())
    assert found.log_loss < np.log(4)


def test_other_losses_are_no_strategy_of_all_at_once():
    X, y, _ = problem(30)
    with pytest.raises(UsageError, match="loss: logistic for several classes takes strategy one-vs-rest"):
        train(MemoryDataset(X, y), task="multiclass", loss="logistic")
