"""Nyström features: projections on landmarks, the same whoever reads them, and models that carry them along."""

import numpy as np
import pytest
import scipy.sparse as sp
from kit.shared.nystroem import rings
from reference.kernels import matrix

import streamcut
from streamcut.compiled import feature_maps
from streamcut.execution.feed import Feed
from streamcut.kernels.kernel import Kernel
from streamcut.oracles.landmarks import nystroem_map
from streamcut.oracles.mapped import MappedDataset


def drawn(X, y, kernel, landmarks, seed=0) -> MappedDataset:
    data = streamcut.rows(X, y)
    return MappedDataset(data, nystroem_map(Feed(data), kernel, landmarks, seed))


def test_cholesky_with_pivots():
    rng = np.random.default_rng(1)
    B = rng.standard_normal((12, 5))
    K = B @ B.T  # rank 5
    L, pivots = np.zeros((12, 12)), np.empty(12, np.int64)
    rank = feature_maps.pivoted_cholesky(K, 1e-9, L, pivots)
    assert rank == 5
    assert sorted(pivots) == list(range(12))
    assert np.allclose(L[:, :5] @ L[:, :5].T, K[np.ix_(pivots, pivots)])
    inverse = np.zeros((5, 5))
    feature_maps.inverse_transposed(np.ascontiguousarray(L[:5, :5]), inverse)
    assert np.allclose(inverse.T @ L[:5, :5], np.eye(5))


@pytest.mark.parametrize("kernel", [Kernel("rbf", 0.5), Kernel("poly", 0.5, 2, 1.0)])
def test_with_all_rows_as_landmarks_features_give_the_kernel(kernel):
    X, y = rings(60)
    data = drawn(X, y, kernel, 60)
    features = data.map.features(data.inner.read(0))
    K = matrix(kernel, X, X)
    assert np.allclose(features @ features.T, K, atol=1e-4 * K.max())
    assert data.manifest.statistics.max_abs_value >= np.abs(features).max()
    assert data.manifest.statistics.max_squared_norm >= (features.astype(np.float64) ** 2).sum(axis=1).max()


def test_few_landmarks_project():
    X, y = rings(80)
    kernel = Kernel("rbf", 0.5)
    data = drawn(X, y, kernel, 20, seed=3)
    features = data.map.features(data.inner.read(0)).astype(np.float64)
    rows = data.map.landmarks
    S = sp.csr_array((rows.data, rows.indices, rows.indptr), shape=(rows.n_rows, 3)).toarray()
    KS = matrix(kernel, X, S)
    assert np.allclose(features @ features.T, KS @ np.linalg.pinv(matrix(kernel, S, S)) @ KS.T, atol=1e-4)
