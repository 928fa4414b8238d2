"""Every verb takes rows as a frame, dicts, a lazy query, a data set of files, batches, and arrays of features."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
import scipy.sparse as sp

import streamcut
from streamcut.errors import BadInputError, UsageError


def table(n: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"size": rng.standard_normal(n), "site": rng.choice(["a", "b", "c"], n)})
    rows["old"] = np.where(rows["size"] + (rows.site == "a") > 0.3, "yes", "no")
    return rows


ROWS = table()
KINDS = {
    "dicts": lambda: ROWS.to_dict("records"),
    "lazy query": lambda: pl.from_pandas(ROWS).lazy().filter(pl.col("size") > -9.0),
    "data set": lambda: pyarrow.dataset.dataset(pa.table(ROWS)),
    "iterator of batches": lambda: iter(pa.table(ROWS).to_batches(max_chunksize=50)),
    "generator of frames": lambda: (ROWS[start : start + 50] for start in range(0, len(ROWS), 50)),
}


@pytest.fixture(scope="module")
def model():
    return streamcut.train(ROWS, label="old", loss="logistic")


@pytest.mark.parametrize("kind", KINDS)
def test_every_verb_takes_them(kind, model, tmp_path):
    rows = KINDS[kind]
    trained = [streamcut.train(data, label="old", convert={"standardise": False}) for data in (rows(), ROWS)]
    np.testing.assert_array_equal(*(each.weights for each in trained))
    streamcut.convert(rows(), tmp_path / "rows.zarr", recipe=model.recipe)
    assert streamcut.open(str(tmp_path / "rows.zarr")).manifest.fingerprint == model.fingerprint
    np.testing.assert_array_equal(streamcut.predict(model, rows()), streamcut.predict(model, ROWS))
    assert streamcut.evaluate(model, rows()).accuracy == streamcut.evaluate(model, ROWS).accuracy
    y = ROWS.old.to_numpy()
    assert streamcut.evaluate(model, (rows(), y)).accuracy == streamcut.evaluate(model, ROWS).accuracy
    assert streamcut.verify(model, rows()).same_data
    assert streamcut.explain(model, rows())[5] == streamcut.explain(model, ROWS)[5]
    with pytest.warns(UserWarning, match="training rows"):
        assert streamcut.calibrate(model, rows()).has_probabilities


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"iterator of batches", "generator of frames"}))
def test_what_can_be_read_again_is_fitted(kind):
    np.testing.assert_array_equal(
        streamcut.fit(KINDS[kind](), label="old", C=0.1).model.weights, streamcut.fit(ROWS, label="old", C=0.1).model.weights
    )


def test_files_of_a_data_set(model, tmp_path):
    for part in range(3):
        ROWS[40 * part : 40 * part + 40].to_parquet(tmp_path / f"{part}.parquet")
    found = streamcut.train(pyarrow.dataset.dataset(tmp_path), label="old", loss="logistic")
    np.testing.assert_array_equal(found.weights, model.weights)
    lazy = pl.scan_parquet(tmp_path / "*.parquet")
    np.testing.assert_array_equal(streamcut.predict(model, lazy), streamcut.predict(model, ROWS))


def test_an_iterator_of_paths_is_of_files(tmp_path):
    ROWS.to_csv(tmp_path / "a.csv", index=False)
    streamcut.convert(tmp_path.glob("*.csv"), tmp_path / "a.zarr", labels="old")
    assert streamcut.open(str(tmp_path / "a.zarr")).manifest.statistics.n_rows == len(ROWS)


def test_what_cannot_be_rows_is_said(model):
    with pytest.raises(UsageError, match="read only once"):
        streamcut.fit(KINDS["iterator of batches"](), label="old")
    with pytest.raises(UsageError, match="an iterator of int"):
        streamcut.train(iter([1, 2]), label="old")
    with pytest.raises(BadInputError, match="no rows"):
        streamcut.train(iter([]), label="old")
    with pytest.raises(BadInputError, match="site"):
        streamcut.predict(model, iter([ROWS[:20], ROWS[20:40].drop(columns="site")]))


N = 400


def frame(n: int = N, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(
        {
            "age": rng.normal(40.0, 10.0, n).round(2),
            "size": rng.normal(10.0, 8.0, n),
            "count": rng.integers(-2, 5, n),
            "flag": rng.random(n) < 0.5,
            "site": rng.choice(["a*b", "a", "x=y", "back\\slash", "NA", "ä"], n),
        }
    )
    rows["bought"] = np.where(rows.age / 20 + rows.flag + (rows.site == "a") + rng.normal(size=n) > 2.8, "yes", "no")
    for name in ("age", "size", "site"):
        rows[name] = rows[name].mask(rng.random(n) < 0.1)
    return rows


def trained(**convert: Any) -> Any:
    roles = {"categorical": "count,flag,site", "numeric": "age,size:bin4", "cross": "site*flag"}
    return streamcut.train(frame(), label="bought", loss="logistic", convert={**roles, **convert})


def test_arrays_are_features():
    model = trained()
    X = np.random.default_rng(0).normal(size=(30, model.n_features))
    for given in (X, sp.csr_array(X), X.tolist()):
        assert set(model.predict(given)) == {"yes", "no"}
        np.testing.assert_allclose(model.predict_proba(given), model.probabilities_of(X @ model.weights + model.intercept))
    with pytest.raises(BadInputError, match=f"the model has {model.n_features} features"):
        model.predict(X[:, 1:])
    numbers = streamcut.train((X, np.sign(X[:, 0])))
    np.testing.assert_array_equal(numbers.predict(pd.DataFrame(X)), numbers.predict(X))
    with pytest.raises(UsageError, match="no probabilities"):
        numbers.predict_proba(X)


def test_what_was_prepared_is_no_part_of_a_model():
    model, row = trained(), frame(1, 6).drop(columns="bought").to_dict("records")[0]
    before = len(pickle.dumps(model))
    expected = model.decision_function(row)
    model.decision_function([row] * 20)
    assert model.recipe.prepared
    assert len(pickle.dumps(model)) == before
    again = pickle.loads(pickle.dumps(model))
    assert again.recipe == model.recipe
    assert not again.recipe.prepared
    np.testing.assert_array_equal(again.decision_function(row), expected)
