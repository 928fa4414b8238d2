"""Readings: how often a training reads its rows, counted by the data set itself and said by the model."""

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut import load_model, save_model
from streamcut.grids.selection import train_path
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


def test_features_of_a_kernel_count(unpinned):
    """Landmarks are some rows of each shard that they are read from: what is given out counts, not what is decoded with it."""
    data = Counting()
    model = streamcut.train(data, lanes=1, workers=1, kernel="rbf", gamma=0.1, nystroem=10)
    assert model.history[-1]["passes"] < model.readings < data.rows / ROWS


@pytest.mark.parametrize("options", [{"strategy": "one-vs-rest"}, {}, {"loss": "softmax"}])
def test_several_classes(options, unpinned):
    data = Counting(5)
    model = streamcut.train(data, lanes=1, workers=1, **options)
    assert model.readings == data.rows / ROWS > 1


def test_rows_that_stay_in_memory_are_read_as_often():
    """Whether shards are pinned changes what is read from storage, not how often rows are."""
    data = Counting()
    model = streamcut.train(data, lanes=1, workers=1, C=3.0)
    assert data.rows == ROWS
    assert model.readings == model.history[-1]["rows"] / ROWS == model.history[-1]["passes"]


def test_a_path_counts_all_of_its_models(unpinned):
    data = Counting()
    model, tried = train_path(data, [0.1, 1.0, 3.0], lanes=1, workers=1)
    assert model.readings == data.rows / ROWS >= sum(each.passes for each in tried)


def test_trainings_that_share_their_reading_share_its_cost():
    """Columns of one set of passes are read as often as the slowest of them needs, and once more to be measured."""
    data = Counting()
    found = streamcut.tune(data, {"C": [0.1, 1.0, 3.0]}, folds=3, workers=1)
    passes = [line["passes"] for line in found.table]
    assert max(passes) + 1 <= found.resources["readings"] < sum(passes)
    crossed = streamcut.cross_validate(data, folds=3, C=3.0, workers=1)
    assert crossed.resources["readings"] == max(line["passes"] for line in crossed.table) + 1


def test_trainings_one_after_the_other_add_up(monkeypatch):
    """Kernel models have their readings each, in parts of all rows where they are of some; drawing folds is one more."""
    data, found = Counting(), []
    train = streamcut.grids.search.train

    def noted(rows, **options):
        model = train(rows, **options)
        found.append(model.readings * rows.manifest.statistics.n_rows / ROWS)
        return model

    monkeypatch.setattr(streamcut.grids.search, "train", noted)
    tuned = streamcut.tune(data, {"C": [0.1, 1.0]}, folds=2, solver="smo", kernel="rbf", gamma=0.1)
    assert len(found) == 4
    assert tuned.resources["readings"] == pytest.approx(1.0 + sum(found) + tuned.model.readings)
