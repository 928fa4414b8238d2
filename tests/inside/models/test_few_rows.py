"""Rows scored alone: the bits of the kernel's scores, without the kernel."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut.errors import BadInputError
from streamcut.models.few_rows import MOST, few_rows


@pytest.fixture(scope="module", params=[2, 5], ids=["two-classes", "five-classes"])
def model(request):
    rng = np.random.default_rng(request.param)
    X = sp.random(300, 60, 0.2, format="csr", random_state=1, data_rvs=lambda n: rng.standard_normal(n))
    y = rng.integers(request.param, size=300).astype(float)
    return streamcut.train(streamcut.rows(X, y), C=3.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8])
def test_a_row_alone_has_the_bits_it_has_among_others(model, dtype):
    rng = np.random.default_rng(0)
    values = rng.integers(-100, 100, (3 * MOST, 60)) if dtype is np.int8 else rng.standard_normal((3 * MOST, 60))
    dense = (values * (rng.random(values.shape) < 0.3)).astype(dtype)
    sparse = sp.csr_array(dense)
    together = model.decision_function(sparse)
    assert few_rows(sparse, 60) is None
    for i in range(len(dense)):
        for row in (dense[i], dense[i : i + 1], sparse[[i]], sp.csr_matrix(dense[i : i + 1])):
            assert few_rows(row, 60) is not None
            np.testing.assert_array_equal(model.decision_function(row), together[i : i + 1])
    np.testing.assert_array_equal(model.decision_function(sparse[:MOST]), together[:MOST])
    np.testing.assert_array_equal(model.predict(sparse[:MOST]), model.predict(sparse)[:MOST])


def test_a_service_of_single_rows_starts_no_compiler(model, tmp_path):
    model.save(tmp_path / "m.npz")
    program = """
import sys
import numpy as np
import streamcut
label = streamcut.load_model(sys.argv[1]).predict(np.ones(60)).tolist()
print(label, {"numba", "scipy.sparse", "zarr", "sklearn"} & set(sys.modules))
"""
    command = [sys.executable, "-P", "-c", program, str(tmp_path / "m.npz")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"{model.predict(np.ones(60)).tolist()} set()\n"


@pytest.mark.parametrize("of", [np.array, sp.csr_array])
def test_bad_rows_are_refused(model, of):
    for row in (np.ones((1, 59)), np.ones((1, 61)), np.full((1, 60), np.nan), np.full((1, 60), np.inf)):
        with pytest.raises(BadInputError, match=r"row 0 \(0-based\) of X gives|but the model has 60 features"):
            model.decision_function(of(row))
    outside = sp.csr_array(np.ones((1, 60)))
    outside.indices[-1] = 60
    with pytest.raises(BadInputError):
        model.decision_function(outside)
