"""A store of many shards, for tests of runners and clusters."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

import streamcut

ROWS, FEATURES, SHARD_NNZ = 3000, 40, 1000


def make_store(path):
    """A store of many shards, with row weights."""
    rng = np.random.default_rng(5)
    X = sp.random_array((ROWS, FEATURES), density=0.2, format="csr", rng=rng, data_sampler=rng.standard_normal)
    y = np.where(X @ rng.standard_normal(FEATURES) + 0.3 * rng.standard_normal(ROWS) > 0, 1.0, -1.0)
    with streamcut.create(path, FEATURES, shard_nnz=SHARD_NNZ) as out:
        out.append(X, y, weight=rng.uniform(0.5, 2.0, ROWS))
    return streamcut.open(path)
