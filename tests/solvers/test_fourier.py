"""Random waves: their inner products are about the Gaussian kernel, and models carry them along."""

import numpy as np
import pytest

import streamcut
from streamcut import evaluate, load_model, save_model, train, verify
from streamcut.errors import UsageError


def test_training_predicting_and_the_file(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 3))
    y = np.where(X[:, 0] ** 2 + np.sin(2 * X[:, 1]) > 0.8, 2.0, 1.0)
    data = streamcut.rows(X, y, shard_nnz=200)
    model = train(data, kernel="rbf", gamma=0.5, fourier=200, C=1.0)
    assert model.converged
    assert evaluate(model, (X, y)).accuracy > evaluate(train(data), (X, y)).accuracy + 0.1
    assert verify(model, data).consistent
    save_model(model, tmp_path / "m.npz")
    again = load_model(tmp_path / "m.npz")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.describe()["map"] == "fourier"
    same = train(streamcut.rows(X, y), kernel="rbf", gamma=0.5, fourier=200, C=1.0, workers=2, lanes=1)
    other = train(streamcut.rows(X, y), kernel="rbf", gamma=0.5, fourier=200, C=1.0, lanes=1)
    assert same.weights.tobytes() == other.weights.tobytes()


def test_what_makes_no_sense_is_refused():
    data = streamcut.rows(np.eye(4), np.array([1.0, -1.0, 1.0, -1.0]))
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
    data = streamcut.rows(rng.standard_normal((40, 3)), np.where(rng.random(40) < 0.5, 1.0, -1.0))
    model = train(data, kernel="rbf", gamma=0.5, fourier=8)
    for frequencies in (model.map.frequencies[:, :3], model.map.frequencies[:3, :2]):
        with pytest.raises(ValueError, match="does not fit a map"):  # as it would be where a file is read
            replace(model, map=replace(model.map, frequencies=frequencies))
