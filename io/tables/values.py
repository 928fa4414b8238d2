"""Canonical values: the type of a column, and one spelling of each value, regardless of the container.

A type is recognised if every value fits it. Later values that do not fit keep their spelling, and are counted.
"""

from __future__ import annotations

import re
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamcut.io.recipe.table import BOOLEAN, BOOLEANS, BYTES, INTEGER, NUMBER, TEXT, TIME
from streamcut.io.tables.arrow import NULLS, ColumnTypeError, ValueOfRowError, decoded, floats_of, kind_of
from streamcut.io.tables.kernels import texts_of
from streamcut.io.tables.keys import Words, coded
from streamcut.io.tables.times import ENDLESS, spelled_times, times_of

_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)(\.0*)?")
_NUMBER = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_DIGITS = 10.0**22  # whole numbers below it are spelled with all their digits
_DIGITS_ONLY = "^(0|-?[1-9][0-9]*)?$"  # whole numbers as they are spelled, or none
_FITTING = {"bool": (TEXT, BOOLEAN), "number": (TEXT, INTEGER, NUMBER), "time": (TEXT, TIME), "bytes": (TEXT, BYTES)}


def type_of(column: pa.Array) -> str:
    """The type of a column with these values."""
    kind = kind_of(column.type)
    if kind in ("bool", "time", "bytes"):
        return {"bool": BOOLEAN, "time": TIME, "bytes": BYTES}[kind]
    if kind == "number":
        values = floats_of(decoded(column)) if not pa.types.is_integer(decoded(column).type) else np.zeros(0)
        return INTEGER if bool((np.isnan(values) | (values == np.floor(values))).all()) else NUMBER
    distinct = [text for text in decoded(column).unique().to_pylist() if text is not None and text not in NULLS]
    return type_of_texts(distinct)


def type_of_texts(texts: list[str]) -> str:
    """The common type of all texts; text if there is none, or no texts."""
    if not texts:
        return TEXT
    if all(text in BOOLEANS for text in texts):
        return BOOLEAN
    if all(_WHOLE.fullmatch(text) for text in texts):
        return INTEGER
    if all(_NUMBER.fullmatch(text) for text in texts):
        return NUMBER
    with suppress(ValueOfRowError):
        times_of(pa.array(texts[:1]))  # which shows of most words that they are no times
        times_of(pa.array(texts))
        return TIME if any(text.lower() not in ENDLESS for text in texts) else TEXT
    return TEXT


def spelled(text: str, kind: str | None) -> str | None:
    """The canonical spelling of a value written as `text`, "" if missing; None: it is not of type `kind`."""
    if kind in (TEXT, BYTES, None):
        return text
    if text in NULLS:
        return ""
    if kind == BOOLEAN:
        return BOOLEANS.get(text)
    if kind == TIME:
        with suppress(ValueOfRowError):
            return spelled_times(pa.array([text]))[0][0].as_py() or ""
        return None
    if _WHOLE.fullmatch(text):
        digits = text.partition(".")[0]
        return "0" if digits == "-0" else digits
    return number_spelled(float(text)) if _NUMBER.fullmatch(text) else None


def is_number(text: str) -> bool:
    """Whether a text is a finite number."""
    return _NUMBER.fullmatch(text) is not None and float(text) - float(text) == 0.0


def number_spelled(value: float) -> str:
    """Whole numbers below 1e22 as such (3.0 is `3`), others as Python writes them; "" for nan."""
    return "" if value != value else str(int(value)) if value.is_integer() and abs(value) < _DIGITS else repr(value)


def words_of(column: pa.Array, kind: str) -> tuple[Words, int]:
    """(the values of a column of type `kind` as words, the number not of that type). Raises ColumnTypeError."""
    family = kind_of(column.type)
    if family == "other":
        raise ColumnTypeError(f"holds {column.type}, which is not a category")
    codes, distinct = coded(column.cast(pa.string()) if pa.types.is_null(column.type) else column)
    distinct = pc.fill_null(distinct, "") if family == "text" and distinct.null_count else distinct
    words, odd = _texts(distinct, kind) if family == "text" else _typed(distinct, family, kind)
    unfit = int((odd[codes] & (codes >= 0)).sum()) if odd.any() else 0
    return Words.spelled(codes, words), unfit


def _texts(words: pa.Array, kind: str) -> tuple[pa.Array, np.ndarray]:
    """(texts of a column of type `kind` in canonical spelling, which are not of its type)."""
    odd = np.zeros(len(words), bool)
    if kind in (TEXT, BYTES):
        return words, odd
    if kind in (INTEGER, NUMBER) and pc.all(pc.match_substring_regex(words, _DIGITS_ONLY)).as_py():
        return words, odd
    if kind == TIME:
        with suppress(ValueOfRowError):  # of a text that is not a time
            return spelled_times(words)
    written = texts_of(words)
    texts = [spelled(text, kind) for text in written]
    for row, (text, old) in enumerate(zip(texts, written, strict=True)):
        odd[row] = text is None or (kind == TIME and text == "" and old not in NULLS)  # a time out of the calendar is missing
    texts = [old if text is None else text for text, old in zip(texts, written, strict=True)]
    return pa.array(texts, pa.large_string()), odd


def _typed(values: pa.Array, family: str, kind: str) -> tuple[pa.Array, np.ndarray]:
    """(the distinct values of a column other than text, as spelled; which are not of type `kind`)."""
    odd = np.full(len(values), kind not in _FITTING[family])
    if family == "bytes":
        plain = [value or b"" for value in values.to_pylist()]
        texts = [value.decode(errors="replace") if kind == TEXT else value.hex() for value in plain]
        return pa.array(texts, pa.large_string()), odd
    if family == "time":
        texts, lost = spelled_times(values)
        return texts, odd | lost
    if pa.types.is_decimal(values.type):
        texts = ["" if value is None else spelled(f"{value:f}", NUMBER) for value in values.to_pylist()]
        return pa.array(texts, pa.large_string()), odd
    if pa.types.is_floating(values.type):
        numbers = values.cast(pa.string()).to_pylist()  # the shortest that reads back as the same number of this width
        return pa.array(["" if text is None else number_spelled(float(text)) for text in numbers], pa.large_string()), odd
    return values.cast(pa.large_string()), odd


def escaped(words: Words) -> Words:
    """The words as in crosses, with a backslash before each `*`, `=` and backslash."""
    return words._replace(words=pc.replace_substring_regex(words.words, r"([*=\\])", r"\\\1"))
