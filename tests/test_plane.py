"""Searches over planes: the best of {p·w_b + q·w}, what they claim of it, and that separable data ends."""

import numpy as np
import pytest
import scipy.sparse as sp
from nights import by_night
from scipy.optimize import minimize

from streamcut.bundle.plane_search import minimise_over_plane
from streamcut.compiled import row_losses
from streamcut.config import CheckpointOptions
from streamcut.io.memory import MemoryDataset
from streamcut.losses import row_loss
from streamcut.rounding import Drift, RowScale
from streamcut.solvers.state import BundleState
from streamcut.training import train
from streamcut.verification import verify

OPTIONS = {"epsilon": 0.1, "delta": 1.0, "quantile": 0.3}
LABELS = ("hinge", "squared-hinge", "smoothed-hinge", "logistic")
NUMBERS = ("squared", "huber", "epsilon-insensitive", "squared-epsilon-insensitive", "quantile", "poisson")


def hinges(rng, n=80):
    """F over a plane for n hinges: H, and the rest with its subgradient."""
    A = rng.standard_normal((n, 2)) * [1.0, 0.3] + [0.5, 0.4]
    B = rng.standard_normal((2, 2))

    def rest(x):
        late = 1.0 - A @ x
        return 3.0 * float(np.maximum(late, 0.0).sum()), -3.0 * A[late > 0.0].sum(axis=0)

    return B @ B.T, rest


@pytest.mark.parametrize("seed", range(8))
def test_most_of_what_a_plane_has_to_give_is_found(seed):
    H, rest = hinges(np.random.default_rng(seed))
    start = np.array([1.0, 0.0])

    def value(x):
        return 0.5 * x @ H @ x + rest(x)[0]

    x, gain = minimise_over_plane(H, rest, start, 0.0)
    assert gain == pytest.approx(value(start) - value(x), rel=1e-9, abs=1e-9)
    least = min(minimize(value, at, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-9}).fun for at in (x, start))
    assert value(start) - value(x) >= 0.85 * (value(start) - least)


@pytest.mark.parametrize("H", [np.zeros((2, 2)), np.diag([1.0, 0.0]), np.array([[1.0, 2.0], [2.0, 4.0]])])
def test_vectors_that_are_0_or_point_the_same_way(H):
    """w_b is 0 at first, and w may be a multiple of it."""

    def rest(x):
        return float(abs(x[0] - 3.0)), np.array([np.sign(x[0] - 3.0), 0.0])

    x, gain = minimise_over_plane(H, rest, np.array([1.0, 0.0]), 0.0)
    assert gain >= 0.0
    assert np.isfinite(x).all()


def test_what_is_too_little_to_matter_costs_one_evaluation():
    calls = []

    def rest(x):
        calls.append(x)
        return float(-x[0]), np.array([-1.0, 0.0])

    x, gain = minimise_over_plane(np.eye(2), rest, np.array([1.0, 0.0]), 1e-3)
    assert (len(calls), gain, x.tolist()) == (1, 0.0, [1.0, 0.0])


@pytest.mark.parametrize("name", LABELS + NUMBERS)
def test_kernels_agree_with_the_loss_row_by_row(name):
    rng = np.random.default_rng(3)
    loss = row_loss(name, OPTIONS, 1.0) if name in LABELS else row_loss(name, OPTIONS)
    n, p, q = 40, 0.7, 0.4
    y = rng.choice([-1.0, 1.0], n) if name in LABELS else rng.poisson(2.0, n).astype(float)
    s_b, s, u = rng.standard_normal(n), rng.standard_normal(n), rng.uniform(0.5, 2.0, n)
    sign, t = np.array([loss.sign(each) for each in y]), np.array([loss.offset(each) for each in y])
    z_b, z = sign * s_b - t, sign * s - t
    target = None if name in LABELS else y

    def total(p, q):
        return sum(u[i] * loss.value(sign[i] * (p * s_b[i] + q * s[i]) - t[i], y[i]) for i in range(n))

    sums = np.zeros((3, 2))
    row_losses.on_plane(loss, z_b, z, p, q, target, u, sums)
    value, by_p, by_q = sums.sum(axis=1)
    e = 1e-6
    assert value == pytest.approx(total(p, q), rel=1e-12)
    assert by_p == pytest.approx((total(p + e, q) - total(p - e, q)) / (2 * e), rel=1e-5, abs=1e-5)
    assert by_q == pytest.approx((total(p, q + e) - total(p, q - e)) / (2 * e), rel=1e-5, abs=1e-5)
    summed = np.zeros(3)
    row_losses.combine(loss, z_b, z, p, q, target, u, summed)
    assert summed[:2].sum() == pytest.approx(total(p, q), rel=1e-12)
    assert z_b == pytest.approx(sign * (p * s_b + q * s) - t, abs=1e-12)


def test_drift_covers_what_combining_rounds():
    """Scores of w_b, carried along by combinations in float64, against exact ones."""
    from fractions import Fraction

    rng = np.random.default_rng(5)
    x = rng.standard_normal((30, 4)) * 10.0 ** rng.integers(-6, 6, (1, 4))
    t = rng.standard_normal(30) * 100.0
    scale, S, far = RowScale(30, 120, 4, 1.0), np.abs(x).sum(axis=0), float(np.abs(t).sum())
    w_b, z_b, drift = np.zeros(4), -t, Drift()
    drift.best = far
    for _ in range(12):
        w, p, q = rng.standard_normal(4) * 10.0 ** rng.integers(-6, 6, 4), float(rng.normal()), float(rng.normal())
        z = np.array([sum(row * w) for row in x]) - t
        drift.scored = float(S @ np.abs(w)) + far
        z_b = (p * (z_b + t) + q * (z + t)) - t
        w_b = w_b * p + q * w
        drift.combine(p, q, float(S @ np.abs(w_b)) + far, scale)
        exact = [sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(row, w_b, strict=True)) for row in x]
        off = sum(abs(Fraction(float(z_b[i])) - (exact[i] - Fraction(float(t[i])))) for i in range(30))
        assert off <= Fraction(drift.error)


def separable(seed=0, n=400, d=3000):
    """Counts of words, unscaled, whose classes a plane through 0 separates."""
    rng = np.random.default_rng(seed)
    words = np.minimum((d ** rng.random((n, 60))).astype(int), d - 1)
    X = sp.csr_array((np.ones(words.size), words.ravel(), np.arange(0, words.size + 1, 60)), shape=(n, d))
    X.sum_duplicates()
    scores = X @ rng.standard_normal(d)
    return X, np.where(scores > np.median(scores), 1.0, -1.0)


def test_separable_data_ends_in_fewer_passes(monkeypatch):
    X, y = separable()
    passes = []
    for spread in (BundleState.spread, lambda state, oracle: None):
        monkeypatch.setattr(BundleState, "spread", spread)
        model = train(MemoryDataset(X, y), C=10.0, scheduler="sync", row_cache="0", tol=None, max_passes=300)
        passes.append(model.history[-1]["passes"])
    assert passes[0] <= 0.8 * passes[1]


@pytest.mark.parametrize("loss", by_night(["hinge", "logistic", "squared", "quantile", "poisson"], ("squared", "quantile")))
@pytest.mark.parametrize("l1", [0.0, 0.5])
def test_certificates_hold_after_searches_over_planes(loss, l1):
    X, y = separable(1, 120, 40)
    if loss not in LABELS:
        y = np.random.default_rng(1).poisson(np.exp(0.1 * X.sum(axis=1) ** 0.5)).astype(float)
    task = "binary" if loss in LABELS else "regression"
    model = train(MemoryDataset(X, y), task=task, loss=loss, l1=l1, C=0.3, tol=1e-5, scheduler="sync", lanes=2, max_passes=400)
    assert model.certificate.converged
    assert verify(model, (X, y)).consistent


def test_the_same_bits_on_threads_in_any_shards_and_after_a_resume(tmp_path):
    X, y = separable(2)
    common = {"C": 1.0, "lanes": 3, "max_passes": 40, "tol": None, "tol_relative": None, "row_cache": "0"}
    alone = train(MemoryDataset(X, y), scheduler="sync", **common)
    threads = train(MemoryDataset(X, y, shard_nnz=900), workers=3, **common)
    place = str(tmp_path / "c")
    train(MemoryDataset(X, y), scheduler="sync", checkpoint=place, **{**common, "max_passes": 13})
    resumed = train(MemoryDataset(X, y), scheduler="sync", checkpoint=CheckpointOptions(place, resume=True), **common)
    assert alone.weights.tobytes() == threads.weights.tobytes() == resumed.weights.tobytes()
