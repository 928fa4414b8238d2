"""Kernel certificates in exact arithmetic, near the origin and far from it: lower bound ≤ optimum ≤ F(model) ≤ primal."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from kit.shared.far_kernels import RBF, rows

from streamcut import load_model, save_model, train


@pytest.mark.parametrize("solver", ["smo", "sbp", "sdca", "pegasos", "bsca", "bsgd", "sampled-linear", "nystroem"])
def test_shifting_all_rows_changes_no_answer(solver, tmp_path):
    """Of whole numbers, whose centred rows are the same to the last bit but for the centre."""
    options = dict(RBF, C=1.0)
    options |= {"solver": "bundle-dca", "nystroem": 10, "tol_relative": 1e-6} if solver == "nystroem" else {"solver": solver}
    if solver in ("sbp", "sdca", "pegasos"):
        options |= {"epochs": 2.0}
    if solver in ("sbp", "sdca", "pegasos", "smo"):
        options["bias"] = 0.0
    if solver in ("bsca", "bsgd"):
        options |= {"budget": 12, "epochs": 3.0}
    scores = []
    for offset in (0.0, 1e9):
        X, y = rows(offset)
        model = train((sp.csr_array(X), y), **options)
        save_model(model, tmp_path / "m.npz")
        loaded = load_model(tmp_path / "m.npz")
        assert np.array_equal(loaded.decision_function(X), model.decision_function(X))
        scores.append(model.decision_function(X + 0.5))
    close = 1e-3 if solver in ("nystroem", "sampled-linear", "smo") else 1e-6
    np.testing.assert_allclose(scores[1], scores[0], atol=close * np.abs(scores[0]).max())
