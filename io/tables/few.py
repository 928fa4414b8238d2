"""Encodes a few rows of Python values without Arrow, as for the single requests of a service.

Arrow columns pay off only over many rows. Here a row takes a dozen dictionary look-ups, and gets exactly the features of
`encoder.py`, value for value. Anything out of the ordinary (texts, times, values of other types, errors) is left to the
encoder.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamcut.io.recipe.recipe import Recipe
from streamcut.io.recipe.table import ABSENT, BINNED, BOOLEAN, CATEGORICAL, INTEGER, NUMBER, NUMERIC, TEXT, TableColumn
from streamcut.io.sources.lazy import is_of
from streamcut.io.tables.encoder import interval_names
from streamcut.io.tables.keys import Keys
from streamcut.io.tables.rows import unusual
from streamcut.io.tables.values import number_spelled, spelled

_MOST_NAMES = 1 << 20  # most names kept in a Python dictionary
_WHOLE = 1 << 53
_FITS = {
    str: (TEXT, BOOLEAN, INTEGER, NUMBER),
    bool: (TEXT, BOOLEAN),
    int: (TEXT, INTEGER, NUMBER),
    float: (TEXT, INTEGER, NUMBER),
}
_ESCAPED = str.maketrans({sign: f"\\{sign}" for sign in "*=\\"})
_NUMPYS = {np.float64: float, np.int64: int, np.bool_: bool}
_WORDS = ("object", "str", "string")
_PLAIN = {  # column types whose values a dict preserves
    "pandas": {"float64", "int64", "bool", *_WORDS},
    "polars": {"Float64", "Int64", "Boolean", "String"},
    "pyarrow": {"double", "int64", "bool", "string", "large_string"},
}
_FRAMES = ("pandas.DataFrame", "polars.DataFrame", "pyarrow.Table", "pyarrow.RecordBatch")
_TEXTS = {"str", "string", "String", "large_string"}  # except pandas' object, which may be anything


Bins = tuple[tuple[float, ...], list[str]]  # edges, names
Others = Sequence[Mapping[str, object]]  # all rows, where there are several


class OutOfTheOrdinaryError(Exception):
    """A row that needs the encoder."""


class EncodedRows(NamedTuple):
    """rows: (features, int64 increasing, their values, float64) of each; counters as in RowMaker."""

    rows: list[tuple[np.ndarray, np.ndarray]]
    counters: Mapping[str, int]


def few_dicts(frame: Any, most: int) -> list[dict[str, object]] | None:
    """Up to `most` rows of a pandas, polars or Arrow frame as {column: value}.

    A missing value is None, or "" in columns of texts, whose values never become numbers.
    Returns None if there are more rows, column types that dicts do not preserve, or names that are not texts or not unique.
    """
    library = type(frame).__module__.partition(".")[0]
    if library not in _PLAIN or not is_of(frame, *_FRAMES) or not 0 < len(frame) <= most:
        return None
    if library == "pandas":
        names, types = frame.columns.tolist(), [_named(dtype) for dtype in frame.dtypes.tolist()]
    elif library == "polars":
        names, types = frame.columns, [str(dtype) for dtype in frame.dtypes]
    else:
        names, types = frame.schema.names, [str(dtype) for dtype in frame.schema.types]
    if not _PLAIN[library].issuperset(types) or len(set(names)) < len(names) or not all(type(name) is str for name in names):
        return None
    lost = ["" if kind in _TEXTS else None for kind in types]
    if library == "pandas":  # NaN marks missing values
        rows = frame.to_numpy(dtype=object).tolist()
        rows = [[None if type(value) is float and value != value else value for value in row] for row in rows]
    else:
        rows = frame.rows() if library == "polars" else list(zip(*(column.to_pylist() for column in frame.columns), strict=True))
    return [
        {name: empty if value is None else value for name, value, empty in zip(names, row, lost, strict=True)} for row in rows
    ]


def _named(kind: Any) -> str:
    """The type of a pandas column; for a categorical column that of its categories."""
    return "str" if kind.name == "category" and kind.categories.dtype.name in _WORDS else kind.name


def few_encoder(recipe: Recipe) -> FewRows | None:
    """The FewRows of `recipe`, cached from the last call; None: the recipe has columns that need the encoder."""
    if "few" not in recipe.prepared:
        table, types = recipe.table, (TEXT, BOOLEAN, INTEGER, NUMBER)
        plain = (
            table is not None
            and not (recipe.dtype or table.nulls or table.weight or table.qid)
            and all(one.role in (NUMERIC, BINNED) or (one.role == CATEGORICAL and one.type in types) for one in table.columns)
            and len(recipe.names or ()) <= _MOST_NAMES
        )
        recipe.prepared["few"] = FewRows(recipe) if plain else None
    return recipe.prepared["few"]


class FewRows:
    """Encodes rows {column: value} by a recipe without texts and times."""

    def __init__(self, recipe: Recipe) -> None:
        table = recipe.table
        assert table is not None
        self._recipe, self._indicators, self._strict = recipe, table.missing == "own", table.missing == "error"
        self._feature = Keys(recipe.names or (), bits=recipe.hash_bits).of  # negative: none
        self._numbers = []  # (column, feature), in the order in which the encoder sums equal features
        self._words: list[tuple[TableColumn, str, Bins | None]] = []  # (column, prefix of its keys, edges and names of bins)
        for column in table.columns:
            key = table.key(column.name)
            if column.role == NUMERIC:
                self._numbers.append((column, self._feature(key)))
            else:
                bins = (column.edges, interval_names(column.edges)) if column.role == BINNED else None
                self._words.append((column, f"{key}=", bins))
        self._numbers.sort(key=lambda pair: pair[1])
        self._absent = {column.name: self._feature(f"{table.key(column.name)}{ABSENT}") for column in table.columns}
        self._crosses = [(cross, "*".join(map(table.key, cross)) + "=") for cross in table.crosses]
        self._crossed = frozenset(name for cross in table.crosses for name in cross)

    def encoded(self, rows: Sequence[Mapping[str, object]]) -> EncodedRows | None:
        """The features of `rows`; None if they need the encoder."""
        unseen, unfit = list[str](), list[str]()  # the column of each such value
        try:
            kinds: dict[str, type] = {}
            features = [self._row(row, kinds, rows if len(rows) > 1 else (), unseen, unfit) for row in rows]
        except OutOfTheOrdinaryError:
            return None
        return EncodedRows(features, unusual(self._recipe, Counter(unseen), Counter(unfit)) if unseen or unfit else {})

    def _row(
        self, row: Mapping[str, object], kinds: dict[str, type], others: Others, unseen: list[str], unfit: list[str]
    ) -> tuple[np.ndarray, np.ndarray]:
        features: dict[int, float] = {}
        absent = []
        for column, feature in self._numbers:
            value = self._number(row, column.name, kinds, others)
            if value is None:
                absent.append(column.name)
            else:
                value = (value - column.centre) / column.spread
                if value != 0.0:
                    features[feature] = features.get(feature, 0.0) + value
        categories, words = [], dict[str, str]()
        for column, prefix, bins in self._words:
            name = column.name
            if bins is None:
                word = self._word(row, column, kinds, others, unfit)
            else:
                value = self._number(row, name, kinds, others)
                word = "" if value is None else bins[1][bisect_right(bins[0], value)]
            if name in self._crossed:
                words[name] = word.translate(_ESCAPED)
            if word:
                categories.append((self._feature(prefix + word), name))
            else:
                absent.append(name)
        for cross, prefix in self._crosses:
            parts = [words[name] for name in cross]
            if all(parts):
                categories.append((self._feature(prefix + "*".join(parts)), cross[0]))
            elif self._strict:
                raise OutOfTheOrdinaryError
        if absent and self._strict:
            raise OutOfTheOrdinaryError  # the encoder raises the error that names row and column
        categories += [(self._absent[name], name) for name in absent if self._indicators]
        for feature, name in categories:
            if feature < 0:
                unseen.append(name)
            else:
                features[feature] = features.get(feature, 0.0) + 1.0
        order = sorted(features)
        return np.array(order, np.int64), np.array([features[feature] for feature in order], np.float64)

    def _value(self, row: Mapping[str, object], name: str, kinds: dict[str, type], others: Others) -> Any:
        """The value of a column; within a column, all values have the same type or are missing."""
        value: Any = row.get(name)
        kind = type(value)
        if value is None:
            if name not in row and not any(name in other for other in others):
                raise OutOfTheOrdinaryError  # no such column
            return None
        if kind in _NUMPYS:
            value, kind = value.item(), _NUMPYS[kind]
        if kind not in _FITS or kinds.setdefault(name, kind) is not kind:
            raise OutOfTheOrdinaryError
        return value

    def _number(self, row: Mapping[str, object], name: str, kinds: dict[str, type], others: Others) -> float | None:
        value = self._value(row, name, kinds, others)
        if value is None or value != value:
            return None
        if type(value) is float:
            if math.isinf(value):
                raise OutOfTheOrdinaryError
            return value
        if type(value) is str or abs(value) > _WHOLE:
            raise OutOfTheOrdinaryError
        return float(value)

    def _word(
        self, row: Mapping[str, object], column: TableColumn, kinds: dict[str, type], others: Others, unfit: list[str]
    ) -> str:
        """The spelling of a category, "" if missing."""
        value = self._value(row, column.name, kinds, others)
        if value is None:
            return ""
        kind = type(value)
        fits = column.type in _FITS[kind]
        if kind is str:
            word = spelled(value, column.type)
            fits, word = word is not None, value if word is None else word
            if not word.isascii() and any("\ud800" <= letter <= "\udfff" for letter in word):  # which is not UTF-8
                raise OutOfTheOrdinaryError
        elif kind is bool:
            word = "true" if value else "false"
        elif kind is int:
            if not -(1 << 63) <= value < 1 << 63:
                raise OutOfTheOrdinaryError
            word = str(value)
        else:
            word = number_spelled(value)
        if word and not fits:
            unfit.append(column.name)
        return word
