"""`streamcut.rows`: rows in memory wherever data is taken, with labels of any kind, weights, queries and shards."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import streamcut
from streamcut.errors import BadInputError

pytestmark = pytest.mark.smoke


def numbers(n: int = 60, d: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = np.where(rng.random((n, d)) < 0.3, 0.0, rng.standard_normal((n, d)))
    return X, np.where(X[:, 0] + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)


def same(one, other) -> bool:
    return one.certificate == other.certificate and one.weights.tobytes() == other.weights.tobytes()


@pytest.mark.parametrize("made", [np.asarray, sp.csr_array, sp.csc_matrix, lambda X: X.astype("f4"), pd.DataFrame])
def test_rows_are_what_the_pair_is(made):
    X, y = numbers()
    X = made(X)
    data = streamcut.rows(X, y)
    model = streamcut.train(data)
    assert same(model, streamcut.train((X, y)))
    assert streamcut.evaluate(model, data).accuracy == streamcut.evaluate(model, (X, y)).accuracy
    assert np.array_equal(streamcut.predict(model, data), streamcut.predict(model, (X, y)))


def test_every_function_of_data_takes_them():
    X, y = numbers()
    data = streamcut.rows(X, y)
    model = streamcut.train(data, loss="logistic")
    assert streamcut.verify(model, data).same_data
    assert streamcut.tune(data, {"C": [0.1, 1.0]}, folds=2).model
    assert streamcut.cross_validate(data, folds=2)
    assert streamcut.fit(data).model
    with pytest.warns(UserWarning, match="training rows"):
        assert streamcut.calibrate(model, data)
    assert len(streamcut.explain(model, data)) == 60
    assert streamcut.certify(model, data).at_least >= 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"y": np.ones(3)}, r"y has shape \(3,\), but X has 60 rows"),
        ({"y": np.full(60, np.nan)}, "the label is nan"),
        ({"X": np.full((60, 4), np.inf)}, "X holds nan or infinity"),
        ({"weight": -np.ones(60)}, "weight holds negative numbers"),
        ({"qid": np.arange(60) % 2}, "rows of one qid must stand together"),
        ({"X": np.ones((0, 4)), "y": np.ones(0)}, "no rows"),
    ],
)
def test_what_is_wrong_is_named(change, said):
    X, y = numbers()
    given = {"X": X, "y": y, **change}
    with pytest.raises(BadInputError, match=said):
        streamcut.rows(given.pop("X"), given.pop("y"), **given)
