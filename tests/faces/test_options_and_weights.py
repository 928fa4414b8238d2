"""Options as NumPy gives them, options that would have no effect, and rows of weight 0, which are rows that are not there."""

from __future__ import annotations

from dataclasses import MISSING

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

import streamcut
from streamcut.calibration import calibrate
from streamcut.config import CheckpointOptions, TrainOptions
from streamcut.errors import UsageError
from streamcut.estimators import LinearSVM
from streamcut.execution.feed import Feed
from streamcut.execution.scaled import ScaledDataset
from streamcut.foundation.units import plain
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.memory import MemoryDataset
from streamcut.io.text.options import SvmlightOptions
from streamcut.kernels.kernel import Kernel
from streamcut.options.option import default_of, options_of
from streamcut.oracles.landmarks import nystroem_map
from streamcut.oracles.variance import automatic_gamma

SCALARS = [np.float64, np.float32, np.longdouble, np.int64, np.uint8, np.array]
rng = np.random.default_rng(0)
X = rng.standard_normal((60, 3))
Y = np.where(X[:, 0] + 0.3 * rng.standard_normal(60) > 0, 1.0, -1.0)


@pytest.mark.parametrize("kind", SCALARS)
def test_row_73_numbers_of_numpy_are_those_of_python(kind):
    names = ("C", "bias", "tol", "max_time", "seed", "workers", "max_passes", "gamma", "budget", "positive_label", "deadline")
    for name in names:
        also = {"kernel": "rbf"} if name in ("gamma", "budget") else {"solver": "ocas"} if name != "seed" else {}
        value = getattr(TrainOptions(**{name: kind(2)}, **also), name)
        assert type(value) in (int, float)
        assert value == 2
    assert CheckpointOptions("a", every=kind(2)) == CheckpointOptions("a", every=2)
    assert ConvertOptions(n_features=kind(2), split_seed=kind(2)) == ConvertOptions(n_features=2, split_seed=2)
    assert plain(kind(2)) == 2


def test_row_73_every_door_takes_them(tmp_path):
    expected = streamcut.train((X, Y), C=2.0, max_passes=30)
    for kind in (np.float64, np.array):
        found = streamcut.train((X, Y), C=kind(2.0), max_passes=np.int64(30))
        assert np.array_equal(found.weights, expected.weights)
        assert LinearSVM(C=kind(2.0), max_iter=np.int32(30), n_jobs=np.int64(-1)).fit(X, Y).converged_
    seeds = [LinearSVM(random_state=seed, sweeps=3, max_iter=3).fit(X, Y).coef_ for seed in (7, np.int64(7), np.array(7))]
    assert np.array_equal(seeds[0], seeds[1])
    assert np.array_equal(seeds[0], seeds[2])
    data = MemoryDataset(X, Y)
    assert len(streamcut.cross_validate(data, folds=np.array(3), fold_seed=np.int64(1), C=np.float64(1)).table) == 3
    assert len(streamcut.tune(data, {"C": np.logspace(-1, 1, 3)}, folds=np.int64(2)).cells) == 3


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


def test_kernel_poly_alone_trains():
    model = streamcut.train((X, Y), kernel="poly", gamma=0.5, coef0=1.0, budget=20)
    assert model.parameters["maintenance"] == "project"
    assert model.n_support <= 20
    assert streamcut.train((X, Y), kernel="rbf", budget=20).parameters["maintenance"] == "merge"


def with_hidden(wild=1e4):
    """(rows with some of weight 0 among them, that are far from all others, their targets and weights; which of them count)."""
    counts = np.ones(80, bool)
    counts[::4] = False
    more, y = np.full((80, 3), wild) * np.arange(1, 81)[:, None], np.full(80, -7.25)
    more[counts], y[counts] = X, Y
    return more, y, counts.astype(float), counts


def test_row_74_a_target_may_weigh_nothing():
    Z, _, weight, counts = with_hidden(1.0)
    y = np.where(counts, 3.0, -7.25)
    y[counts] += X[:, 0]
    model = streamcut.train((Z, y, weight), task="regression", tol_relative=1e-6)
    expected = streamcut.train((X, y[counts]), task="regression", tol_relative=1e-6)
    np.testing.assert_allclose(model.weights, expected.weights, atol=1e-3)
    counted = np.where(counts, 2.0, 9.0)
    streamcut.train((Z, counted, weight), task="regression", loss="poisson", max_passes=5)


@pytest.mark.parametrize("scale", ["max-abs", "std"])
def test_row_74_scale_counts_weights(scale):
    Z, _, weight, _ = with_hidden()
    hidden, shown = MemoryDataset(Z, np.ones(80), weight=weight), MemoryDataset(X, np.ones(60))
    np.testing.assert_allclose(ScaledDataset(hidden, scale).divisors, ScaledDataset(shown, scale).divisors, rtol=1e-12)
    times = rng.integers(0, 4, 60)
    weighted = ScaledDataset(MemoryDataset(X, np.ones(60), weight=times.astype(float)), scale).divisors
    repeated = ScaledDataset(MemoryDataset(np.repeat(X, times, axis=0), np.ones(times.sum())), scale).divisors
    np.testing.assert_allclose(weighted, repeated, rtol=1e-12)


@pytest.mark.parametrize(("mean", "spread", "n"), [(1e6, 1.0, 2000), (1e8, 1e3, 20_000), (1e12, 1.0, 500), (-1e9, 0.5, 300)])
@pytest.mark.parametrize("sparse", [False, True])
def test_columns_far_from_0_are_scaled_as_scikit_learn_does(mean, spread, n, sparse):
    Z = np.random.default_rng(1).standard_normal((n, 2)) * spread + [mean, 0.0]
    if sparse:
        Z[: n // 3, 0] = 0.0
    found = ScaledDataset(MemoryDataset(sp.csr_array(Z), np.ones(n)), "std").divisors
    np.testing.assert_allclose(found, StandardScaler(with_mean=False).fit(Z).scale_, rtol=1e-6)


def test_columns_that_cannot_be_scaled_are_named(caplog):
    Z = np.c_[np.full(50, 0.1), np.full(50, 0.3), rng.standard_normal(50)]
    Z[::2, 1] = 0.1 + 0.2  # differs in the last bit
    assert ScaledDataset(MemoryDataset(Z, np.ones(50)), "std").divisors[:2].tolist() == [1.0, 1.0]
    assert "vary by no more than rounding" in caplog.text
    assert "values: 1 (0-based)" in caplog.text


def test_row_74_an_automatic_gamma_counts_weights_and_is_accurate():
    Z, _, weight, _ = with_hidden()
    hidden = automatic_gamma(Feed(MemoryDataset(Z, np.ones(80), weight=weight)))
    assert hidden == pytest.approx(automatic_gamma(Feed(MemoryDataset(X, np.ones(60)))), rel=1e-12)
    assert hidden == pytest.approx(1.0 / (3 * X.var()), rel=1e-12)
    far = X + 1e8
    assert automatic_gamma(Feed(MemoryDataset(far, np.ones(60)))) == pytest.approx(1.0 / (3 * far.var()), rel=1e-9)


def test_row_74_landmarks_count_weights():
    Z, _, weight, _ = with_hidden()
    hidden = nystroem_map(Feed(MemoryDataset(Z, np.ones(80), weight=weight)), Kernel("rbf", 0.5), 8, 3)
    shown = nystroem_map(Feed(MemoryDataset(X, np.ones(60), weight=np.ones(60))), Kernel("rbf", 0.5), 8, 3)
    assert np.array_equal(hidden.landmarks.data, shown.landmarks.data)
    heavy = np.where(np.arange(60) < 6, 1e6, 1.0)
    drawn = nystroem_map(Feed(MemoryDataset(X, np.ones(60), weight=heavy)), Kernel("rbf", 0.5), 6, 3).landmarks
    assert set(drawn.data.tolist()) == set(X[:6].ravel().tolist())


@pytest.mark.parametrize("classes", [2, 3])
def test_row_74_calibration_counts_weights(classes):
    Z, y, weight, counts = with_hidden(1e3)
    if classes == 3:
        y[counts] = np.digitize(X[:, 0], [-0.5, 0.5])
    y[~counts] = y[counts][0]
    model = streamcut.train((X, y[counts]), task="binary" if classes == 2 else "multiclass")
    hidden, shown = calibrate(model, (Z, y, weight)).link, calibrate(model, (X, y[counts])).link
    for name in hidden.__dataclass_fields__:
        np.testing.assert_allclose(getattr(hidden, name), getattr(shown, name), rtol=1e-9)
