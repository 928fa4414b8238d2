"""Columns whose features differ in size: where passes stall, cached rows are solved for at once."""

import pytest
import scipy.sparse as sp
from kit.shared.columns_at_once import DEFAULT, problem
from reference.grids import grid, kept

import streamcut
from streamcut import train
from streamcut.io.row_view import Folds
from streamcut.jobs.columns import Point

TUBE = pytest.param("regression", "epsilon-insensitive", marks=pytest.mark.long)


@pytest.mark.parametrize(("task", "loss"), [("binary", "hinge"), TUBE])
def test_a_grid_of_unscaled_features_converges_on_its_own_rows(task, loss):
    X, y, u = problem(classes=2 if task == "binary" else 0)
    folds, points = Folds(3, seed=1), [Point(C, 0.0, fold) for C in (1.0, 10.0) for fold in (-1, 0, 1)]
    found = grid(streamcut.rows(X, y, weight=u), points, folds, task=task, loss=loss, bias=1.0, **DEFAULT)
    for point, model in zip(points, found, strict=True):
        mine = kept(folds, len(y), point.fold)
        own = streamcut.rows(sp.csr_array(X[mine]), y[mine], weight=u[mine])
        other = train(own, task=task, loss=loss, C=point.C, bias=1.0, scheduler="sync", **DEFAULT).certificate
        claim = model.certificate
        assert claim.converged
        assert model.history[-1]["passes"] <= 40
        assert claim.lower_bound <= other.primal
        assert other.lower_bound <= claim.primal
