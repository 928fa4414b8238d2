"""When training ends, and why: no stop but for the reason that is named."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import streamcut
from streamcut import train

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts" / "checks"))


@pytest.mark.parametrize("C", [1e8, 1e12])
def test_separable_data_is_converged_only_within_both_tolerances(C):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 5))
    y = np.sign(X[:, 0] + 0.5 * np.sign(X[:, 0]))
    model = train(streamcut.rows(X, y), loss="logistic", C=C, max_passes=150)
    certificate = model.certificate
    assert certificate.gap <= min(1e-3 * certificate.c_bar, 0.01 * certificate.primal) or not certificate.converged
    assert certificate.converged == (certificate.stop_reason == "converged")
    assert model.history[-1]["waits_for"] == certificate.tolerance.rule == "tol_relative 0.01"
