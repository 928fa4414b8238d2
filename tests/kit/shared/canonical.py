"""What tests/io/test_canonical.py and tests/inside/io/test_canonical.py share."""

from __future__ import annotations

import datetime
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import streamcut

N = 60
SITES = ["a*b", "a", "x=y", "back\\slash", "07", "ä"]
ROLES = {"categorical": "flag,count,size,day,site", "numeric": "price", "time": "when:year,weekday,hour", "cross": "site*flag"}


def table(missing: bool) -> pa.Table:
    """Rows with a column of each type; `missing`: every seventh value of a feature is."""
    rng = np.random.default_rng(5)

    def column(values: list[Any], kind: pa.DataType, shift: int) -> pa.Array:
        return pa.array([None if missing and (i + shift) % 7 == 0 else v for i, v in enumerate(values)], kind)

    when = [
        datetime.datetime(2023, 12, 30, 22) + datetime.timedelta(minutes=17 * i, milliseconds=250 * (i % 2)) for i in range(N)
    ]
    return pa.table(
        {
            "bought": pa.array(((np.arange(N) % 3 == 0) ^ (rng.random(N) < 0.2)).tolist()),
            "flag": column((rng.random(N) < 0.5).tolist(), pa.bool_(), 0),
            "count": column(rng.integers(-3, 4, N).tolist(), pa.int64(), 1),
            "size": column((rng.integers(1, 6, N) / 4).tolist(), pa.float64(), 2),
            "day": column([w.replace(hour=0, minute=0, second=0, microsecond=0) for w in when], pa.timestamp("us"), 3),
            "site": column([SITES[i % len(SITES)] for i in range(N)], pa.string(), 4),
            "price": column(rng.normal(size=N).round(3).tolist(), pa.float64(), 5),
            "when": column(when, pa.timestamp("us"), 6),
        }
    )


def in_jsonl(rows: pa.Table, path: Path) -> Any:
    path.write_text("".join(json.dumps(row, default=datetime.datetime.isoformat) + "\n" for row in rows.to_pylist()))
    return path


def written(write: Callable[[pa.Table, Path], Any]) -> Callable[[pa.Table, Path], Any]:
    def make(rows: pa.Table, path: Path) -> Path:
        write(rows, path)
        return path

    return make


def as_views(rows: pa.Table, _: Path) -> pa.Table:
    """Texts as polars gives them: views, and dictionaries of views with unsigned codes."""
    coded = rows["site"].combine_chunks().dictionary_encode()
    views = pa.DictionaryArray.from_arrays(coded.indices.cast(pa.uint32()), coded.dictionary.cast(pa.string_view()))
    rows = rows.set_column(rows.column_names.index("site"), "site", views)
    return rows.set_column(0, "bought", pa.array([str(value).lower() for value in rows["bought"].to_pylist()], pa.string_view()))


CONTAINERS: dict[str, tuple[str, Callable[[pa.Table, Path], Any]]] = {
    "csv of pandas": (".csv", written(lambda rows, path: rows.to_pandas().to_csv(path, index=False))),
    "csv of arrow": (".csv", written(pa.csv.write_csv)),
    "json": (".jsonl", in_jsonl),
    "parquet": (".parquet", written(pa.parquet.write_table)),
    "feather": (".arrow", written(pa.feather.write_feather)),
    "arrow": ("", lambda rows, path: rows),
    "views": ("", as_views),
    "pandas": ("", lambda rows, path: rows.to_pandas()),
    "dicts": ("", lambda rows, path: rows.to_pylist()),
}
if importlib.util.find_spec("polars"):
    CONTAINERS["polars"] = ("", lambda rows, path: __import__("polars").from_arrow(rows))
if importlib.util.find_spec("duckdb"):
    CONTAINERS["duckdb"] = ("", lambda rows, path: __import__("duckdb").from_arrow(rows))


@pytest.fixture(scope="module", params=[False, True], ids=["full", "missing"])
def everywhere(request, tmp_path_factory):
    """({container: the rows in it}, and the same of the first row, and of a row without any value; {container: its model})."""
    folder = tmp_path_factory.mktemp("containers")
    rows = table(request.param)
    nothing = pa.table(
        {name: rows[name][:1] if name == "bought" else pa.array([None], rows[name].type) for name in rows.column_names}
    )
    data: dict[str, dict[str, Any]] = {}
    for what, part in {"many": rows, "one": rows.slice(0, 1), "none": nothing}.items():
        data[what] = {name: make(part, folder / f"{what} {name}{suffix}") for name, (suffix, make) in CONTAINERS.items()}
    models = {}
    for name, container in data["many"].items():
        store = folder / f"{name}.zarr"
        given = pa.Table.from_pylist(container) if name == "dicts" else container
        streamcut.convert(given, store, labels="bought", hash_bits=None, **ROLES)
        models[name] = streamcut.train(str(store), C=1.0, loss="logistic", bias=1.0), streamcut.open(store)
    return data, models
