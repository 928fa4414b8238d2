"""Runs with each loss of numbers: stopped and resumed, on Dask, along a path over C, from a model, saved and verified."""

from __future__ import annotations

import pytest
from kit.shared.loss_runs import data, rows

import streamcut
from streamcut import train
from streamcut.errors import UsageError


def test_a_regression_starts_from_a_regression():
    X, y, _ = rows()
    classes = train(streamcut.rows(X, y > 0.0), max_passes=3)
    with pytest.raises(UsageError, match="model of task binary by bundle-dca; it takes a linear one for numbers"):
        train(data(), task="regression", warm_start=classes)
    with pytest.raises(UsageError, match="model of task regression by newton; it takes a linear one for two classes"):
        train(streamcut.rows(X, y > 0.0), warm_start=train(data(), task="regression", max_passes=3))
