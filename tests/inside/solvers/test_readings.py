"""Readings: how often a training reads its rows, counted by the data set itself and said by the model."""

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut import load_model, save_model
from streamcut.io.memory import MemoryDataset

ROWS, SHARD_NNZ = 600, 700


class Counting(MemoryDataset):
    """Rows in a backend that is read again and again; counts rows of the shards that were asked for, blocks of which are used."""

    def __init__(self, classes: int = 2) -> None:
        rng = np.random.default_rng(classes)
        X = sp.random_array((ROWS, 30), density=0.3, format="csr", rng=rng, data_sampler=rng.standard_normal)
        scores = X @ rng.standard_normal((30, classes)) + 0.3 * rng.standard_normal((ROWS, classes))
        super().__init__(X, scores.argmax(axis=1).astype(float), shard_nnz=SHARD_NNZ)
        self.rows = 0

    def read(self, shard, buffers=None):
        chunk = super().read(shard, buffers)
        self.rows += chunk.n_rows
        return chunk


@pytest.fixture
def unpinned(monkeypatch):
    """Feeds that keep nothing: every row that they give out is read."""
    from streamcut.execution import feed

    made = feed.Feed.__init__

    def without(self, data, pinned=frozenset(), **more):
        made(self, data, frozenset(), **more)

    monkeypatch.setattr(feed.Feed, "__init__", without)


GIVEN = {
    "dual": {"C": 3.0},
    "cached": {"C": 3.0, "row_cache": "30%"},
    "logistic": {"C": 3.0, "loss": "logistic", "solver": "bundle-dca"},
    "newton": {"C": 3.0, "loss": "logistic", "solver": "newton"},
    "cuts": {"solver": "ocas"},
    "roc": {"task": "roc-area"},
    "regression": {"task": "regression"},
}


@pytest.mark.parametrize("name", GIVEN)
def test_a_model_says_what_the_data_set_counts(name, unpinned, tmp_path):
    data = Counting()
    model = streamcut.train(data, lanes=1, workers=1, **GIVEN[name])
    assert model.readings == data.rows / ROWS
    assert model.readings >= max(line["passes"] for line in model.history) > 0
    save_model(model, str(tmp_path / "m.npz"))
    assert load_model(str(tmp_path / "m.npz")).readings == model.readings


@pytest.mark.parametrize("options", [{"strategy": "one-vs-rest"}, {}, {"loss": "softmax"}])
def test_several_classes(options, unpinned):
    data = Counting(5)
    model = streamcut.train(data, lanes=1, workers=1, **options)
    assert model.readings == data.rows / ROWS > 1


def test_trainings_that_share_their_reading_share_its_cost():
    """Columns of one set of passes are read as often as the slowest of them needs, and once more to be measured."""
    data = Counting()
    found = streamcut.tune(data, {"C": [0.1, 1.0, 3.0]}, folds=3, workers=1)
    passes = [line["passes"] for line in found.table]
    assert max(passes) + 1 <= found.resources["readings"] < sum(passes)
    crossed = streamcut.cross_validate(data, folds=3, C=3.0, workers=1)
    assert crossed.resources["readings"] == max(line["passes"] for line in crossed.table) + 1
