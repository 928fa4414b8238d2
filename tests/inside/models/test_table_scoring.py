"""Models score and measure raw tables by their recipe, with words for labels and columns kept beside the answers."""

from __future__ import annotations

import kit.shared.table_scoring
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import streamcut
from streamcut.data.inputs import Raw
from streamcut.errors import BadInputError, UsageError

folder = kit.shared.table_scoring.folder


def test_what_training_did_not_see_is_counted(folder):
    raw = Raw(labelled=False)
    streamcut.predict(folder / "d.npz", folder / "later.parquet", raw=raw)
    assert raw.counters == {"values of fruit that training did not see": 4}
    raw = Raw(labelled=False)
    streamcut.predict(folder / "h.npz", folder / "later.parquet", raw=raw)
    assert raw.counters == {}


def test_rows_without_labels_are_scored_and_not_measured(folder, tmp_path):
    later = pa.parquet.read_table(folder / "later.parquet")
    bare = later.drop_columns(["kind", "id"])
    scores = streamcut.predict(folder / "d.npz", later, answer="scores")
    np.testing.assert_array_equal(streamcut.predict(folder / "d.npz", bare, answer="scores"), scores)
    with pytest.raises(BadInputError, match="the frame: no column 'kind'; it has fruit, size"):
        streamcut.evaluate(folder / "d.npz", bare)
    holes = later.set_column(1, "kind", pa.array([None if i % 4 else k for i, k in enumerate(later["kind"].to_pylist())]))
    with pytest.raises(BadInputError, match=r"row 1 \(0-based\), column 'kind': the label is missing"):
        streamcut.evaluate(folder / "d.npz", holes)
    raw = Raw(missing_labels="skip")
    assert streamcut.evaluate(folder / "d.npz", holes, raw=raw).rows == 50
    assert raw.counters["rows without label left out"] == 150
    pa.parquet.write_table(bare, tmp_path / "bare.parquet")
    streamcut.convert(tmp_path / "bare.parquet", tmp_path / "bare.zarr", recipe=folder / "d.npz", labels="none")
    np.testing.assert_array_equal(streamcut.predict(folder / "d.npz", tmp_path / "bare.zarr", answer="scores"), scores)
    for use in (
        lambda: streamcut.evaluate(folder / "d.npz", tmp_path / "bare.zarr"),
        lambda: streamcut.train(tmp_path / "bare.zarr"),
    ):
        with pytest.raises(BadInputError, match=r"bare\.zarr: its rows have no labels"):
            use()


def test_a_table_needs_a_model_of_tables_and_text_one_of_text(folder, tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n-1 2:1\n")
    streamcut.convert(tmp_path / "a.svm", tmp_path / "a.zarr")
    model = streamcut.train(tmp_path / "a.zarr")
    with pytest.raises(BadInputError, match=r"later\.csv: a table, but the model takes numbered features"):
        streamcut.predict(model, folder / "later.csv")
    with pytest.raises(BadInputError, match=r"a\.svm: svmlight text, but the model takes features of 2 columns, by a dictionary"):
        streamcut.predict(folder / "d.npz", tmp_path / "a.svm")
    with pytest.raises(UsageError, match="a store keeps no columns"):
        streamcut.predict(folder / "d.npz", folder / "d.zarr", raw=Raw(keep=("id",)))
