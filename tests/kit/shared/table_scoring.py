"""What tests/models/test_table_scoring.py and tests/inside/models/test_table_scoring.py share."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import streamcut
from streamcut import save_model

N = 500


def frame(n: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    fruit = rng.choice(["apple", "pear", "plum", "fig"], n)
    size = rng.normal(size=n).round(3)
    kind = np.where(np.isin(fruit, ["apple", "pear"]) & (size > -0.5), "yes", "no")
    return pa.table({"id": np.arange(n) + 10**6, "kind": kind, "fruit": fruit, "size": size})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """train.parquet and later.parquet (with a new fruit), the store of the first and a model of it, by dictionary and hashed."""
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
        streamcut.convert(place / "later.parquet", place / f"{name}-later.zarr", recipe=place / f"{name}.npz")
    return place
