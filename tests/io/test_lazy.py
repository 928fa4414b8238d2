"""Arrays and data frames of Dask's become the stores that the same rows become in memory, part after part."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd

import streamcut


def table(n=60):
    rng = np.random.default_rng(0)
    columns = {"a": rng.standard_normal(n), "site": rng.choice(["x", "y", "z"], n), "b": rng.integers(0, 5, n)}
    return pd.DataFrame({**columns, "label": (columns["a"] > 0).astype(int)})


def equal(folder, *names):
    """Whether the stores have the same rows, to the last bit."""
    return len({streamcut.open(folder / f"{name}.zarr").manifest.fingerprint for name in names}) == 1


def test_a_frame_is_converted_partition_by_partition(tmp_path, monkeypatch):
    frame, alive = table(), []
    compute = dd.DataFrame.compute

    def watched(self, **options):
        alive.append(self.npartitions)
        return compute(self, **options)

    streamcut.convert(frame, tmp_path / "here.zarr", labels="label")
    monkeypatch.setattr(dd.DataFrame, "compute", watched)
    streamcut.convert(dd.from_pandas(frame, npartitions=4), tmp_path / "there.zarr", labels="label")
    assert set(alive) == {1}
    assert len(alive) >= 4
    assert equal(tmp_path, "here", "there")


def test_a_model_is_trained_on_a_frame_and_scores_one(tmp_path):
    frame = table()
    lazy = dd.from_pandas(frame, npartitions=3)
    ours, theirs = (streamcut.train(data, label="label", scratch=str(tmp_path)) for data in (frame, lazy))
    np.testing.assert_array_equal(ours.weights, theirs.weights)
    found, expected = streamcut.evaluate(theirs, lazy), streamcut.evaluate(ours, frame)
    assert (found.accuracy, found.roc_auc) == (expected.accuracy, expected.roc_auc)
    assert list(tmp_path.iterdir()) == []


def test_arrays_are_stored_block_by_block(tmp_path):
    rng = np.random.default_rng(1)
    X, y, u = rng.standard_normal((50, 6)), rng.choice([-1.0, 1.0], 50), rng.uniform(0.5, 2.0, 50)
    lazy = da.from_array(X, chunks=(15, 4)), da.from_array(y, chunks=20), da.from_array(u, chunks=50)
    for name, arrays in (("here", (X, y, u)), ("there", lazy), ("mixed", (lazy[0], y, lazy[2]))):
        with streamcut.create(tmp_path / f"{name}.zarr") as out:
            out.append(arrays[0], arrays[1], weight=arrays[2])
    assert equal(tmp_path, "here", "there", "mixed")
    ours, theirs = (streamcut.train(str(tmp_path / "here.zarr")), streamcut.train(lazy, scratch=str(tmp_path)))
    np.testing.assert_array_equal(ours.weights, theirs.weights)
