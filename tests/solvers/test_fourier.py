"""Random waves: their inner products are about the Gaussian kernel, and models carry them along."""

import numpy as np
import pytest
import scipy.sparse as sp

from streamcut.errors import CorruptError, UsageError
from streamcut.evaluation import evaluate
from streamcut.foundation.chunk import Chunk, csr_arrays
from streamcut.io.memory import MemoryDataset
from streamcut.kernels.fourier import FourierMap
from streamcut.kernels.kernel import Kernel
from streamcut.models.files import load_model, save_model
from streamcut.training import train
from streamcut.verification import verify

GAMMA = 0.3


def rows(n=120, d=7, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.5, rng=rng, format="csr", data_sampler=rng.normal)
    indptr, indices, data, _ = csr_arrays(X)
    return X, Chunk(indptr, indices, data, np.zeros(n))


def error(features: np.ndarray, X) -> float:
    Z = features.astype(np.float64)
    return float(np.sqrt(np.mean((Z @ Z.T - Kernel("rbf", GAMMA).matrix(X, X)) ** 2)))


def test_more_waves_are_closer_to_the_kernel_by_the_square_root():
    X, chunk = rows()
    kernel = Kernel("rbf", GAMMA)
    few, many = (
        np.mean([error(FourierMap.drawn(kernel, 7, count, seed).features(chunk), X) for seed in range(8)]) for count in (64, 1024)
    )
    assert 3.0 < few / many < 5.3


def test_rows_have_length_one_and_frequencies_the_right_size():
    _, chunk = rows()
    waves = FourierMap.drawn(Kernel("rbf", GAMMA), 7, 2000, 3)
    np.testing.assert_allclose((waves.features(chunk).astype(np.float64) ** 2).sum(axis=1), 1.0, rtol=1e-6)
    np.testing.assert_allclose((waves.frequencies.astype(np.float64) ** 2).mean(), 2 * GAMMA, rtol=0.06)


def test_training_predicting_and_the_file(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 3))
    y = np.where(X[:, 0] ** 2 + np.sin(2 * X[:, 1]) > 0.8, 2.0, 1.0)
    data = MemoryDataset(X, y, shard_nnz=200)
    model = train(data, kernel="rbf", gamma=0.5, fourier=200, C=1.0)
    assert model.converged
    assert evaluate(model, (X, y)).accuracy > evaluate(train(data), (X, y)).accuracy + 0.1
    assert verify(model, data).consistent
    save_model(model, tmp_path / "m.npz")
    again = load_model(tmp_path / "m.npz")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.describe()["map"] == "fourier"
    same = train(MemoryDataset(X, y), kernel="rbf", gamma=0.5, fourier=200, C=1.0, workers=2, lanes=1)
    other = train(MemoryDataset(X, y), kernel="rbf", gamma=0.5, fourier=200, C=1.0, lanes=1)
    assert same.inner.weights.tobytes() == other.inner.weights.tobytes()


def test_what_makes_no_sense_is_refused():
    data = MemoryDataset(np.eye(4), np.array([1.0, -1.0, 1.0, -1.0]))
    for options, message in (
        ({"kernel": "poly", "gamma": 1.0, "fourier": 4}, "only the rbf kernel"),
        ({"fourier": 4}, "the linear kernel has none"),
        ({"kernel": "rbf", "gamma": 1.0, "fourier": 5}, "an even number"),
        ({"kernel": "rbf", "gamma": 1.0, "fourier": 4, "nystroem": 2}, "nystroem is given too"),
    ):
        with pytest.raises(UsageError, match=message):
            train(data, **options)


def test_a_file_with_other_frequencies_is_refused(tmp_path):
    from dataclasses import replace

    rng = np.random.default_rng(0)
    data = MemoryDataset(rng.standard_normal((40, 3)), np.where(rng.random(40) < 0.5, 1.0, -1.0))
    model = train(data, kernel="rbf", gamma=0.5, fourier=8)
    for frequencies in (model.map.frequencies[:, :3], model.map.frequencies[:2], model.map.frequencies.astype(np.float64)):
        save_model(replace(model, map=replace(model.map, frequencies=frequencies)), tmp_path / "m.npz")
        with pytest.raises(CorruptError):
            load_model(tmp_path / "m.npz")
