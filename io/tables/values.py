"""Canonical values: the type of a column, and one spelling of each value, regardless of the container.

A type is recognised if every value fits it. Later values that do not fit keep their spelling, and are counted.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamcut.io.recipe.table import BOOLEAN, BOOLEANS, BYTES, INTEGER, NUMBER, TEXT, TIME
from streamcut.io.tables import value_kernels as k
from streamcut.io.tables.arrow import NULLS, ColumnTypeError, ValueOfRowError, bytes_of, codes_of, decoded, floats_of, kind_of
from streamcut.io.tables.times import is_time, spelled_times, time_of
from streamcut.io.tables.word_kernels import MISSING, Words
from streamcut.io.tables.words import NO_CODES, listed

_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)(\.0*)?")
_NUMBER = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_DIGITS = 10.0**22  # whole numbers below it are spelled with all their digits
_OLD_DIGITS = 1e18  # in recipes without types


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
    return TIME if all(map(is_time, texts)) and any(time_of(text) is not None for text in texts) else TEXT


def spelled(text: str, kind: str | None) -> str | None:
    """The canonical spelling of a value written as `text`, "" if missing; None: it is not of type `kind`."""
    if kind in (TEXT, BYTES, None):
        return text
    if text in NULLS:
        return ""
    if kind == BOOLEAN:
        return BOOLEANS.get(text)
    if kind == TIME:
        return spelled_times(pa.array([text]))[0][0] if time_of(text) is not None else None
    if _WHOLE.fullmatch(text):
        digits = text.partition(".")[0]
        return "0" if digits == "-0" else digits
    return number_spelled(float(text)) if _NUMBER.fullmatch(text) else None


def is_number(text: str) -> bool:
    """Whether a text is a finite number."""
    return _NUMBER.fullmatch(text) is not None and float(text) - float(text) == 0.0


def number_spelled(value: float, digits: float = _DIGITS) -> str:
    """Whole numbers below `digits` as such (3.0 is `3`), others as Python writes them; "" for nan."""
    return "" if value != value else str(int(value)) if value.is_integer() and abs(value) < digits else repr(value)


def words_of(column: pa.Array, kind: str | None) -> tuple[Words, int]:
    """(the values of a column of type `kind` as words, the number not of that type). Raises ColumnTypeError.

    Without a type, as in older recipes, every container has its own spelling.
    """
    found = kind_of(column.type)
    if found == "other" or (found == "bytes" and kind is None):
        raise ColumnTypeError(f"holds {column.type}, which is not a category")
    if pa.types.is_null(column.type):
        return listed([""] * len(column)), 0
    recognised = found == "text" and kind in (BOOLEAN, INTEGER, NUMBER, TIME)
    if not pa.types.is_dictionary(column.type):
        if found == "text" and not recognised:
            return _plain(column), 0
        if kind == INTEGER and recognised:
            words = _plain(column)
            odd = _whole_numbers(words := words._replace(starts=words.starts.copy(), stops=words.stops.copy()))
            if not odd.any():
                return words, 0
        column = column.dictionary_encode()
    codes, dictionary = codes_of(column, MISSING), column.dictionary
    if found == "text":
        words = _plain(dictionary)
        words, odd = _recognised(words, kind) if recognised else (words, np.zeros(len(dictionary), bool))
    else:
        words, odd = _typed(dictionary, kind)
    unfit = int((odd[codes] & (codes >= 0)).sum()) if odd.any() else 0
    return words._replace(codes=codes, direct=False), unfit


def _recognised(words: Words, kind: str | None) -> tuple[Words, np.ndarray]:
    """(texts of a typed column in canonical spelling, which are not of its type)."""
    words = words._replace(starts=words.starts.copy(), stops=words.stops.copy())
    odd = _whole_numbers(words) if kind in (INTEGER, NUMBER) else words.stops > words.starts
    places = np.flatnonzero(odd)
    if not len(places):
        return words, odd
    texts = [words.data[words.starts[i] : words.stops[i]].tobytes().decode("utf-8", "surrogateescape") for i in places]
    if kind == TIME:
        new, odd[places] = _times(texts)
    else:
        new = [spelled(text, kind) for text in texts]
        odd[places] = [text is None for text in new]
    added = listed([old if text is None else text for old, text in zip(texts, new, strict=True)])
    words.starts[places], words.stops[places] = added.starts + len(words.data), added.stops + len(words.data)
    return words._replace(data=np.concatenate([words.data, added.data])), odd


def _times(texts: list[str]) -> tuple[list[str | None], np.ndarray]:
    """(each as `spelled`, which are not times): times out of the calendar are missing, texts that are not times stay."""
    try:
        found, lost = spelled_times(pa.array(texts, pa.large_string()))
        return [text or "" for text in found], lost
    except ValueOfRowError:
        each = [_times([text]) if text in NULLS or is_time(text) else ([None], np.ones(1, bool)) for text in texts]
        return [text for found, _ in each for text in found], np.concatenate([lost for _, lost in each])


def _whole_numbers(words: Words) -> np.ndarray:
    """Shorten whole numbers in place; returns which words are not whole numbers."""
    odd = np.empty(len(words.starts), bool)
    k.whole_numbers(words.data, words.starts, words.stops, odd)
    return odd


def _typed(values: pa.Array, kind: str | None) -> tuple[Words, np.ndarray]:
    """(the distinct values of a column other than text, as spelled; which are not of type `kind`)."""
    found = kind_of(values.type)
    fits = kind in _FITTING[found]
    odd = np.full(len(values), not fits)
    if found == "bytes":
        known = [value or b"" for value in values.to_pylist()]
        texts = [value.decode(errors="replace") if kind == TEXT else value.hex() for value in known]
        return listed(texts), odd
    if found == "time" and kind is not None:
        texts, lost = spelled_times(values)
        return listed([text or "" for text in texts]), odd | lost
    if pa.types.is_floating(values.type) or pa.types.is_decimal(values.type):
        return listed(_of_floats(values, kind)), odd
    return _plain(values.cast(pa.string())), odd


def _of_floats(values: pa.Array, kind: str | None) -> list[str]:
    if kind is None:
        return ["" if value is None else number_spelled(float(value), _OLD_DIGITS) for value in values.to_pylist()]
    if pa.types.is_decimal(values.type):
        return ["" if value is None else spelled(f"{value:f}", NUMBER) or "" for value in values.to_pylist()]
    texts = values.cast(pa.string()).to_pylist()  # the shortest that reads back as the same number of this width
    return ["" if text is None else number_spelled(float(text)) for text in texts]


_FITTING: dict[str, tuple[str | None, ...]] = {
    "bool": (None, TEXT, BOOLEAN),
    "number": (None, TEXT, INTEGER, NUMBER),
    "time": (None, TEXT, TIME),
    "bytes": (TEXT, BYTES),
}


def _plain(column: pa.Array) -> Words:
    if pa.types.is_null(column.type):
        return listed([""] * len(column))
    if column.null_count:
        column = pc.fill_null(column, "")
    data, offsets = bytes_of(column)
    return Words(data, offsets[:-1], offsets[1:], NO_CODES, True)


def escaped(words: Words) -> Words:
    """The words as in crosses, with a backslash before each `*`, `=` and backslash."""
    more = k.specials(words.data, words.starts, words.stops)
    if not more:
        return words
    size = int((words.stops - words.starts).sum() + more)
    starts, stops, data = np.empty_like(words.starts), np.empty_like(words.stops), np.empty(size, np.uint8)
    k.escape(words.data, words.starts, words.stops, starts, stops, data)
    return words._replace(data=data, starts=starts, stops=stops)
