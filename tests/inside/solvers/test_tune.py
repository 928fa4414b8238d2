"""Folds are views of rows."""

from __future__ import annotations

from dataclasses import replace

import kit.shared.tune
import numpy as np
import pytest
import scipy.sparse as sp
from kit.shared.tune import arrays

import streamcut
from streamcut.io.memory import MemoryDataset
from streamcut.io.row_view import fold_views, folds_of

stores = kit.shared.tune.stores


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("opened", ["store", "memory"])
def test_a_view_of_rows_is_the_data_without_the_others(stores, opened, grouped):
    X, y = arrays()
    qid = np.repeat(np.arange(150), 4) if grouped else None
    whole = streamcut.open(stores[0])
    if opened == "memory" or grouped:
        whole = streamcut.rows(X, y, qid=qid, weight=np.arange(600) + 1.0, shard_nnz=420)
    folds, first = folds_of(whole, 3, 5), np.cumsum([0, *(shard.rows for shard in whole.manifest.shards)])
    assert len(first) > 8
    fold_of = np.concatenate([folds.of(whole.read(i), first[i]) for i in range(len(first) - 1)])
    assert np.bincount(fold_of).min() > 150
    assert not grouped or (fold_of.reshape(-1, 4) == fold_of[::4, None]).all()
    for fold, (training, held_out) in enumerate(fold_views(whole, folds, 2)):
        for view, kept in ((training, fold_of != fold), (held_out, fold_of == fold)):
            weight = None if whole.manifest.statistics.weight_sum is None else whole_weights(whole)[kept]
            values = sp.csr_matrix(X.astype(np.float32)) if opened == "store" and not grouped else X
            same = MemoryDataset(values[kept], y[kept], weight=weight, qid=None if qid is None else qid[kept], n_features=20)
            ours, theirs = view.manifest.statistics, same.manifest.statistics
            assert ours == replace(theirs, weight_sum=ours.weight_sum, label_weights=ours.label_weights)
            assert ours.weight_sum == pytest.approx(theirs.weight_sum)
            begin = [view.read(i).first_row for i in range(len(first) - 1)]
            assert begin == [np.count_nonzero(kept[:start]) for start in first[:-1]]
            for mine, expected in zip(arrays_of(view), arrays_of(same), strict=True):
                np.testing.assert_array_equal(mine, expected)
        assert training.manifest.fingerprint != held_out.manifest.fingerprint


def whole_weights(data):
    return np.concatenate([data.read(i).weight for i in range(len(data.manifest.shards))])


def arrays_of(data) -> list[np.ndarray]:
    """X, y and, where there are any, qid and weights of all rows."""
    chunks = [data.read(i) for i in range(len(data.manifest.shards))]
    X = sp.vstack([sp.csr_array((c.data[: c.nnz], c.indices[: c.nnz], c.indptr), (c.n_rows, 20)) for c in chunks])
    parts = [[c.y for c in chunks], [c.qid for c in chunks], [c.weight for c in chunks]]
    return [X.toarray(), *(np.concatenate(part) for part in parts if part[0] is not None)]


def test_folds_are_those_of_the_rows_however_they_are_stored():
    X, y = arrays()
    one, other = (streamcut.rows(X, y, shard_nnz=size) for size in (420, 10**6))
    for fold in range(3):
        views = [fold_views(data, folds_of(data, 3, 1))[fold][1] for data in (one, other)]
        labels = [np.concatenate([view.read(i).y for i in range(len(view.manifest.shards))]) for view in views]
        np.testing.assert_array_equal(*labels)
    assert fold_views(one, folds_of(one, 3, 2))[0][1].manifest.statistics != views[0].manifest.statistics
