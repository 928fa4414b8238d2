"""Rows scored alone: the bits of the kernel's scores, without the kernel."""

from __future__ import annotations

import kit.shared.few_rows
import numpy as np
import pytest
import scipy.sparse as sp

from streamcut.errors import BadInputError

model = kit.shared.few_rows.model


@pytest.mark.parametrize(
    "row",
    [
        np.ones(59),
        np.ones((1, 61)),
        np.full(60, np.nan),
        sp.csr_array(np.full((1, 60), np.inf)),
        sp.csr_array(np.ones((1, 61))),
    ],
    ids=["narrow", "wide", "nan", "inf", "wide-sparse"],
)
def test_bad_rows_are_refused(model, row):
    with pytest.raises(BadInputError, match=r"row 0 \(0-based\) of X gives|but the model has 60 features"):
        model.decision_function(row)


def test_indices_outside_the_model_are_refused(model):
    row = sp.csr_array(np.ones((1, 60)))
    row.indices[-1] = 60
    with pytest.raises(BadInputError):
        model.decision_function(row)
