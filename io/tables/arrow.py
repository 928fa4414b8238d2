"""Columns of Arrow as the kernels take them: words as bytes, numbers as float64, parts of times as words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamcut.io.tables.word_kernels import MISSING, Words
from streamcut.io.tables.words import NO_CODES, listed

_NAMES: dict[str, list[str]] = {
    "weekday": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"],
    "month": ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
}
_PARTS: dict[str, tuple[Callable[..., Any], int]] = {  # the function of Arrow, and its least value
    "year": (pc.year, 0),
    "quarter": (pc.quarter, 1),
    "month": (pc.month, 1),
    "week": (pc.iso_week, 1),
    "day": (pc.day, 1),
    "weekday": (pc.day_of_week, 0),
    "hour": (pc.hour, 0),
    "minute": (pc.minute, 0),
}


class ColumnTypeError(Exception):
    """A column that cannot be what the recipe wants; the message says what it is."""


class ValueOfRowError(Exception):
    """A value that no feature can have: (row in the column, what is wrong with it)."""

    def __init__(self, row: int, what: str) -> None:
        super().__init__(row, what)
        self.row, self.what = row, what


def kind_of(found: pa.DataType) -> str:
    """ "number", "text", "bool", "time" or "other": what a type of Arrow can serve as. Dictionaries are what they hold."""
    if pa.types.is_dictionary(found):
        return kind_of(found.value_type)
    if pa.types.is_boolean(found):
        return "bool"
    if pa.types.is_integer(found) or pa.types.is_floating(found) or pa.types.is_decimal(found):
        return "number"
    if pa.types.is_string(found) or pa.types.is_large_string(found) or pa.types.is_string_view(found) or pa.types.is_null(found):
        return "text"
    if pa.types.is_timestamp(found) or pa.types.is_date(found) or pa.types.is_time(found):
        return "time"
    return "other"


def words_of(column: pa.Array) -> Words:
    """The values of a column as words. Raises ColumnTypeError.

    Whole numbers are written as such whatever their type (3.0 is `3`), other numbers as Python writes them.
    """
    kind = kind_of(column.type)
    if kind == "other":
        raise ColumnTypeError(f"holds {column.type}, which is no category")
    if not pa.types.is_dictionary(column.type):
        if kind == "text":
            return _plain(column)
        column = column.dictionary_encode()
    codes = pc.fill_null(column.indices, MISSING) if column.indices.null_count else column.indices
    words = _plain(_spelled(column.dictionary))
    return words._replace(codes=codes.to_numpy().astype(np.int32, copy=False), direct=False)


def _spelled(values: pa.Array) -> pa.Array:
    kind = kind_of(values.type)
    if kind == "text":
        return values
    if pa.types.is_floating(values.type) or pa.types.is_decimal(values.type):
        return pa.array([None if value is None else _number(float(value)) for value in values.to_pylist()], pa.string())
    return values.cast(pa.string())


def _number(value: float) -> str:
    return "" if value != value else str(int(value)) if value.is_integer() and abs(value) < 1e18 else repr(value)


def _plain(column: pa.Array) -> Words:
    if pa.types.is_null(column.type):
        return listed([""] * len(column))
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())
    if column.null_count:
        column = pc.fill_null(column, "")
    data, offsets = bytes_of(column)
    return Words(data, offsets[:-1], offsets[1:], NO_CODES, True)


def bytes_of(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """(data uint8, offsets int64) of a string column without missing values."""
    wide = np.int64 if pa.types.is_large_string(column.type) else np.int32
    _, ends, content = column.buffers()
    if ends is None or len(column) == 0:
        return np.empty(0, np.uint8), np.zeros(len(column) + 1, np.int64)
    offsets = np.frombuffer(ends, wide)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    data = np.empty(0, np.uint8) if content is None else np.frombuffer(content, np.uint8)
    return data, offsets


def floats_of(column: pa.Array) -> np.ndarray:
    """float64, nan where a value is missing. Raises ColumnTypeError, and ValueOfRowError for what float64 cannot keep."""
    if kind_of(column.type) not in ("number", "bool"):
        raise ColumnTypeError(f"holds {_called(column.type)}, not numbers")
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    try:
        return column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        row = next(i for i, value in enumerate(column.to_pylist()) if value is not None and int(float(value)) != int(value))
        raise ValueOfRowError(row, f"{column[row].as_py()} has more digits than a number keeps (is it an identifier?)") from None


def numbers_of(column: pa.Array) -> np.ndarray:
    """The same; ValueOfRowError for infinities, too."""
    values = floats_of(column)
    if np.isinf(values).any():
        row = int(np.argmax(np.isinf(values)))
        raise ValueOfRowError(row, not_finite(values[row]))
    return values


def not_finite(value: float) -> str:
    return f"{value} is not finite"


def part_of_time(column: pa.Array, part: str) -> Words:
    """A part of times as words; missing where the time is. Raises ColumnTypeError, ValueOfRowError for a text that is no time."""
    column = times_of(column)
    if pa.types.is_time(column.type) != (part in ("hour", "minute")) and pa.types.is_time(column.type):
        raise ColumnTypeError(f"holds times of day, which have no {part}")
    if pa.types.is_date(column.type):
        if part in ("hour", "minute"):
            raise ColumnTypeError(f"holds dates, which have no {part}")
        column = column.cast(pa.timestamp("s"))
    function, least = _PARTS[part]
    codes = pc.fill_null(function(column), -1).to_numpy(zero_copy_only=False).astype(np.int32)
    if part == "year":
        distinct, codes = np.unique(codes, return_inverse=True)
        return listed(["" if year < 0 else str(year) for year in distinct.tolist()], codes.astype(np.int32))
    named = _NAMES.get(part) or [str(number) for number in range(least, 61)]
    return listed(named, np.where(codes < 0, MISSING, codes - np.int32(least)))


def times_of(column: pa.Array) -> pa.Array:
    """Timestamps, dates or times of day; texts (ISO 8601) become timestamps."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if kind_of(column.type) == "time":
        return column
    if kind_of(column.type) != "text":
        raise ColumnTypeError(f"holds {_called(column.type)}, not times")
    if pa.types.is_null(column.type):
        return column.cast(pa.timestamp("us"))
    column = pc.if_else(pc.equal(column, ""), None, column)
    try:
        return column.cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        row = next(i for i, value in enumerate(column.to_pylist()) if value is not None and not _is_time(value))
        raise ValueOfRowError(row, f"{column[row].as_py()!r} is no time as in ISO 8601 (2024-05-17 13:45:00)") from None


def _is_time(text: str) -> bool:
    try:
        pa.array([text]).cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        return False
    return True


def _called(found: pa.DataType) -> str:
    return {"text": "text", "bool": "booleans", "time": "times", "number": "numbers"}.get(kind_of(found), str(found))
