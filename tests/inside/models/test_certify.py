"""certify: bounds are never above the optimum, whatever the model; what cannot be certified is refused by name."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
import scipy.sparse as sp
from kit.certify import OWN, least, rows

import streamcut
from streamcut.certifying.foreign import Foreign

LABELS = ("logistic", "hinge", "squared-hinge", "smoothed-hinge")
NUMBERS = ("squared", "huber", "epsilon-insensitive", "squared-epsilon-insensitive", "poisson")


def foreign(w, b, C, loss, intercept, data):
    """A model of other weights, about which nothing is proved."""
    said = {"C": C, "loss": loss, "options": OWN.get(loss, {})}
    return Foreign("it", w, b, said).completed(None, None, intercept, None).model(streamcut.rows(*data).manifest.statistics)


def exact(loss: str, w: np.ndarray, b: float, X: np.ndarray, y: np.ndarray, C: float, u: np.ndarray) -> Decimal:
    """F in 80 digits."""
    with localcontext() as context:
        context.prec = 80
        big = [Decimal(value) for value in w.tolist()]
        total = sum((value * value for value in big), Decimal(0)) / 2
        for x, target, weight in zip(X.tolist(), y.tolist(), u.tolist(), strict=True):
            score = sum((Decimal(p) * q for p, q in zip(x, big, strict=True)), Decimal(b))
            total += Decimal(C) * Decimal(weight) * _loss(loss, score, Decimal(target))
        return total


def _loss(loss: str, s: Decimal, y: Decimal) -> Decimal:
    zero, half = Decimal(0), Decimal("0.5")
    if loss in LABELS:
        z = s * y
        below = max(zero, 1 - z)
        if loss == "logistic":
            return (1 + (-z).exp()).ln() if z > -300 else -z + (1 + z.exp()).ln()
        if loss == "smoothed-hinge":
            return half * below * below if below < 1 else below - half
        return below if loss == "hinge" else below * below
    far = abs(s - y)
    if loss == "poisson":
        return s.exp() - y * s + (y * y.ln() - y if y > 0 else zero)
    if loss == "squared":
        return half * far * far
    if loss == "huber":
        return half * far * far if far <= 1 else far - half
    beyond = max(zero, far - Decimal.from_float(0.1))
    return beyond if loss == "epsilon-insensitive" else beyond * beyond


@pytest.mark.thirds
@pytest.mark.parametrize("loss", LABELS + NUMBERS)
def test_no_bound_is_above_the_optimum(loss):
    """Bounds in 80 digits: of good models, bad ones, and ones that are wrong by a lot; free intercepts and none."""
    task = "labels" if loss in LABELS else "counts" if loss == "poisson" else "numbers"
    for seed in range(34):
        random = np.random.default_rng(1000 + seed)
        X, y = rows(seed, task=task, one_in=random.choice([2, 5, 20]))
        u = random.choice([1.0, 3.0, 0.25], len(y)) if seed % 3 == 0 else np.ones(len(y))
        C, free = float(10.0 ** random.integers(-2, 2)), seed % 4 != 3
        v = random.normal(size=X.shape[1] + free) * (0.01 if loss == "poisson" else 0.3)
        v = least(loss, X, y, C, u, v, free)
        off = v + random.normal(size=len(v)) * 10.0 ** -random.integers(0, 9) * (0.01 if loss == "poisson" else 1.0)
        w, b = off[: X.shape[1]], float(off[-1]) if free else 0.0
        data = (X if seed % 2 else sp.csr_array(X), y, u) if seed % 3 == 0 else (X if seed % 2 else sp.csr_array(X), y)
        given = foreign(w, b, C, loss, "free" if free else "none", (X, y))
        found = streamcut.certify(given, data, int(random.integers(1, 5)))
        F0 = exact(loss, w, b, X, y, C, u)
        best = exact(loss, v[: X.shape[1]], float(v[-1]) if free else 0.0, X, y, C, u)
        better = found.better
        reached = exact(loss, better.weights, better.intercept, X, y, C, u)
        lowest = min(F0, best, reached)
        assert Decimal(found.certificate.lower_bound) <= lowest, (loss, seed)
        assert Decimal(found.certificate.primal) >= F0, (loss, seed)
        assert reached <= Decimal(better.certificate.primal), (loss, seed)
        assert Decimal(found.at_least) * Decimal(found.certificate.primal) <= F0 - reached + Decimal("1e-13") * F0, (loss, seed)
        assert found.at_least <= found.at_most


def test_our_own_models(tmp_path):
    X, y = rows(11, n=200)
    model = streamcut.train((X, y), loss="logistic", bias=1.0, tol_relative=1e-6)
    streamcut.save_model(model, tmp_path / "m.npz")
    found = streamcut.certify(tmp_path / "m.npz", (X, y))
    assert found.at_most < 1e-5
    assert found.intercept == 1.0
    assert found.certificate.primal == pytest.approx(model.certificate.primal, rel=1e-9)
    streamcut.save_model(found.better, tmp_path / "better.npz")
    again = streamcut.certify(tmp_path / "better.npz", (X, y), 1)
    assert again.certificate.primal == pytest.approx(found.better.certificate.primal, rel=1e-12)
    assert again.intercept == 1.0
    assert streamcut.verify(again.better, (X, y)).outcome == "reached"
