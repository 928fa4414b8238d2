"""Measures of probabilities and of numbers, against scikit-learn, whatever blocks the rows come in."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn import metrics

from streamcut.foundation.chunk import Chunk
from streamcut.measures.probability import BINS, ProbabilityMeasures
from streamcut.measures.regression import RegressionMeasures

PARTS = [slice(0, 1), slice(1, 40), slice(40, 40), slice(40, 300)]


@pytest.fixture(params=["equal", "weighted"])
def u(request) -> np.ndarray | None:
    return None if request.param == "equal" else np.random.default_rng(1).integers(0, 4, 300).astype(np.float64)


def test_two_classes(u):
    rng = np.random.default_rng(0)
    p = rng.random(300)
    p[:3] = 0.0, 1.0, 0.5
    positive = rng.random(300) < p**2
    found = ProbabilityMeasures()
    for part in PARTS:
        found.add_binary(positive[part], p[part], None if u is None else u[part])
    got = found.measures()
    assert got["log_loss"] == pytest.approx(metrics.log_loss(positive, p, sample_weight=u), rel=1e-12)
    assert got["brier_score"] == pytest.approx(metrics.brier_score_loss(positive, p, sample_weight=u), rel=1e-12)
    w = np.ones(300) if u is None else u
    error = 0.0
    for b in range(BINS):
        inside = (np.minimum((p * BINS).astype(int), BINS - 1) == b) & (w > 0)
        if inside.any():
            error += abs((w * (positive - p))[inside].sum())
    assert got["calibration_error"] == pytest.approx(error / w.sum(), rel=1e-9)
    assert sum(line["weight"] for line in got["reliability"]) == pytest.approx(w.sum())


def test_several_classes(u):
    rng = np.random.default_rng(2)
    p = rng.dirichlet([1.0, 2.0, 0.5], 300)
    target = np.array([rng.choice(3, p=row) for row in p])
    found = ProbabilityMeasures()
    for part in PARTS:
        found.add_classes(target[part], p[part], None if u is None else u[part])
    got = found.measures()
    assert got["log_loss"] == pytest.approx(metrics.log_loss(target, p, sample_weight=u), rel=1e-9)
    brier = ((p - np.eye(3)[target]) ** 2).sum(axis=1)
    assert got["brier_score"] == pytest.approx(np.average(brier, weights=u), rel=1e-9)


def test_no_rows():
    assert ProbabilityMeasures().measures() == {
        "log_loss": None, "brier_score": None, "calibration_error": None, "reliability": [],
    }  # fmt: skip


@pytest.mark.parametrize("loss", ["squared", "quantile", "poisson"])
def test_numbers(loss, u):
    rng = np.random.default_rng(3)
    y = rng.poisson(2.0, 300).astype(np.float64) + (1e6 if loss == "squared" else 0.0)
    scores = np.log(y + 1.0) if loss == "poisson" else y + rng.normal(size=300)
    said = np.exp(scores) if loss == "poisson" else scores
    model = SimpleNamespace(parameters={"loss": loss, "quantile": 0.3}, labels_of=lambda s: np.exp(s) if loss == "poisson" else s)
    found = RegressionMeasures(model)
    for part in PARTS:
        n = len(y[part])
        chunk = Chunk(np.zeros(n + 1, np.int64), np.empty(0, np.int32), None, y[part], weight=None if u is None else u[part])
        found.add(chunk, scores[part])
    got = found.measures()
    assert got["r2"] == pytest.approx(metrics.r2_score(y, said, sample_weight=u), rel=1e-9)
    assert got["mean_absolute_error"] == pytest.approx(metrics.mean_absolute_error(y, said, sample_weight=u), rel=1e-12)
    assert got["mean_squared_error"] == pytest.approx(metrics.mean_squared_error(y, said, sample_weight=u), rel=1e-12)
    if loss == "quantile":
        assert got["pinball_loss"] == pytest.approx(metrics.mean_pinball_loss(y, said, sample_weight=u, alpha=0.3), rel=1e-12)
    if loss == "poisson":
        assert got["mean_poisson_deviance"] == pytest.approx(metrics.mean_poisson_deviance(y, said, sample_weight=u), rel=1e-12)
