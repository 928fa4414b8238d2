"""Kernel solvers that are killed end with the bits of an undisturbed run after --resume."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from functools import cache
from itertools import count
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut import CheckpointOptions, train
from streamcut.foundation import files

EPOCHS = {"epochs": 1.5, "seed": 3, "C": 2.0}
SOLVERS = {
    "sbp with bias": {"solver": "sbp", **EPOCHS, "batch": 7},
    "sdca": {"solver": "sdca", **EPOCHS, "bias": 0.0},
    "smo": {"solver": "smo", "C": 50.0, "tol": 1e-6, "tol_relative": None, "kernel_cache": "5%"},
}
KERNEL = {"kernel": "rbf", "gamma": 0.4, "scheduler": "sync"}
TOLD = ("rows_seen", "passes", "support", "error", "tolerance", "steps", "primal", "lower_bound", "margin", "dual")


@cache
def data() -> Any:
    """300 rows in 4 shards."""
    rng = np.random.default_rng(0)
    X = sp.random_array((300, 8), density=0.6, format="csr", rng=rng, data_sampler=rng.standard_normal)
    y = np.where(X @ rng.standard_normal(8) + 0.7 * rng.standard_normal(300) > 0.1, 1.0, -1.0)
    return streamcut.rows(X, y, shard_nnz=400)


def bits(model) -> tuple:
    """Everything that must not change; SMO counts columns that it had to compute again."""
    path = [[line[name] for name in TOLD if name in line] for line in model.history]
    support = model.support
    arrays = [array.tobytes() for array in (support.indptr, support.indices, support.data, model.coefficients)]
    return arrays, model.intercept, model.certificate, model.reason, json.dumps(path)


def options(folder, **other) -> CheckpointOptions:
    return CheckpointOptions(str(folder), **{"every": 0.0, "resume": True, **other})


@pytest.fixture(autouse=True)
def _no_failpoints(monkeypatch):
    monkeypatch.delenv("STREAMCUT_FAILPOINT", raising=False)
    monkeypatch.setattr(files, "_hits", Counter())


@pytest.mark.parametrize("solver", SOLVERS)
def test_killed_anywhere_it_goes_on_to_the_same_bits(tmp_path, solver):
    chosen = {**KERNEL, **SOLVERS[solver], **({} if solver == "smo" else {"epochs": 0.3})}
    expected = bits(train(data(), **chosen))
    kills = 0
    for visit in count(3, 14):
        child = os.fork()
        if child == 0:
            try:
                os.environ["STREAMCUT_FAILPOINT"] = f"ckpt_tmp:{visit}:kill"
                model = train(data(), checkpoint=options(tmp_path / "run", every=0.0), **chosen)
                os._exit(0 if bits(model) == expected else 1)
            except BaseException:
                os._exit(2)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
        kills += 1
    assert kills > 0
    assert bits(train(data(), checkpoint=options(tmp_path / "run"), **chosen)) == expected
