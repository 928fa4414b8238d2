"""Training that starts from a model: certificates as good as any, fewer passes, and what no training can start from."""

from __future__ import annotations

from functools import cache

import kit.shared.warm_start
import numpy as np
import pytest
from kit.shared.warm_start import FEATURES, OLD_ROWS, data, passes

from streamcut import load_model, train
from streamcut.grids.selection import train_path
from streamcut.io.memory import MemoryDataset
from streamcut.models.certificate import Certificate

saved = kit.shared.warm_start.saved

SOLVERS = {
    "ocas": {"solver": "ocas"},
    "exact": {"solver": "ocas", "cut": "exact"},
    "cpa": {"solver": "cpa"},
    "bundle-dca": {"solver": "bundle-dca", "row_cache": "0"},
    "bundle-dca, rows cached": {"solver": "bundle-dca", "row_cache": "10%", "max_cuts": 4},
}


@cache
def solved(dataset: MemoryDataset, C: float, bias: float, positive_weight: float) -> Certificate:
    """The optimum, nearly."""
    options = {"C": C, "bias": bias, "positive_weight": positive_weight, "tol": 1e-6, "tol_relative": None}
    return train(dataset, solver="bundle-dca", row_cache="100%", **options).certificate


def check(model, dataset: MemoryDataset) -> None:
    """The certificate of `model` is true."""
    chunk = dataset.read(0)
    weight = np.where(chunk.y > 0, model.positive_weight, 1.0) * (1.0 if chunk.weight is None else chunk.weight)
    w, loss = model.augmented_weights, np.maximum(0.0, 1.0 - chunk.y * model.score_chunk(chunk))
    certificate, exact = model.certificate, solved(dataset, model.C, model.bias, model.positive_weight)
    assert certificate.converged
    assert certificate.primal == pytest.approx(0.5 * w @ w + model.C * weight @ loss, rel=1e-11)
    assert certificate.primal >= exact.lower_bound
    assert certificate.lower_bound <= exact.primal
    assert model.witness.bound(certificate.c_bar) == pytest.approx(certificate.lower_bound, rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("solver", SOLVERS)
def test_another_c(solver, weighted, saved):
    dataset, options = data(weighted=weighted), {**SOLVERS[solver], "max_passes": 900}
    before = saved(dataset, C=0.3, **options)
    assert passes(train(dataset, C=0.3, warm_start=before, **options)) == 1
    for C in (0.2, 0.5):
        warm = train(dataset, C=C, warm_start=before, **options)
        check(warm, dataset)
        # dual ascent begins with no shares either way, so it may take as many passes from here
        assert passes(warm) < passes(train(dataset, C=C, **options)) + (options["solver"] == "bundle-dca")


@pytest.mark.parametrize("solver", SOLVERS)
def test_new_rows_and_features(solver, saved):
    options = {**SOLVERS[solver], "max_passes": 900}
    before = saved(data(OLD_ROWS, FEATURES - 1), **options)
    warm = train(data(), warm_start=before, **options)
    check(warm, data())
    # dual ascent begins with no shares, and no cut holds for other rows
    assert passes(warm) < passes(train(data(), **options)) + 2 * (options["solver"] == "bundle-dca")


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("change", [{"bias": 0.0}, {"bias": 2.5}, {"positive_weight": 3.0}])
def test_another_problem(change, solver, saved):
    """Weights are a start for any; a witness is one of its own problem only."""
    before = saved(data())
    first = train(data(), warm_start=before, max_passes=1, **SOLVERS[solver], **change)
    assert not np.array_equal(first.witness.a, load_model(before).witness.a)
    check(train(data(), warm_start=before, max_passes=900, **SOLVERS[solver], **change), data())


def test_a_path_over_c_begins_there(saved):
    before = saved(data(OLD_ROWS), C=0.1)
    _, cold = train_path(data(), [0.1, 1.0], row_cache="0")
    _, warm = train_path(data(), [0.1, 1.0], row_cache="0", warm_start=before)
    assert warm[0].passes < cold[0].passes
