"""A training that starts from a model never ends with a worse one."""

import numpy as np
import pytest

import streamcut

RNG = np.random.default_rng(5)
X, WEIGHT = (RNG.random((1500, 120)) < 0.3).astype(float), np.ones(1500)
X[0, 0] = 2.0  # as the laws' rows have values and weights, for which kernels are compiled
CLASSES = (X @ RNG.standard_normal((120, 3))).argmax(axis=1).astype(float)
TARGETS = X @ RNG.standard_normal(120) + RNG.standard_normal(1500)

PROBLEMS = {
    **{f"one-vs-rest, {loss}": (CLASSES, {"task": "multiclass", "strategy": "one-vs-rest", "loss": loss})
       for loss in ("hinge", "squared-hinge", "logistic")},
    **{f"classes, {loss}": (CLASSES, {"task": "multiclass", "loss": loss}) for loss in ("hinge", "softmax")},
    **{f"two classes, {loss}, {intercept}": (np.where(CLASSES == 0.0, 1.0, -1.0), {"loss": loss, "intercept": intercept})
       for loss in ("hinge", "squared-hinge", "logistic") for intercept in ("regularised", "free")},
    **{f"numbers, {loss}, l1": (TARGETS, {"task": "regression", "loss": loss, "l1": 2.0}) for loss in ("squared", "huber")},
}  # fmt: skip


@pytest.mark.parametrize("solver", ["bundle-dca", "auto"])
@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_best_point_is_kept(name, passes, solver):
    y, options = PROBLEMS[name]
    options = {**options, "solver": solver}
    start = streamcut.train((X, y, WEIGHT), tol=None, tol_relative=1e-4, max_passes=40, **options)
    after = streamcut.train((X, y, WEIGHT), warm_start=start, max_passes=passes, tol=None, tol_relative=1e-9, **options)
    for begin, end in zip(primals(start), primals(after), strict=True):
        assert end <= begin * (1.0 + 1e-9)


def primals(model):
    return [each.primal for each in model.certificates]
