"""A fit of a few hundred rows costs what surrounds its passes: how many functions of ours it calls, which no machine changes."""

from __future__ import annotations

import os
import sys
import warnings
from types import FrameType
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import streamcut
import streamcut.io
from streamcut.sklearn import LinearSVM, LinearSVR

HOMES = tuple(os.path.realpath(place) + os.sep for package in (streamcut, streamcut.io) for place in package.__path__)
rng = np.random.default_rng(0)
X = rng.standard_normal((150, 4))


def called_by(fit: Any) -> int:
    """Functions of ours that a fit enters, once all kernels are loaded."""
    fit()
    count = 0

    def see(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call" and os.path.realpath(frame.f_code.co_filename).startswith(HOMES)

    sys.setprofile(see)
    try:
        fit()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    ("model", "y", "passes", "most"),
    [
        (LinearSVM(max_passes=3, tol=1e-9), np.where(X[:, 0] + 0.5 * rng.standard_normal(150) > 0, 1, -1), 3, 3300),
        (LinearSVR(loss="squared"), X[:, 0] + rng.standard_normal(150), 2, 1650),
    ],
)
def test_a_small_fit_calls_few_functions(model, y, passes, most):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        calls = called_by(lambda: model.fit(X, y))
    assert model.history_[-1]["passes"] == passes
    assert calls <= most
