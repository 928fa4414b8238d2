"""What the columns of a table tell about its rows in addition to features: their groups and their times."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamcut.errors import BadInputError, UsageError
from streamcut.io.formats.finding import find_files
from streamcut.io.formats.registry import FORMATS, FRAME
from streamcut.io.recipe.table import Spelling
from streamcut.io.sources.lazy import framed, is_frame
from streamcut.io.tables.arrow import ColumnTypeError, ValueOfRowError, decoded, kind_of
from streamcut.io.tables.files import TableFile, require
from streamcut.io.tables.roles import names_in
from streamcut.io.tables.times import times_of


def files_of(data: object, wanted: str, spelling: Spelling) -> list[TableFile]:
    """The files of a table, or a frame as one; empty for data without columns."""
    data = framed(data)
    if is_frame(data):
        return [FRAME.reader_class()(data, spelling)]
    kind, paths = find_files([os.fspath(data)], wanted) if isinstance(data, str | os.PathLike) else ("", [])
    form = FORMATS.get(kind)
    return [form.reader_class()(path, spelling) for path in paths] if form is not None and form.is_table else []


def with_id(convert: Mapping[str, Any], column: str) -> dict[str, Any]:
    """The options `convert` with which `column` makes no features; of lists only those that are named make any."""
    if convert.get("index_column") is not None:
        return dict(convert)
    return {**convert, "id": tuple(dict.fromkeys([*names_in(convert.get("id") or ()), column]))}


def keys_of_groups(files: Sequence[TableFile], column: str) -> np.ndarray:
    """uint64 (n): a random number for each value of `column`, the same in every run; rows without a value form a group."""
    parts = []
    for _, values in _values(files, column):
        words = pc.fill_null(decoded(values).cast(pa.large_string()), "")
        codes = words.dictionary_encode()
        keys = [int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest()) for word in codes.dictionary.to_pylist()]
        parts.append(np.array(keys, np.uint64)[codes.indices.to_numpy(zero_copy_only=False)])
    return np.concatenate(parts or [np.empty(0, np.uint64)])


def times_of_rows(files: Sequence[TableFile], column: str) -> tuple[np.ndarray, np.ndarray]:
    """(float64 (n): numbers ordered as the times in `column`, nan where there is none; those that there are, in order).

    Raises BadInputError, UsageError.
    """
    parts = []
    for name, values in _values(files, column):
        try:
            if kind_of(values.type) == "number":
                times = decoded(values).cast(pa.float64()).to_numpy(zero_copy_only=False)
            else:
                parsed, _ = times_of(values)
                if pa.types.is_time(parsed.type):
                    raise ColumnTypeError("holds times of day, which do not give the order of days")
                stamps = parsed.cast(pa.timestamp("us")).cast(pa.int64())
                times = pc.cast(stamps, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        except ColumnTypeError as error:
            raise BadInputError(f"{name}: column {column!r} {error}") from None
        except ValueOfRowError as error:
            raise BadInputError(f"{name}: column {column!r}: {error.what}; times are read as in ISO 8601") from None
        parts.append(times)
    times = np.concatenate(parts or [np.empty(0)])
    ordered = np.sort(times[~np.isnan(times)])
    if not len(ordered) or ordered[0] == ordered[-1]:
        raise UsageError(
            f"time_column: {column!r} has {'one time' if len(ordered) else 'no times'}; nothing is later than the rest"
        )
    return times, ordered


def _values(files: Sequence[TableFile], column: str) -> Iterator[tuple[str, pa.Array]]:
    """(name of the file, values) of a column, batch by batch; as text where all is text."""
    for file in files:
        require(file.name, file.schema(), [column])
        dtype = file.schema().field(column).type
        if pa.types.is_null(dtype) or (file.spelled and kind_of(dtype) not in ("number", "time")):
            dtype = pa.string()
        for batch in file.batches(pa.schema([pa.field(column, dtype)])):
            yield file.name, batch.column(column)
