"""Columns of several C, λ and folds: each has the certificate of its own training on its own rows."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from reference.exact import LOSSES
from reference.grids import grid, kept
from reference.scaled import problem

import streamcut
from streamcut.io.row_view import Folds
from streamcut.jobs.columns import Point
from streamcut.loss_table import ROW_LOSSES

OWN = {"epsilon": 0.2, "delta": 0.7, "quantile": 0.3}


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


@pytest.mark.parametrize("loss", ["hinge", "logistic", "poisson"])  # each has kernels of its own, which compile for long
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
