"""Models speak rows as people have them: frames, dicts, lists of dicts; a few of them without Arrow, and the same to the bit."""

from __future__ import annotations

import datetime
import json
import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from kit.nights import by_night

import streamcut
from streamcut import prediction
from streamcut.errors import BadInputError, UsageError
from streamcut.io.tables import few

N = 400
ODD: dict[str, list[Any]] = {
    "age": [None, float("nan"), 0, 0.0, -3, 1e300, True, np.float64(2.5), np.int64(7), 1 << 60, float("inf"), "7", [1]],
    "size": [None, float("nan"), 0.5, 12, -1e9, False, 10.0, 20.0, "x"],
    "count": [None, 3, 3.0, "3", "3.0", 2.5, "NA", "odd", True, 1 << 70, float("inf"), float("nan"), datetime.date(2024, 1, 1)],
    "flag": [None, True, False, "true", "True", "maybe", 1, 0.0, np.bool_(True), ""],
    "site": [None, "", "a*b", "x=y", "ä", "new", "NA", 3, True, 2.5, "\ud800", b"a", float("nan")],
}  # fmt: skip


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


@pytest.fixture(scope="module", params=by_night(["own", "zero", "error", "hashed", "standardised"], ["zero", "standardised"]))
def model(request):
    more: dict[str, Any] = {"hashed": {"hash_bits": 6}, "standardised": {"standardise": True}}.get(request.param, {})
    if request.param == "error":
        rows = frame().dropna().reset_index(drop=True)
        roles = {"categorical": "count,flag,site", "numeric": "age,size:bin4", "cross": "site*flag", "missing": "error"}
        return streamcut.train(rows, label="bought", loss="logistic", convert=roles)
    return trained(**({"missing": request.param} if request.param == "zero" else {}), **more)


def told(model: Any, rows: Any) -> Any:
    """The scores of rows and what was unseen in them, or the error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = streamcut.predict(model, rows, output="scores")
        return found.tolist(), dict(found.unseen)
    except (BadInputError, UsageError, pa.ArrowException, ValueError, TypeError, OverflowError) as error:  # some are Arrow's own
        return type(error).__name__, str(error)


def test_a_few_rows_are_scored_as_many_are(model, monkeypatch):
    """Every odd value alone, and mixtures of them in one row and in several."""
    rng, usual = np.random.default_rng(1), frame(40, 3).drop(columns="bought").to_dict("records")
    requests: list[Any] = [{**usual[0], name: value} for name, values in ODD.items() for value in values]
    requests += [{name: value for name, value in usual[1].items() if name != lost} for lost in ODD]
    for _ in range(300):
        rows = [dict(usual[rng.integers(40)]) for _ in range(rng.integers(1, 5))]
        for row in rows:
            for name, values in ODD.items():
                if rng.random() < 0.2:
                    row[name] = values[rng.integers(len(values))]
                if rng.random() < 0.03:
                    del row[name]
        requests.append(rows)
    fast = [told(model, each) for each in requests]
    monkeypatch.setattr(few, "few_encoder", lambda recipe: None)
    slow = [told(model, each) for each in requests]
    for request, one, other in zip(requests, fast, slow, strict=True):
        assert one == other, request
    scored = [one for one in fast if isinstance(one[0], list)]
    assert len(scored) > 80
    assert len({one for one in fast if one[0] == "BadInputError"}) > 8


def frames_of(rows: list[dict[str, Any]]) -> list[Any]:
    """Frames of all libraries with these rows, in types that they choose, and in others."""
    found: list[Any] = [pd.DataFrame(rows)]
    found.append(found[0].astype({name: "category" for name in ("site", "count") if name in found[0]}))
    found += [
        found[0].convert_dtypes(convert_floating=False, convert_integer=False),
        found[0].set_index("age") if "age" in found[0] else found[0].iloc[::-1],
    ]
    found += [found[0].rename(columns={"age": 1}), pd.concat([found[0], found[0].iloc[:, :1]], axis=1)]
    with np.errstate(over="ignore"):
        found.append(found[0].astype({name: "float32" for name in found[0] if found[0][name].dtype == np.float64}))
    for make in (pl.from_pandas, lambda frame: pa.Table.from_pandas(frame, preserve_index=False)):
        try:
            found.append(make(found[0]))
        except (pa.ArrowException, pl.exceptions.PolarsError, UnicodeEncodeError, TypeError, OverflowError):
            continue
    return found


@pytest.mark.thirds
def test_a_frame_of_a_few_rows_is_scored_as_one_of_many(model, monkeypatch):
    rng, usual, requests = np.random.default_rng(2), frame(40, 3).drop(columns="bought").to_dict("records"), list[Any]()
    for name, values in ODD.items():
        requests += [each for value in values for each in frames_of([{**usual[0], name: value}])]
    for _ in range(60):
        rows = [dict(usual[rng.integers(40)]) for _ in range(rng.integers(1, 5))]
        name = rng.choice(list(ODD))
        rows[-1][name] = ODD[name][rng.integers(len(ODD[name]))]
        requests += frames_of(rows)
    fast = [told(model, each) for each in requests]
    monkeypatch.setattr(few, "few_dicts", lambda frame, most: None)
    slow = [told(model, each) for each in requests]
    for request, one, other in zip(requests, fast, slow, strict=True):
        assert one == other, request


@pytest.mark.parametrize("kind", [list, pd.DataFrame, pl.DataFrame, pa.Table.from_pylist])
def test_ordinary_rows_go_the_short_way(model, kind, monkeypatch):
    monkeypatch.setattr(prediction, "framed", None)
    rows = frame(16, 4).dropna().drop(columns="bought").to_dict("records")
    assert len(streamcut.predict(model, kind(rows))) == len(rows)


def test_every_container_of_rows_has_the_same_answer():
    model, rows = trained(), frame(50, 5).drop(columns="bought")
    expected = streamcut.predict(model, rows, output="scores")
    dicts = json.loads(rows.to_json(orient="records"))  # missing ones are null
    floats = {"age": pa.float64(), "size": pa.float64()}
    for given in (rows, pl.from_pandas(rows), pa.Table.from_pandas(rows, preserve_index=False), dicts):
        np.testing.assert_array_equal(model.decision_function(given), expected)
        assert model.predict(given).tolist() == ["yes" if score > 0 else "no" for score in expected]
        np.testing.assert_array_equal(model.predict_proba(given), model.probabilities_of(expected))
        np.testing.assert_array_equal(streamcut.predict(model, given, output="probabilities"), model.predict_proba(given))
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
