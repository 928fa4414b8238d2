"""Random waves: their inner products are about the Gaussian kernel, and models carry them along."""

import numpy as np
import pytest

import streamcut
from streamcut import train
from streamcut.errors import UsageError


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
