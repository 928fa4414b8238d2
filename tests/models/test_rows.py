"""Models speak rows as people have them: frames, dicts, lists of dicts; a few of them without Arrow, and the same to the bit."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import streamcut
from streamcut.errors import BadInputError, UsageError

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


def test_every_container_of_rows_has_the_same_answer():
    model, rows = trained(), frame(50, 5).drop(columns="bought")
    expected = streamcut.predict(model, rows, answer="scores")
    dicts = json.loads(rows.to_json(orient="records"))  # missing ones are null
    floats = {"age": pa.float64(), "size": pa.float64()}
    for given in (rows, pl.from_pandas(rows), pa.Table.from_pandas(rows, preserve_index=False), dicts):
        np.testing.assert_array_equal(model.decision_function(given), expected)
        assert model.predict(given).tolist() == ["yes" if score > 0 else "no" for score in expected]
        np.testing.assert_array_equal(model.predict_proba(given), model.probabilities_of(expected))
        np.testing.assert_array_equal(streamcut.predict(model, given, answer="probabilities"), model.predict_proba(given))
    for at, row in enumerate(dicts):
        assert model.decision_function(row)[0] == expected[at]
    assert floats
    empty = pa.table({**{name: pa.nulls(1) for name in ("age", "size")}, **{n: [rows[n][0]] for n in ("count", "flag", "site")}})
    np.testing.assert_array_equal(model.predict_proba(empty), model.predict_proba({**dicts[0], "age": None, "size": None}))


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


def test_what_is_not_known_is_said():
    model, row = trained(), frame(1, 6).drop(columns="bought").to_dict("records")[0]
    for given in ({**row, "count": 99}, pd.DataFrame([{**row, "count": 99}])):
        with pytest.warns(UserWarning, match="values of count that training did not see: 1") as said:
            assert dict(model.predict(given).unseen) == {"values of count that training did not see": 1}
        assert said[0].filename == __file__
    with pytest.raises(BadInputError, match="strict"):
        streamcut.predict(model, {**row, "site": "new"}, strict=True)
    del row["count"]
    with pytest.raises(BadInputError, match="no column 'count'; it has age, size, flag, site"):
        model.predict(pd.DataFrame([row]))
    for given in (row, [row]):  # a key that a row lacks is a missing value
        np.testing.assert_array_equal(model.decision_function(given), model.decision_function({**row, "count": None}))


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
