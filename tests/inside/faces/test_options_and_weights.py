"""Options as NumPy gives them, options that would have no effect, and rows of weight 0, which are rows that are not there."""

from __future__ import annotations

from dataclasses import MISSING

import numpy as np
import pytest
import scipy.sparse as sp
from kit.shared.options_and_weights import X, rng, with_hidden
from sklearn.preprocessing import StandardScaler

import streamcut
from streamcut import CheckpointOptions
from streamcut.config import TrainOptions
from streamcut.errors import UsageError
from streamcut.execution.feed import Feed
from streamcut.execution.scaled import ScaledDataset
from streamcut.foundation.units import plain
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.text.options import SvmlightOptions
from streamcut.kernels.kernel import Kernel
from streamcut.options.option import default_of, options_of
from streamcut.oracles.landmarks import nystroem_map

SCALARS = [np.float64, np.float32, np.longdouble, np.int64, np.uint8, np.array]


@pytest.mark.parametrize("kind", SCALARS)
def test_row_73_numbers_of_numpy_are_those_of_python(kind):
    names = ("C", "bias", "tol", "max_time", "seed", "workers", "max_passes", "gamma", "budget", "positive_label")
    for name in names:
        also = {"kernel": "rbf"} if name in ("gamma", "budget") else {"solver": "ocas"} if name != "seed" else {}
        value = getattr(TrainOptions(**{name: kind(2)}, **also), name)
        assert type(value) in (int, float)
        assert value == 2
    assert CheckpointOptions("a", every=kind(2)) == CheckpointOptions("a", every=2)
    assert ConvertOptions(n_features=kind(2), split_seed=kind(2)) == ConvertOptions(n_features=2, split_seed=2)
    assert plain(kind(2)) == 2


@pytest.mark.parametrize("record", [TrainOptions, CheckpointOptions, ConvertOptions, SvmlightOptions])
def test_defaults_are_values_that_options_take(record):
    """Nobody checks them each time."""
    for name, known in options_of(record).items():
        if (default := default_of(record, name)) is not MISSING:
            assert not known.choices or default in known.choices, name
            assert known.check is None or known.check(default), name
            assert plain(default) is default


@pytest.mark.parametrize("value", [np.bool_(True), np.float64("nan"), np.array([1.0]), np.array("x")])
def test_row_73_what_is_no_number_is_still_refused(value):
    with pytest.raises((UsageError, ValueError)):
        TrainOptions(C=value)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"solver": "bsca", "kernel": "rbf", "maintenance": "none", "budget": 15}, "budget"),
        ({"sweeps": 10, "row_cache": "0"}, "sweeps"),
        ({"task": "multiclass", "sweeps": 10, "row_cache": "0"}, "sweeps"),
        ({"task": "roc-area", "normalisation": "queries"}, "normalisation"),
        ({"task": "one-class", "bias": 0.0}, "bias"),
        ({"task": "one-class", "bias": 5.0}, "bias"),
        ({"task": "regression", "solver": "bsca", "kernel": "rbf", "bias": 0.0}, "bias"),
    ],
)
def test_row_73_options_without_effect_are_refused_by_name(options, complaint):
    with pytest.raises(UsageError, match=complaint):
        TrainOptions(**options)


@pytest.mark.parametrize("scale", ["max-abs", "std"])
def test_row_74_scale_counts_weights(scale):
    Z, _, weight, _ = with_hidden()
    hidden, shown = streamcut.rows(Z, np.ones(80), weight=weight), streamcut.rows(X, np.ones(60))
    np.testing.assert_allclose(ScaledDataset(hidden, scale).divisors, ScaledDataset(shown, scale).divisors, rtol=1e-12)
    times = rng.integers(0, 4, 60)
    weighted = ScaledDataset(streamcut.rows(X, np.ones(60), weight=times.astype(float)), scale).divisors
    repeated = ScaledDataset(streamcut.rows(np.repeat(X, times, axis=0), np.ones(times.sum())), scale).divisors
    np.testing.assert_allclose(weighted, repeated, rtol=1e-12)


@pytest.mark.parametrize(("mean", "spread", "n"), [(1e6, 1.0, 2000), (1e8, 1e3, 20_000), (1e12, 1.0, 500), (-1e9, 0.5, 300)])
@pytest.mark.parametrize("sparse", [False, True])
def test_columns_far_from_0_are_scaled_as_scikit_learn_does(mean, spread, n, sparse):
    Z = np.random.default_rng(1).standard_normal((n, 2)) * spread + [mean, 0.0]
    if sparse:
        Z[: n // 3, 0] = 0.0
    found = ScaledDataset(streamcut.rows(sp.csr_array(Z), np.ones(n)), "std").divisors
    np.testing.assert_allclose(found, StandardScaler(with_mean=False).fit(Z).scale_, rtol=1e-6)


def test_columns_that_cannot_be_scaled_are_named(caplog):
    Z = np.c_[np.full(50, 0.1), np.full(50, 0.3), rng.standard_normal(50)]
    Z[::2, 1] = 0.1 + 0.2  # differs in the last bit
    assert ScaledDataset(streamcut.rows(Z, np.ones(50)), "std").divisors[:2].tolist() == [1.0, 1.0]
    assert "vary by no more than rounding" in caplog.text
    assert "values: 1 (0-based)" in caplog.text


def test_row_74_landmarks_count_weights():
    Z, _, weight, _ = with_hidden()
    hidden = nystroem_map(Feed(streamcut.rows(Z, np.ones(80), weight=weight)), Kernel("rbf", 0.5), 8, 3)
    shown = nystroem_map(Feed(streamcut.rows(X, np.ones(60), weight=np.ones(60))), Kernel("rbf", 0.5), 8, 3)
    assert np.array_equal(hidden.landmarks.data, shown.landmarks.data)
    heavy = np.where(np.arange(60) < 6, 1e6, 1.0)
    drawn = nystroem_map(Feed(streamcut.rows(X, np.ones(60), weight=heavy)), Kernel("rbf", 0.5), 6, 3).landmarks
    assert set(drawn.data.tolist()) == set(X[:6].ravel().tolist())
