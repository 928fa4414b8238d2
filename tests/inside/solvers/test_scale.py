"""Scaling as a training option: that of scikit-learn's scalers, with a certificate of the scaled problem, anywhere it runs."""

import numpy as np
import pytest
import scipy.sparse as sp
from kit.shared.scale import SCALERS, problem

import streamcut
from streamcut.execution.scaled import ScaledDataset


@pytest.mark.parametrize("scale", SCALERS)
def test_values_are_those_of_scikit_learn(scale):
    X, y = problem()
    data = ScaledDataset(streamcut.rows(X, y, shard_nnz=300), scale)
    parts = [data.read(k) for k in range(len(data.manifest.shards))]
    found = sp.vstack([sp.csr_array((p.data, p.indices, p.indptr), (p.n_rows, X.shape[1])) for p in parts]).toarray()
    expected = SCALERS[scale].fit_transform(X).toarray()
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    known = data.manifest.statistics
    assert np.abs(found).max() == known.max_abs_value
    assert (found**2).sum(axis=1).max() <= known.max_squared_norm
