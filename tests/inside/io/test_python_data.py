"""Data that Python programs hold: blocks appended to a new store, frames, arrays, and raw files given to `train`."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from streamcut.errors import BadInputError
from streamcut.foundation.chunk import csr_arrays
from streamcut.io.sources.arrays import LabelNumbers


def test_labels_of_python():
    numbers = LabelNumbers({}, learn=True)
    assert numbers.of(["b", "a", "b"]).tolist() == [0, 1, 0]
    assert numbers.of(pd.Categorical(["c", "a"])).tolist() == [2, 1]
    assert numbers.rule.words == (("b", 0.0), ("a", 1.0), ("c", 2.0))
    with pytest.raises(BadInputError, match="labels were words before"):
        numbers.of([1.0])
    with pytest.raises(BadInputError, match=r"row 3 .*the label is nan"):
        LabelNumbers({}, learn=True).of([1.0, np.nan], 2)


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
