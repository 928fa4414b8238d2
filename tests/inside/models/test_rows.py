"""Models speak rows as people have them: frames, dicts, lists of dicts; a few of them without Arrow, and the same to the bit."""

from __future__ import annotations

import datetime
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from kit.nights import by_night
from kit.shared.rows import frame, trained

import streamcut
from streamcut import prediction
from streamcut.errors import BadInputError, UsageError
from streamcut.io.tables import few

ODD: dict[str, list[Any]] = {
    "age": [None, float("nan"), 0, 0.0, -3, 1e300, True, np.float64(2.5), np.int64(7), 1 << 60, float("inf"), "7", [1]],
    "size": [None, float("nan"), 0.5, 12, -1e9, False, 10.0, 20.0, "x"],
    "count": [None, 3, 3.0, "3", "3.0", 2.5, "NA", "odd", True, 1 << 70, float("inf"), float("nan"), datetime.date(2024, 1, 1)],
    "flag": [None, True, False, "true", "True", "maybe", 1, 0.0, np.bool_(True), ""],
    "site": [None, "", "a*b", "x=y", "ä", "new", "NA", 3, True, 2.5, "\ud800", b"a", float("nan")],
}  # fmt: skip


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
            found = streamcut.predict(model, rows, answer="scores")
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
