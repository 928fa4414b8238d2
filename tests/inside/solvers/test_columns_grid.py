"""Columns of several C, λ and folds: each has the certificate of its own training on its own rows."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from kit.nights import by_night
from reference.exact import LOSSES
from reference.exact_bounds import problem
from reference.grids import grid, kept

import streamcut
from streamcut import train, verify
from streamcut.io.row_view import Folds
from streamcut.jobs.columns import Point
from streamcut.loss_table import ROW_LOSSES
from streamcut.losses import row_loss

TIGHT = {"tol": 1e-5, "tol_relative": None}
FOLDS = Folds(3, seed=2)
POINTS = [Point(C, l1, fold) for C, l1, fold in product((0.1, 2.0), (0.0, 0.4), (-1, 0, 2))]
OWN = {"epsilon": 0.2, "delta": 0.7, "quantile": 0.3}
NIGHTLY = [loss for loss in ROW_LOSSES if loss not in ("hinge", "logistic", "poisson")]
losses = pytest.mark.parametrize("loss", by_night(ROW_LOSSES, NIGHTLY))


def rows(loss, n=150, d=8, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.5, format="csr", rng=rng, data_sampler=rng.standard_normal)
    s = X @ rng.standard_normal(d) + 0.4 * rng.standard_normal(n)
    y = np.where(s > 0.0, 1.0, -1.0) if ROW_LOSSES[loss].targets == "labels" else s
    y = rng.poisson(np.exp(np.clip(s, -2.0, 2.0))).astype(float) if loss == "poisson" else y
    return X, y, rng.uniform(0.2, 2.0, n)


def options_of(loss):
    task = "binary" if ROW_LOSSES[loss].targets == "labels" else "regression"
    return {"task": task, "loss": loss, **{name: OWN[name] for name in ROW_LOSSES[loss].options}}


@pytest.mark.thirds
@losses
def test_every_column_is_its_own_training_on_its_own_rows(loss):
    X, y, u = rows(loss)
    found = grid(streamcut.rows(X, y, weight=u), POINTS, FOLDS, **options_of(loss), bias=1.0, **TIGHT)
    risk = row_loss(loss, OWN)
    for point, model in zip(POINTS, found, strict=True):
        mine = kept(FOLDS, len(y), point.fold)
        own = streamcut.rows(sp.csr_array(X[mine]), y[mine], weight=u[mine])
        alone = train(own, **options_of(loss), C=point.C, l1=point.l1, bias=1.0, **TIGHT, scheduler="sync")
        claim, other = model.certificate, alone.certificate
        assert model.converged
        assert claim.c_bar == pytest.approx(point.C * u[mine].sum(), rel=1e-12)
        assert claim.lower_bound <= other.primal * (1.0 + 1e-12)
        assert other.lower_bound <= claim.primal * (1.0 + 1e-12)
        scores, w = X[mine] @ model.weights + model.intercept, np.append(model.weights, model.intercept)
        total = sum(weight * risk.value(risk.sign(t) * s - risk.offset(t), t) for weight, s, t in
                    zip(u[mine], scores, y[mine], strict=True))  # fmt: skip
        assert claim.primal == pytest.approx(0.5 * w @ w + point.l1 * np.abs(w).sum() + point.C * total, rel=1e-11)
        assert verify(model, own, force=True).primal == pytest.approx(claim.primal, rel=1e-11)


@pytest.mark.parametrize("loss", ["hinge", "softmax"])
def test_every_group_is_its_own_training_on_its_own_rows(loss):
    X, y, u = rows("squared")
    y, options = np.digitize(y, [-1.0, 0.0, 1.0]).astype(float), {"task": "multiclass", "loss": loss, "bias": 1.0}
    points = [Point(C, l1, fold) for C, l1, fold in product((0.1, 2.0), (0.0, 0.4), (-1, 2))]
    for point, model in zip(points, grid(streamcut.rows(X, y, weight=u), points, FOLDS, **options, **TIGHT), strict=True):
        mine = kept(FOLDS, len(y), point.fold)
        own = streamcut.rows(sp.csr_array(X[mine]), y[mine], weight=u[mine])
        (claim,), alone = model.certificates, train(own, **options, C=point.C, l1=point.l1, **TIGHT, scheduler="sync")
        assert model.converged
        assert claim.c_bar == pytest.approx(point.C * u[mine].sum(), rel=1e-12)
        assert claim.lower_bound <= alone.certificates[0].primal * (1.0 + 1e-12)
        assert alone.certificates[0].lower_bound <= claim.primal * (1.0 + 1e-12)
        assert verify(model, own, force=True).primal == pytest.approx(claim.primal, rel=1e-11)


def exact_objective(model, point, given, mine):
    """Enclosure of F by fractions, over the rows of a column."""
    w = [*map(Fraction, model.weights.tolist()), Fraction(float(model.intercept)) / Fraction(given.bias)] if given.bias else [
        Fraction(value) for value in model.weights.tolist()]  # fmt: skip
    total = [sum(v * v for v in w) / 2 + Fraction(point.l1) * sum(map(abs, w))] * 2
    own = {name: Fraction(value) for name, value in given.own.items()}
    weight = np.ones(len(given.y)) if given.weight is None else given.weight
    for i in np.flatnonzero(mine & (weight > 0.0)):
        x = [*map(Fraction, given.X[i].astype(float).tolist()), *([Fraction(given.bias)] if given.bias else [])]
        loss = LOSSES[given.loss](sum(a * b for a, b in zip(w, x, strict=True)), Fraction(float(given.y[i])), own)
        total = [sum_ + Fraction(point.C) * Fraction(float(weight[i])) * part for sum_, part in zip(total, loss, strict=True)]
    return total


@pytest.mark.thirds
@losses
def test_claims_of_columns_are_true_in_exact_arithmetic(loss):
    tried = 0
    for seed in range(12):
        given = problem(loss, seed, rows=14, features=5, one_type=True)
        folds, weight = Folds(2, seed), given.weight
        if min((weight * (folds.of_rows(0, len(weight)) == k)).sum() for k in range(2)) == 0.0:
            continue
        points = [Point(given.C * c, l1, fold) for c, l1, fold in product((1.0, 0.01), (0.0, 1e-3), (-1, 0, 1))]
        data, found = streamcut.rows(given.X, given.y, weight=weight), []
        for way in ({"tol": 1e-3, "max_passes": 3}, {"tol": 1e-9, "max_passes": 40, "cache": 0}):
            found.append(grid(data, points, folds, bias=given.bias, tol_relative=None, **options_of(loss) | given.own, **way))
        for point, *models in zip(points, *found, strict=True):
            mine = kept(folds, len(weight), point.fold)
            values = [exact_objective(model, point, given, mine) for model in models]
            for model, (_, high) in zip(models, values, strict=True):
                if model.certificate.primal < np.inf:  # where rounding moves e^s by any factor, F is not known
                    assert Fraction(model.certificate.primal) >= high, (seed, point)
                assert Fraction(model.certificate.lower_bound) <= min(low for low, _ in values), (seed, point)
            tried += 1
    assert tried > 60
