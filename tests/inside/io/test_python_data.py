"""Data that Python programs hold: blocks appended to a new store, frames, arrays, and raw files given to `train`."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from streamcut.foundation.chunk import csr_arrays


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, np.int64, bool])
@pytest.mark.parametrize("shape", [(4, 3), (1, 1), (5, 0), (0, 3)])
@pytest.mark.parametrize("zeros", [False, True])
def test_dense_rows_are_the_entries_that_scipy_finds(dtype, shape, zeros):
    """Those without a zero go a shorter way. None shares memory with what came: that may be read-only."""
    X = np.asfortranarray(np.arange(1, 1 + shape[0] * shape[1]).reshape(shape).astype(dtype))
    if zeros and X.size:
        X[0, 0] = 0
    indptr, indices, values, found = csr_arrays(X)
    expected = sp.csr_array(X)
    assert found == shape
    assert (indptr.dtype, indices.dtype) == (np.int64, np.int32)
    for ours, theirs in ((indptr, expected.indptr), (indices, expected.indices), (values, expected.data)):
        np.testing.assert_array_equal(ours, theirs)
    assert not np.shares_memory(values, X)
