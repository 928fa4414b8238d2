"""Trainings that share one row cache: its rows are theirs, models are certified, and nothing depends on threads."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from nights import by_night
from sklearn.datasets import dump_svmlight_file

import streamcut
from streamcut import pooling
from streamcut.errors import CorruptError
from streamcut.execution.row_cache import CacheSize
from streamcut.execution.shared_reading import SharedReading
from streamcut.io.memory import MemoryDataset
from streamcut.io.row_view import Folds, RowView, fold_views, folds_of
from streamcut.jobs.binary import BinaryJob
from streamcut.oracles.dual.pooled_cache import PooledCache
from streamcut.selection import train_path
from streamcut.together import decoded_bytes
from streamcut.tuning import tune
from streamcut.verification import verify

CS = [0.01, 1.0]
FOLDS = 3


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """2000 rows × 600 features in 20 shards."""
    rng = np.random.default_rng(0)
    X = sp.random_array((2000, 600), density=0.03, format="csr", rng=rng, data_sampler=rng.standard_normal)
    y = np.where(X @ rng.standard_normal(600) + 0.3 * rng.standard_normal(2000) > 0.0, 1.0, -1.0)
    path = tmp_path_factory.mktemp("pooled") / "rows.zarr"
    dump_svmlight_file(X, y, str(path.with_suffix(".svm")), zero_based=False)
    streamcut.convert(path.with_suffix(".svm"), path, shard_nnz=X.nnz // 19)
    return path


@pytest.fixture
def pools(monkeypatch):
    """All trainings that could have a pool have one, of a tenth of the rows; returns them as they come to be."""
    made = []

    def small(self, manifest, budget, members):
        size = CacheSize.planned(manifest, CacheSize.bytes_of_all(manifest) // 10, 1)
        made.append((size, members))
        return size, 1

    pin = SharedReading.pin
    monkeypatch.setattr(SharedReading, "pin", lambda self, shards: pin(self, frozenset()))
    monkeypatch.setattr(pooling, "_has_cache", lambda run: False)
    monkeypatch.setattr(BinaryJob, "pool_size", small)
    return made


def test_rows_of_a_view_by_their_numbers():
    rng = np.random.default_rng(3)
    whole = MemoryDataset(rng.standard_normal((200, 3)), np.arange(200) % 2 * 1.0, shard_nnz=21)
    for rows, held_out in fold_views(whole, Folds(3, 7)):
        first = np.cumsum([0, *(shard.rows for shard in whole.manifest.shards)])
        kept = np.concatenate(
            [np.isin(np.arange(a, b), _numbers(rows, shard, a)) for shard, (a, b) in enumerate(pairwise(first))]
        )
        assert 0 < kept.sum() < 200
        ours = np.flatnonzero(kept)
        for chosen in ([], [5], range(len(ours)), rng.choice(len(ours), 40, replace=False)):
            own = np.sort(np.array(chosen, np.int64))
            np.testing.assert_array_equal(rows.originals(own), ours[own])
        asked = np.sort(rng.choice(200, 60, replace=False))
        places = [list(ours).index(row) if kept[row] else -1 for row in asked]
        out = np.empty(60, np.int64)
        rows.place(asked, out)
        np.testing.assert_array_equal(out, places)
        values = rng.integers(0, 100, 200)
        np.testing.assert_array_equal(rows.select(values), values[kept])
        np.testing.assert_array_equal(held_out.select(values), values[~kept])
        sums = values.copy()
        rows.add_to(sums, np.arange)
        np.testing.assert_array_equal(sums[kept], values[kept] + np.arange(len(ours)))
        np.testing.assert_array_equal(sums[~kept], values[~kept])


def _numbers(rows, shard, start):
    """Which rows of the whole data a view has of a shard, by their values alone."""
    ours, theirs = rows.read(shard), rows.inner.read(shard)
    all_rows = {tuple(theirs.data[a:b]): start + i for i, (a, b) in enumerate(pairwise(theirs.indptr))}
    return [all_rows[tuple(ours.data[a:b])] for a, b in pairwise(ours.indptr)]


def dense(rows):
    """(X, y) of a data set."""
    n, d = rows.manifest.statistics.n_rows, rows.manifest.statistics.n_features
    X, y = np.zeros((n, d)), np.empty(n)
    for shard in range(len(rows.manifest.shards)):
        chunk = rows.read(shard)
        part = slice(chunk.first_row, chunk.first_row + chunk.n_rows)
        y[part] = chunk.y
        X[part] = sp.csr_matrix((chunk.data, chunk.indices, chunk.indptr), (chunk.n_rows, d)).toarray()
    return X, y


OPTIONS = [{}, {"loss": "logistic"}, {"task": "regression", "loss": "epsilon-insensitive", "epsilon": 0.2}, {"l1": 0.01}]


@pytest.mark.parametrize("options", by_night(OPTIONS, OPTIONS[1:]))
def test_cached_rows_are_those_of_each_training(data, pools, options, monkeypatch):
    whole = streamcut.open(data)
    views = {rows.manifest.fingerprint: rows for rows, _ in fold_views(whole, folds_of(whole, FOLDS))}
    known, seen, end = {}, [], PooledCache.end

    def watched(self):
        end(self)
        view = self.member.rows
        key = None if view is None else view.manifest.fingerprint
        if key not in known:
            known[key] = dense(whole if view is None else views[key])
        X, y = known[key]
        where = np.flatnonzero(self.numbers >= 0)
        numbers = self.numbers[where]
        assert len(np.unique(numbers)) == len(numbers)
        for i, number in zip(where[::7], numbers[::7], strict=True):
            entries = slice(self._indptr[i], self._indptr[i + 1])
            row = np.zeros(X.shape[1])
            row[self._indices[entries]] = self._data[entries]
            np.testing.assert_array_equal(row, X[number])
            if self._target is not None:
                assert self._target[i] == y[number]
            else:
                assert np.sign(self._weight[i]) == y[number]
        assert self.n <= self.size.rows
        seen.append((key, self.member.leads, self.n, len(numbers)))

    monkeypatch.setattr(PooledCache, "end", watched)
    found = tune(data, {"C": CS}, folds=FOLDS, workers=2, **options)
    assert [members for _, members in pools] == [FOLDS + 1]
    assert {key for key, *_ in seen} == {None, *views}
    assert all(key is None for key, leads, *_ in seen[: FOLDS + 1] if leads)
    assert all(own == n for _, leads, n, own in seen if leads)
    followed = [(n, own) for key, leads, n, own in seen if not leads and key is not None]
    assert all(0 < own <= n for n, own in followed)
    assert sum(own < n for n, own in followed) > len(followed) // 2, "rows that a fold holds out are not in its training"
    assert all(line["converged"] for line in found.table)
    assert verify(found.model, whole).consistent


@pytest.mark.parametrize("options", by_night(OPTIONS, OPTIONS[1:]))
def test_models_are_those_of_trainings_alone_to_their_certificates(data, pools, options):
    found = {workers: tune(data, {"C": CS}, folds=FOLDS, workers=workers, **options) for workers in (1, 3)}
    one, other = found.values()
    for ours, theirs in zip(one.table, other.table, strict=True):
        assert {**ours, "seconds": 0} == {**theirs, "seconds": 0}, "to the last bit"
    np.testing.assert_array_equal(one.model.weights, other.model.weights)
    assert one.resources["bytes_read"] == other.resources["bytes_read"]
    whole = streamcut.open(data)
    for fold, (rows, _) in enumerate(fold_views(whole, folds_of(whole, FOLDS))):
        alone = []
        train_path(rows, CS, on_model=lambda model, _: alone.append(model), workers=1, **options)  # noqa: B023
        for line, model in zip([line for line in one.table if line["fold"] == fold], alone, strict=True):
            certificate = model.certificate
            assert line["lower_bound"] <= certificate.primal
            assert certificate.lower_bound <= line["primal"]
            assert line["primal"] == pytest.approx(certificate.primal, rel=0.02)


def test_all_share_each_pass(data, pools):
    found = tune(data, {"C": CS}, folds=FOLDS, workers=2)
    size = decoded_bytes(streamcut.open(data).manifest)
    rounds, rest = divmod(found.resources["bytes_read"], size)
    passes = [sum(line["passes"] for line in found.table if line["fold"] == fold) for fold in range(FOLDS)]
    assert rest == 0
    assert max(passes) + 2 <= rounds <= max(passes) + 4, "those of all rows may need more than those of the folds"


def test_an_error_ends_those_that_wait_for_each_other(data, pools, monkeypatch):
    reads, read = [], RowView.read

    def broken(self, shard, buffers=None):
        reads.append(shard)
        if len(reads) > 200:
            raise CorruptError("shard 1: damaged")
        return read(self, shard, buffers)

    monkeypatch.setattr(RowView, "read", broken)
    with pytest.raises(CorruptError, match="damaged"):
        tune(data, {"C": CS}, folds=FOLDS, workers=2)
    assert pools, "they were training"


def test_a_stop_ends_those_that_wait_for_each_other(data, pools):
    asked = []

    def stop():
        asked.append(None)
        return len(asked) > 60

    with pytest.raises(KeyboardInterrupt):
        tune(data, {"C": CS}, folds=FOLDS, workers=2, tol=1e-12, tol_relative=None, stop=stop)
    assert pools


OTHERS = [{"row_cache": "20%"}, {"row_cache": "0"}, {"solver": "ocas"}, {"scale": "max-abs"}]


@pytest.mark.parametrize("more", by_night(OTHERS, OTHERS[1:]))
def test_where_rows_differ_or_are_not_wanted_there_is_no_pool(data, pools, more):
    found = tune(data, {"C": [0.01]}, folds=2, workers=1, **more)
    assert not pools
    assert all(line["converged"] for line in found.table)


def test_no_pool_as_long_as_each_can_have_its_own(data, monkeypatch):
    monkeypatch.setattr(PooledCache, "begin", None)
    tune(data, {"C": [0.01]}, folds=2, workers=1)
