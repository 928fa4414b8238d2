"""Tables with words, codes, numbers, times and missing values, as files of every format."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

N = 700


@pytest.fixture(scope="module")
def frame() -> pa.Table:
    """Categories as text, codes, numbers and booleans; numbers with zeros; times; missing values everywhere; labels."""
    rng = np.random.default_rng(7)

    def holes(values, share=0.05):
        return [None if hole else value for value, hole in zip(values, rng.random(N) < share, strict=True)]

    words = ["red", "green", "blue", "größer", "a,b", 'say "x"', "two\nlines"]
    return pa.table(
        {
            "click": pa.array(rng.integers(0, 2, N)),
            "site": pa.array(holes(rng.choice(words, N).tolist())),
            "app": pa.array(holes(rng.integers(0, 300, N).tolist()), pa.int32()),
            "flag": pa.array(holes((rng.random(N) < 0.5).tolist())),
            "price": pa.array(holes((rng.integers(-3, 9, N) / 4).tolist())),
            "age": pa.array(holes(rng.integers(0, 90, N).tolist()), pa.int64()),
            "when": pa.array(
                holes((np.datetime64("2024-01-30T22:15:00") + rng.integers(0, 10**7, N)).tolist()), pa.timestamp("s")
            ),
        }
    )


def write(frame: pa.Table, path: Path) -> Path:
    """`frame` in the format that the name says."""
    match path.suffixes[0]:
        case ".parquet":
            pa.parquet.write_table(frame, path, row_group_size=200)
        case ".arrow":
            with pa.ipc.new_file(path, frame.schema) as file:
                file.write_table(frame, max_chunksize=150)
        case ".csv" | ".tsv":
            options = pa.csv.WriteOptions(delimiter="\t" if path.suffixes[0] == ".tsv" else ",")
            pa.csv.write_csv(frame, path, options)
            if path.suffix == ".gz":
                path.write_bytes(gzip.compress(path.read_bytes()))
        case ".jsonl":
            lines = [json.dumps({k: v for k, v in row.items() if v is not None}, default=str) for row in frame.to_pylist()]
            path.write_text("\n".join(lines) + "\n")
    return path


OPTIONS = {"labels": "click", "cross": ["site*app", "site*app*flag"], "drop": "when", "categorical": "app"}
