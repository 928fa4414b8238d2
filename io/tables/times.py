"""Times: texts and Arrow types as timestamps of the calendar, their parts and their spelling."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamcut.io.tables.arrow import NULLS, ColumnTypeError, ValueOfRowError, called, decoded, kind_of
from streamcut.io.tables.keys import Words

_NAMES: dict[str, list[str]] = {
    "weekday": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"],
    "month": ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
}
_PARTS: dict[str, tuple[Callable[[pa.Array], pa.Array], int, int]] = {  # the Arrow function, its least and its greatest value
    "year": (pc.year, 1, 9999),
    "quarter": (pc.quarter, 1, 4),
    "month": (pc.month, 1, 12),
    "week": (pc.iso_week, 1, 53),
    "day": (pc.day, 1, 31),
    "weekday": (pc.day_of_week, 0, 6),
    "hour": (pc.hour, 0, 23),
    "minute": (pc.minute, 0, 59),
}
_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_FIRST, _END = -62_135_596_800, 253_402_300_800  # seconds: the years 1 to 9999 of the proleptic Gregorian calendar
_DAY = 86_400
ENDLESS = frozenset(f"{sign}{word}" for sign in ("", "+", "-") for word in ("infinity", "inf"))  # as databases write them
_READINGS = (pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.timestamp("ns", "UTC"))


def check_zone(dtype: pa.DataType) -> None:
    """Raise ColumnTypeError for an unknown time zone."""
    if pa.types.is_dictionary(dtype):
        dtype = dtype.value_type
    if not pa.types.is_timestamp(dtype) or dtype.tz is None:
        return
    try:
        pc.hour(pa.array([0], dtype))
    except pa.ArrowInvalid:
        zone = dtype.tz if len(dtype.tz) <= 60 else f"{dtype.tz[:60]}…"
        raise ColumnTypeError(f"holds times of the time zone {zone!r}, which is unknown") from None


def part_of_time(column: pa.Array, part: str) -> Words:
    """A part of times from `times_of` as words; missing for missing times. Raises ColumnTypeError."""
    if pa.types.is_time(column.type) and part not in ("hour", "minute"):
        raise ColumnTypeError(f"holds times of day, which have no {part}")
    if pa.types.is_date(column.type):
        if part in ("hour", "minute"):
            raise ColumnTypeError(f"holds dates, which have no {part}")
        column = column.cast(pa.timestamp("s"))
    function, least, most = _PARTS[part]
    codes = pc.fill_null(function(column), least - 1).to_numpy(zero_copy_only=False)
    if len(codes) and not (least - 1 <= codes.min() and codes.max() <= most):  # codes index the words
        raise ColumnTypeError(f"holds times with an invalid {part}: {codes.min()} to {codes.max()}")
    if part == "year":
        distinct, codes = np.unique(codes, return_inverse=True)
        codes = np.where(distinct < least, -1, np.arange(len(distinct)))[codes]
        return Words(codes.astype(np.int32), pa.array([str(year) for year in distinct.tolist()], pa.large_string()))
    named = _NAMES.get(part) or [str(number) for number in range(least, most + 1)]
    return Words(np.where(codes < least, -1, codes - least).astype(np.int32), pa.array(named, pa.large_string()))


def spelled_times(column: pa.Array) -> tuple[pa.Array, np.ndarray]:
    """(times as ISO 8601 in UTC, `2024-05-17T13:45:00Z`, times of day as `13:45:00`; which are out of the calendar: null).

    Fractions of a second have no trailing zeros, and a date is its midnight. Raises as `times_of`.
    """
    column, lost = times_of(column)
    of_day = pa.types.is_time(column.type)
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("s"))
    if of_day:
        column = pc.if_else(column.is_valid(), pa.array(_numbers(column)), None).view(pa.timestamp(column.type.unit))
    texts = pc.strftime(column, format="%H:%M:%S" if of_day else "%Y-%m-%dT%H:%M:%S").cast(pa.large_string())
    texts = pc.replace_substring_regex(texts, r"\.0+$|(\.\d*[1-9])0+$", r"\1")
    return texts if of_day else pc.binary_join_element_wise(texts, *(pa.scalar(end, texts.type) for end in ("Z", ""))), lost


def times_of(column: pa.Array) -> tuple[pa.Array, np.ndarray]:
    """(timestamps, dates or times of day; which are out of the calendar, bool (n,): null).

    ISO 8601 texts become timestamps, in UTC unless they name another zone. Years are 1 to 9999; the least and greatest
    numbers of int64 and the infinities of databases are out of the calendar.

    Raises ColumnTypeError, ValueOfRowError for a text that is not a time.
    """
    column = decoded(column)
    kind = kind_of(column.type)
    if pa.types.is_null(column.type):
        return column.cast(pa.timestamp("us")), np.zeros(len(column), bool)
    if kind == "text":
        return _of_texts(column)
    if kind != "time":
        raise ColumnTypeError(f"holds {called(column.type)}, not times")
    check_zone(column.type)
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        column = column.cast(pa.timestamp(column.type.unit, "UTC")).cast(pa.timestamp(column.type.unit))
    return _within_calendar(column)


def _within_calendar(column: pa.Array) -> tuple[pa.Array, np.ndarray]:
    raw, dtype = _numbers(column), column.type
    if pa.types.is_time(dtype):
        least, end = 0, _DAY * _SECOND[dtype.unit]
    elif pa.types.is_date32(dtype):
        least, end = _FIRST // _DAY, _END // _DAY
    else:
        per_second = _SECOND["ms"] if pa.types.is_date64(dtype) else _SECOND[dtype.unit]
        least, end = max(_FIRST * per_second, -(1 << 63) + 2), min(_END * per_second, (1 << 63) - 1)
    if not len(raw) or (least <= raw.min() and raw.max() < end):
        return column, np.zeros(len(raw), bool)
    outside = (raw < least) | (raw >= end)
    lost = outside & column.is_valid().to_numpy(zero_copy_only=False)
    return pc.if_else(pa.array(~outside), column, pa.scalar(None, dtype)), lost


def _numbers(column: pa.Array) -> np.ndarray:
    """The stored int64 of each time; 0 for null."""
    wide = pa.int32() if column.type.bit_width == 32 else pa.int64()
    return pc.fill_null(column.view(wide), 0).to_numpy(zero_copy_only=False).astype(np.int64, copy=False)


def _of_texts(column: pa.Array) -> tuple[pa.Array, np.ndarray]:
    column = pc.if_else(pc.equal(column, ""), None, column)
    for reading in _READINGS:
        try:
            return _within_calendar(column.cast(reading).cast(pa.timestamp(reading.unit)))
        except pa.ArrowInvalid:
            continue
    times, endless = [], np.zeros(len(column), bool)
    for row, text in enumerate(column.to_pylist()):
        time = None if text is None else time_of(text)
        if time is None and text is not None:
            endless[row] = text.lower() in ENDLESS
            if not endless[row] and text not in NULLS:
                raise ValueOfRowError(row, f"{text!r} is not an ISO 8601 time (2024-05-17 13:45:00)")
        times.append(time)
    column, lost = _within_calendar(pa.array(times, pa.int64()).view(pa.timestamp("us")))
    return column, lost | endless


def time_of(text: str) -> int | None:
    """Microseconds since 1970 of an ISO 8601 text, None if it is not a time. Finer fractions are truncated."""
    for reading in _READINGS:
        try:
            return pc.cast(pa.array([text]), reading).cast(pa.timestamp("us"), safe=False).view(pa.int64())[0].as_py()
        except pa.ArrowInvalid:
            continue
    return None
