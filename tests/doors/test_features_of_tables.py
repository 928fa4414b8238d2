"""Features of tables are what the format says, written out here, whatever the container."""

from __future__ import annotations

import datetime
import json
import re
from collections import Counter
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from kit.stored import content
from sklearn.utils import murmurhash3_32

import streamcut

N, MOST = 90, 2**53
DATES = [datetime.datetime(*day, 23, 59) for day in ((1999, 12, 31), (2000, 1, 1), (2024, 2, 29), (2021, 1, 3), (9999, 10, 30))]
DATES += [datetime.datetime(1, 1, 1), datetime.datetime(2020, 12, 28) + datetime.timedelta(days=31.123)]
TEXTS = ["Big red", "été Ärger, red", "größer 東京 東京 \U00010428\U00010400", "a bc_d1 É1!", "", "ΣΊΣ İx  ſtop", "red-red\tred"]
KINDS = {  # the values of each column, and its type
    "whole": ([1, -3, 0, MOST, -MOST, 250], pa.int64()),
    "real": ([0.5, -1e-300, 0.0, 1e100, 0.1, 4.9e-324], pa.float64()),
    "price": ([Decimal("0.10"), Decimal("-7.25"), Decimal("12345678901234567.89")], pa.decimal128(20, 2)),
    "level": ([0.5, 1.5, -2.0], pa.float64()),
    "age": ([*range(17, 60), 20], pa.int16()),
    "flag": ([True, False], pa.bool_()),
    "count": ([3, -3, 0, 10**15], pa.int64()),
    "size": ([0.25, 3.0, 1e-7, 123456.75], pa.float64()),
    "site": (["a*b", "a", "x=y", "back\\slash", "ä", "NAN b"], pa.string()),
    "when": (DATES, pa.timestamp("us")),
    "day": ([when.date() for when in DATES], pa.date32()),
    "clock": ([datetime.time(0, 0), datetime.time(23, 59), datetime.time(12, 1)], pa.time64("us")),
    "words": (TEXTS, pa.string()),
}
PARTS_OF = {
    "when": ["year", "quarter", "month", "week", "day", "weekday", "hour", "minute"],
    "day": ["day", "month", "week"],
    "clock": ["hour", "minute"],
}
ROLES = {
    "numeric": "whole,real,price,level,age:bin4",
    "categorical": "flag,count,size,site",
    "text": "words",
    "time": [f"{name}:{','.join(parts)}" for name, parts in PARTS_OF.items()],
    "cross": ["site*flag"],
    "ngrams": "1,2",
    "text_weights": "counts",
}


def table(missing: bool, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    columns = {"y": pa.array(rng.choice(["yes", "no"], N))}
    for name, (values, kind) in KINDS.items():
        drawn = [values[k % len(values)] for k in rng.permutation(N)]
        columns[name] = pa.array([None if missing and rng.random() < 0.15 else value for value in drawn], kind)
    return pa.table(columns)


def spelled(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, int) or (value == int(value) and abs(value) < 1e22) else repr(value)


def parts(column: str, value: datetime.datetime | datetime.date | datetime.time) -> list[str]:
    def part(name: str) -> object:
        if name == "week":
            return value.isocalendar()[1]
        if name == "quarter":
            return (value.month + 2) // 3
        if name in ("month", "weekday"):
            return f"{value:%b}".lower() if name == "month" else f"{value:%a}".lower()
        return getattr(value, name)

    return [f"{column}.{name}={part(name)}" for name in PARTS_OF[column]]


def features(row: dict, edges: list[float], missing: str) -> Counter[str]:
    """{key: value} of a row."""
    found, absent = Counter[str](), [name for name, value in row.items() if value is None and name != "words"]
    row = {name: value for name, value in row.items() if value is not None}
    for name in ("whole", "real", "price", "level"):
        found[name] += float(row.get(name, 0))
    for name in ("flag", "count", "size"):
        found.update([f"{name}={spelled(row[name])}"] if name in row else [])
    found.update([f"site={row['site']}"] if "site" in row else [])
    for name in PARTS_OF.keys() & row.keys():
        found.update(parts(name, row[name]))
    if "age" in row:
        bins = [f"<{edges[0]:g}", *(f"[{low:g},{high:g})" for low, high in pairwise(edges)), f">={edges[-1]:g}"]
        found[f"age={bins[np.searchsorted(edges, row['age'], side='right')]}"] += 1
    if "site" in row and "flag" in row:
        escaped = re.sub(r"([*=\\])", r"\\\1", row["site"])
        found[f"site*flag={escaped}*{spelled(row['flag'])}"] += 1
    words = re.findall(r"(?u)\b\w\w+\b", row.get("words", "").lower())
    found.update([f"words={word}" for word in (*words, *map(" ".join, pairwise(words)))])
    for name in absent if missing == "own" else ():  # once for each part of a time
        found[f"{name} is missing"] += len(PARTS_OF.get(name, "1"))
    return found


def with_dates(rows: pa.Table) -> pa.Table:
    """Times of day with a date, as texts have to be."""
    times = [
        None if time is None else datetime.datetime.combine(datetime.date(2024, 2, 29), time)
        for time in rows["clock"].to_pylist()
    ]
    return rows.set_column(rows.column_names.index("clock"), "clock", pa.array(times, pa.timestamp("us")))


def in_csv(rows: pa.Table, path: Path) -> Path:
    pa.csv.write_csv(with_dates(rows), path.with_suffix(".csv"))
    return path.with_suffix(".csv")


def in_jsonl(rows: pa.Table, path: Path) -> Path:
    numbers = [{k: float(v) if isinstance(v, Decimal) else v for k, v in row.items()} for row in with_dates(rows).to_pylist()]
    path.with_suffix(".jsonl").write_text("".join(json.dumps(row, default=lambda v: v.isoformat()) + "\n" for row in numbers))
    return path.with_suffix(".jsonl")


def in_parquet(rows: pa.Table, path: Path) -> Path:
    pa.parquet.write_table(rows, path.with_suffix(".parquet"), row_group_size=40)
    return path.with_suffix(".parquet")


VIEWS = pa.schema([("y", pa.string_view()), *((n, pa.string_view() if k == pa.string() else k) for n, (_, k) in KINDS.items())])


def coded(rows: pa.Table, path: Path) -> pa.Table:
    """Numbers and words as dictionaries, of which some have unsigned codes."""
    for at, name in enumerate(rows.column_names):
        if name in ("level", "real", "whole", "size", "site"):
            column = rows[name].combine_chunks().dictionary_encode()
            codes = column.indices.cast(pa.uint8() if at % 2 else pa.int32())
            rows = rows.set_column(at, name, pa.DictionaryArray.from_arrays(codes, column.dictionary))
    return rows


CONTAINERS = {
    "arrow": lambda rows, path: rows,
    "dictionaries": coded,
    "csv": in_csv,
    "jsonl": in_jsonl,
    "parquet": in_parquet,
    "pandas": lambda rows, path: rows.to_pandas(),
    "polars": lambda rows, path: pl.from_arrow(rows),
    "views": lambda rows, path: pa.table(rows.cast(VIEWS)),
    "dicts": lambda rows, path: rows.to_pylist(),
    "duckdb": lambda rows, path: duckdb.from_arrow(rows),
}


@pytest.mark.parametrize(("missing", "bits"), [("own", None), ("zero", None), ("own", 9)])
@pytest.mark.parametrize("container", CONTAINERS)
def test_features_are_those_that_the_format_says(container, missing, bits, folder):
    rows = table(True)
    data = CONTAINERS[container](rows, folder / "t")
    streamcut.convert(data, "t.zarr", labels="y", missing=missing, hash_bits=bits, dtype="float64", standardise=False, **ROLES)
    recipe = streamcut.open("t.zarr").recipe
    (edges,) = (column.edges for column in recipe.table.columns if column.bins)
    ages = np.sort([age for age in rows["age"].to_pylist() if age is not None])
    np.testing.assert_array_equal(edges, ages[np.ceil(len(ages) * np.array([0.25, 0.5, 0.75])).astype(int)])
    X, y = content("t.zarr")
    np.testing.assert_array_equal(np.array(list(recipe.labels.names.values()))[y.astype(int)], rows["y"].to_pylist())
    expected, column = np.zeros_like(X), {} if bits else {name: k for k, name in enumerate(recipe.names)}
    for line, row in zip(expected, rows.drop_columns("y").to_pylist(), strict=True):
        for key, value in features(row, edges, missing).items():
            line[abs(murmurhash3_32(key, 0)) % 2**bits if bits else column[key]] += value
    np.testing.assert_allclose(X, expected, rtol=1e-15)
    model = streamcut.train("t.zarr", bias=1.0, max_passes=1)
    scores = streamcut.predict(model, data, answer="scores")
    np.testing.assert_allclose(scores, expected @ model.weights + model.intercept, rtol=1e-9)
    assert bits or (X != 0).any(axis=0).all()


SPELT = {  # values of a request and what they say: other spellings of values, of none, and values that training did not see
    "count": [("3.0", 3), ("-3", -3), ("NA", None), (np.int64(0), 0), (7, 7)],
    "size": [("0.250", 0.25), (3, 3.0), (float("nan"), None), (np.float64(1e-7), 1e-7), ("1e-07", 1e-7), (2.5, 2.5)],
    "flag": [("True", True), ("FALSE", False), (np.bool_(True), True), ("", None)],
    "site": [("", None), ("unheard", "unheard"), ("a*b", "a*b")],
    "level": [(True, 1.0), (np.float64(0.5), 0.5), (3, 3.0), (float("nan"), None)],
    "whole": [(MOST, MOST), (2.5, 2.5), (-0.0, 0)],
}


@pytest.mark.filterwarnings("ignore:values of")
@pytest.mark.parametrize(("missing", "bits"), [("own", None), ("zero", 8)])
def test_a_row_alone_has_the_score_of_its_features(missing, bits):
    names = ["whole", "level", "age", "flag", "count", "size", "site"]
    roles = {"numeric": "whole,level,age:bin4", "categorical": "flag,count,size,site", "cross": ["site*flag"]}
    options = {**roles, "missing": missing, "hash_bits": bits, "standardise": False}
    model = streamcut.train(table(True).select(["y", *names]), label="y", convert=options, C=1e-3, max_passes=3)
    recipe, w = model.recipe, model.weights
    place = {name: k for k, name in enumerate(recipe.names or ())}
    (edges,) = (column.edges for column in recipe.table.columns if column.bins)

    def score(row: dict) -> float:
        of = features(row, edges, missing)
        at = {key: abs(murmurhash3_32(key, 0)) % 2**bits if bits else place.get(key) for key in of}
        return model.intercept + sum(value * w[at[key]] for key, value in of.items() if at[key] is not None)

    rows = table(True, seed=1).select(names)
    for at, row in enumerate(rows.slice(0, 25).to_pylist()):
        one = rows.slice(at, 1)
        for data in ([row], row, one, one.to_pandas(), pl.from_arrow(one)):
            np.testing.assert_allclose(model.decision_function(data), score(row), rtol=1e-12, atol=1e-12)
        for name, values in SPELT.items():
            given, value = values[at % len(values)]
            np.testing.assert_allclose(model.decision_function({**row, name: given}), score({**row, name: value}), rtol=1e-12)
    every = [*rows.to_pylist(), dict.fromkeys(names)]
    for data in (every, pa.Table.from_pylist(every, rows.schema)):
        np.testing.assert_allclose(model.decision_function(data), [score(row) for row in every], rtol=1e-12, atol=1e-12)
    with pytest.raises(streamcut.errors.BadInputError, match=r"column 'whole': inf is not finite"):
        model.decision_function({**row, "whole": float("inf")})
    for most in (MOST + 1, -MOST - 1):
        large = {**row, "level": 0.5, "whole": most}
        for data in (large, pa.Table.from_pylist([large], rows.schema)):
            with pytest.raises(streamcut.errors.BadInputError, match=rf"column 'whole': {most} has more digits"):
                model.decision_function(data)
