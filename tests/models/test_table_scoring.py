"""Models score and measure raw tables by their recipe, with words for labels and columns kept with the answers."""

from __future__ import annotations

import csv
import io
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import streamcut
from streamcut import save_model
from streamcut.errors import BadInputError, UsageError

N = 500


def frame(n: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    fruit = rng.choice(["apple", "pear", "plum", "fig"], n)
    size = rng.normal(size=n).round(3)
    kind = np.where(np.isin(fruit, ["apple", "pear"]) & (size > -0.5), "yes", "no")
    return pa.table({"id": np.arange(n) + 10**6, "kind": kind, "fruit": fruit, "size": size})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """train.parquet, later.parquet and later.csv (with a new fruit), the store of the first, and models by words and hashed."""
    place = tmp_path_factory.mktemp("scoring")
    later = frame(200, 2)
    fruit = ["kiwi" if i % 50 == 7 else name for i, name in enumerate(later["fruit"].to_pylist())]
    later = later.set_column(2, "fruit", pa.array(fruit))
    pa.parquet.write_table(frame(N, 1), place / "train.parquet")
    pa.parquet.write_table(later, place / "later.parquet")
    pa.csv.write_csv(later, place / "later.csv")
    for name, bits in (("d", None), ("h", 10)):
        options = {"labels": "kind", "id": "id", "numeric": "size", "standardise": False, "hash_bits": bits}
        streamcut.convert(place / "train.parquet", place / f"{name}.zarr", **options)
        save_model(streamcut.train(str(place / f"{name}.zarr"), C=10.0), place / f"{name}.npz")
    return place


def test_a_label_that_training_did_not_see_is_named(folder, tmp_path):
    later = pa.parquet.read_table(folder / "later.parquet")
    other = later.set_column(1, "kind", pa.array(["maybe", *later["kind"].to_pylist()[1:]]))
    options = {"labels": "kind", "id": "id", "numeric": "size", "standardise": False, "hash_bits": 10}
    streamcut.convert(other, tmp_path / "o.zarr", **options)
    for data in (tmp_path / "o.zarr", other):
        with pytest.raises(BadInputError, match="label 'maybe' is none"):
            streamcut.evaluate(folder / "h.npz", data)


def test_svmlight_rows_need_no_labels_to_be_scored(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1 2:3\n-1 2:1\n1 1:2\n-1 3:1\n")
    (tmp_path / "bare.svm").write_text("1:1 2:3\nx 2:1\n1:2 # comment\n\n3:1\n")
    streamcut.convert(tmp_path / "a.svm", tmp_path / "a.zarr")
    model = streamcut.train(tmp_path / "a.zarr")
    scores = streamcut.predict(model, tmp_path / "a.zarr", answer="scores")
    np.testing.assert_array_equal(streamcut.predict(model, tmp_path / "bare.svm", answer="scores"), scores)
    with pytest.raises(BadInputError, match=r"bare\.svm:1:1: the label is missing"):
        streamcut.evaluate(model, tmp_path / "bare.svm")


def test_the_command_line_keeps_columns(folder, run, tmp_path):
    predict = ("predict", folder / "d.npz", folder / "later.csv")
    code, out, err = run(*predict, "--keep", "id,fruit", "--answer", "both")
    assert (code, "values of fruit that training did not see: 4" in err) == (0, True)
    rows = list(csv.DictReader(io.StringIO(out)))
    scores = streamcut.predict(folder / "d.npz", folder / "later.csv", answer="scores")
    later = pa.parquet.read_table(folder / "later.parquet")
    assert [int(row["id"]) for row in rows] == later["id"].to_pylist()
    assert [row["fruit"] for row in rows] == later["fruit"].to_pylist()
    assert [(row["label"], float(row["score"])) for row in rows] == [("yes" if s > 0 else "no", s) for s in scores.tolist()]
    assert run(*predict)[1].split() == [row["label"] for row in rows]
    assert run(*predict, "--keep", "fruit", "--answer", "scores", "-o", tmp_path / "s.parquet")[:2] == (0, "")
    written = pa.parquet.read_table(tmp_path / "s.parquet")
    assert written.schema.names == ["fruit", "score"]
    assert written["score"].to_pylist() == scores.tolist()
    assert run(*predict, "--keep", "no such")[0] == 3


def test_the_task_and_the_positive_label_follow_from_the_data(folder, tmp_path):
    streamcut.convert(frame(300, 3), tmp_path / "m.zarr", labels="fruit", numeric="size", id="id", categorical="kind")
    model = streamcut.train(tmp_path / "m.zarr", C=0.1)
    assert model.task == "multiclass"
    assert set(streamcut.predict(model, frame(300, 3))) <= {"apple", "pear", "plum", "fig"}
    assert streamcut.train(tmp_path / "m.zarr", positive_label="fig").task == "binary"
    with pytest.raises(UsageError, match=r"positive_label: 'nut' is none of the labels: 'fig', 'apple'"):
        streamcut.train(tmp_path / "m.zarr", positive_label="nut")
    model = streamcut.train(folder / "d.zarr", positive_label="no")
    assert model.in_label_words(np.array(model.labels)).tolist() == ["yes", "no"]
    (tmp_path / "r.svm").write_text("".join(f"{i % 3} qid:{i // 6} {i % 5 + 1}:1\n" for i in range(60)))
    assert streamcut.train(tmp_path / "r.svm").task == "ranking"
    assert streamcut.train(tmp_path / "r.svm", positive_label=2).task == "binary"


def test_parquet_that_is_given_up_says_one_thing(tmp_path):
    rows = [f"{1 if v > 0 else -1} 1:{v:.4f}" for v in np.random.default_rng(0).standard_normal(50)]
    (tmp_path / "a.svm").write_text("\n".join(rows) + "\n")
    (tmp_path / "bad.svm").write_text("\n".join(rows * 8000) + "\n1 1:x\n")  # more than one batch, then no number
    streamcut.train(tmp_path / "a.svm").save(tmp_path / "m.npz")
    command = [sys.executable, "-P", "-m", "streamcut", "predict", "m.npz", "bad.svm", "-o", "o.parquet"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (3, 1), done.stderr  # no "Exception ignored"
    assert not (tmp_path / "o.parquet").exists()
