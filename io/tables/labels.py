"""The labels of a table: numbers, words, or the outcome of a comparison."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamcut.errors import BadInputError, UsageError
from streamcut.io.manifest import MAX_DISTINCT_LABELS
from streamcut.io.recipe.recipe import LabelRule
from streamcut.io.recipe.table import Comparison
from streamcut.io.tables.arrow import kind_of
from streamcut.io.tables.encoder import Place

_COMPARE = {
    ">": pc.greater,
    "<": pc.less,
    ">=": pc.greater_equal,
    "<=": pc.less_equal,
    "==": pc.equal,
    "!=": pc.not_equal,
}


class LabelReader:
    """Labels by `rule`. `learn`: words get numbers, 0, 1, …, as rows bring them; otherwise the words are those of the rule."""

    def __init__(self, rule: LabelRule, *, learn: bool) -> None:
        self._rule, self._learn = rule, learn
        self._words = dict(rule.words)

    @property
    def rule(self) -> LabelRule:
        """The rule with all words so far."""
        learned = self._rule.learned or len(self._words) > len(self._rule.words)
        return replace(self._rule, words=tuple(self._words.items()), learned=learned)

    def missing(self, column: pa.Array) -> np.ndarray:
        """Which rows have no label, bool (n,)."""
        found = pc.is_null(column, nan_is_null=pa.types.is_floating(column.type))
        if kind_of(column.type) == "text" and not pa.types.is_null(column.type):
            text = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
            found = pc.or_(found, pc.fill_null(pc.equal(text, ""), False))
        return found.to_numpy(zero_copy_only=False)

    def read(self, column: pa.Array, place: Place) -> np.ndarray:
        """float64 (n,), of a column in which no label is missing. Raises BadInputError, naming the row."""
        where = place.file
        if self._rule.comparison is not None:
            return np.where(_outcome(column, self._rule.comparison, where), 1.0, -1.0)
        kind = kind_of(column.type)
        if kind in ("number", "bool") and not self._words:
            values = column.cast(pa.int8() if kind == "bool" else pa.float64()).to_numpy(zero_copy_only=False).astype(np.float64)
            if not np.isfinite(values).all():
                row = int(np.argmin(np.isfinite(values)))
                raise BadInputError(f"{place(row)}, column {self._rule.column!r}: label {values[row]} is not finite")
            return values
        if kind not in ("text", "number", "bool"):
            raise BadInputError(f"{where}: column {self._rule.column!r} holds {column.type}, which is no label")
        return self._of_words(column, place)

    def _of_words(self, column: pa.Array, place: Place) -> np.ndarray:
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        distinct = [str(word) for word in encoded.dictionary.cast(pa.string()).to_pylist()]
        numbers = np.full(len(distinct), np.nan)
        for code in dict.fromkeys(codes.tolist()):  # in the order of the rows
            word = distinct[code]
            number = self._words.get(word)
            if number is None and self._learn and not self._rule.words:
                number = self._words[word] = float(len(self._words))
            if number is None:
                known = ", ".join(map(repr, list(self._words)[:10])) or "numbers"
                row = int(np.argmax(codes == code))
                raise BadInputError(f"{place(row)}, column {self._rule.column!r}: label {word!r} is none of {known}")
            numbers[code] = number
        if len(self._words) > MAX_DISTINCT_LABELS:
            raise BadInputError(
                f"{place.file}: column {self._rule.column!r} has more than {MAX_DISTINCT_LABELS:,} different words; "
                "does it hold labels?"
            )
        return numbers[codes]


def _outcome(column: pa.Array, comparison: Comparison, where: str) -> np.ndarray:
    kind = kind_of(column.type)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        value = pa.scalar(float(comparison.value)) if kind == "number" else pa.scalar(comparison.value)
        if kind in ("bool", "time"):
            value = value.cast(column.type)
    except (ValueError, pa.ArrowException):
        raise UsageError(f"--labels {comparison}: {comparison.value!r} cannot be compared with {column.type}") from None
    if kind == "other":
        raise BadInputError(f"{where}: column {comparison.column!r} holds {column.type}, which is no label")
    return _COMPARE[comparison.operator](column, value).to_numpy(zero_copy_only=False)
