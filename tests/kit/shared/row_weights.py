"""What tests/solvers/test_row_weights.py and tests/inside/solvers/test_row_weights.py share."""

from __future__ import annotations

import warnings

import pytest


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
