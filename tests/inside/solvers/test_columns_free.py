"""Columns with intercepts that cost nothing: certificates are those of trainings of their own, bits the same whatever runs."""

from __future__ import annotations

from kit.columns import problem
from reference.grids import grid

import streamcut
from streamcut import verify
from streamcut.io.row_view import Folds
from streamcut.jobs.columns import Point


def test_columns_that_are_trained_in_groups_are_the_same_problems():
    X, y, _ = problem(300)
    data = streamcut.rows(X, y)
    points = [Point(C, 0.0, fold) for C in (0.1, 2.0) for fold in (-1, 0)]
    how: dict = {
        "task": "binary",
        "positive_label": 2.0,
        "intercept": "free",
        "tol": None,
        "tol_relative": 1e-5,
        "max_passes": 300,
    }
    at_once = grid(data, points, Folds(3, seed=2), **how)
    in_groups = grid(data, points, Folds(3, seed=2), **how, group=1)
    for one, two in zip(at_once, in_groups, strict=True):
        assert one.certificate.lower_bound <= two.certificate.primal
        assert two.certificate.lower_bound <= one.certificate.primal
    assert verify(at_once[0], data).consistent
