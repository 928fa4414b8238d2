"""Defaults that nobody checks, options that would have no effect, and divisors of columns."""

from __future__ import annotations

from dataclasses import MISSING

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

import streamcut
from streamcut import CheckpointOptions
from streamcut.config import TrainOptions
from streamcut.execution.views import ScaledDataset
from streamcut.foundation.units import plain
from streamcut.io.conversion.options import ConvertOptions
from streamcut.options.option import default_of, options_of


@pytest.mark.parametrize("record", [TrainOptions, CheckpointOptions, ConvertOptions])
def test_defaults_are_values_that_options_take(record):
    """Nobody checks them each time."""
    for name, known in options_of(record).items():
        if (default := default_of(record, name)) is not MISSING:
            assert not known.choices or default in known.choices, name
            assert known.check is None or known.check(default), name
            assert plain(default) is default


@pytest.mark.parametrize(("mean", "spread", "n"), [(1e6, 1.0, 2000), (1e8, 1e3, 20_000), (1e12, 1.0, 500), (-1e9, 0.5, 300)])
@pytest.mark.parametrize("sparse", [False, True])
def test_columns_far_from_0_are_scaled_as_scikit_learn_does(mean, spread, n, sparse):
    Z = np.random.default_rng(1).standard_normal((n, 2)) * spread + [mean, 0.0]
    if sparse:
        Z[: n // 3, 0] = 0.0
    found = ScaledDataset(streamcut.rows(sp.csr_array(Z), np.ones(n)), "std").divisors
    np.testing.assert_allclose(found, StandardScaler(with_mean=False).fit(Z).scale_, rtol=1e-6)


def test_columns_that_cannot_be_scaled_are_named(caplog):
    Z = np.c_[np.full(50, 0.1), np.full(50, 0.3), np.random.default_rng(0).standard_normal(50)]
    Z[::2, 1] = 0.1 + 0.2  # differs in the last bit
    assert ScaledDataset(streamcut.rows(Z, np.ones(50)), "std").divisors[:2].tolist() == [1.0, 1.0]
    assert "vary by no more than rounding" in caplog.text
    assert "values: 1 (0-based)" in caplog.text
