"""A path over C: fewer passes than trainings of their own take, and the same bits after a stop."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut import CheckpointOptions, train
from streamcut.grids.selection import train_path
from streamcut.models.certificate import StopReason

CS = [0.01, 0.1, 1.0]
SOLVERS = {
    "ocas": {"solver": "ocas"},
    "exact": {"solver": "ocas", "cut": "exact"},
    "cpa": {"solver": "cpa"},
    "bundle-dca": {"solver": "bundle-dca", "max_cuts": 6, "row_cache": "30%"},
}


@cache
def data(seed: int = 0, weighted: bool = False) -> Any:
    rng = np.random.default_rng(seed)
    X = sp.random_array((500, 30), density=0.3, format="csr", rng=rng, data_sampler=rng.standard_normal)
    y = np.where(X @ np.random.default_rng(7).standard_normal(30) + 0.5 * rng.standard_normal(500) > 0.1, 1.0, -1.0)
    return streamcut.rows(X, y, weight=rng.uniform(0.2, 3.0, 500) if weighted else None)


@pytest.mark.parametrize("solver", SOLVERS)
def test_going_on_takes_fewer_passes(solver):
    _, tried = train_path(data(), [0.5, 1.0, 2.0], max_passes=900, **SOLVERS[solver])
    alone = [train(data(), C=C, max_passes=900, **SOLVERS[solver]).history[-1]["passes"] for C in (0.5, 1.0, 2.0)]
    assert tried[0].passes == alone[0]
    assert sum(line.passes for line in tried) < sum(alone)


@pytest.mark.parametrize("solver", ["ocas", "bundle-dca"])
def test_resumed_to_the_same_bits(solver, tmp_path):
    options = {**SOLVERS[solver], "tol": 1e-6, "tol_relative": None, "max_passes": 400, "lanes": 2}

    def bits(models):
        return [(m.weights.tobytes(), m.certificate, m.history[-1]["passes"]) for m in models]

    undisturbed, found = [], []
    train_path(data(), CS, on_model=lambda model, _: undisturbed.append(model), **options)
    for limit in (40, 170, 10**9):  # the run is stopped after so many looks at the flag, then goes on
        found.clear()
        looks = iter(range(limit))
        checkpoint = CheckpointOptions(str(tmp_path / "run"), every=0.0, resume=True)
        try:
            train_path(
                data(),
                CS,
                checkpoint=checkpoint,
                stop=lambda looks=looks: next(looks, None) is None,
                on_model=lambda model, _: found.append(model),
                **options,
            )
        except KeyboardInterrupt:
            continue
    assert all(model.certificate.stop_reason is not StopReason.INTERRUPTED for model in found)
    assert bits(found) == bits(undisturbed)
