"""The labels of a table: numbers, words, or the result of a comparison. Labels are the same in every container."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamcut.errors import BadInputError, UsageError
from streamcut.io.manifest import MAX_DISTINCT_LABELS
from streamcut.io.recipe.recipe import LabelRule
from streamcut.io.recipe.table import BOOLEAN, BOOLEANS, INTEGER, NUMBER, TEXT, Comparison
from streamcut.io.tables.arrow import NULLS, codes_of, decoded, floats_of, kind_of
from streamcut.io.tables.encoder import Place
from streamcut.io.tables.values import spelled, type_of

_COMPARE = {
    ">": pc.greater,
    "<": pc.less,
    ">=": pc.greater_equal,
    "<=": pc.less_equal,
    "==": pc.equal,
    "!=": pc.not_equal,
}


_AS_WORDS = "correct it, or take all labels as words with --labels-as=words"
_NAMED = 5  # most rows that a message names


def typed_rule(rule: LabelRule, column: pa.Array, labels_as: str, where: str) -> LabelRule:
    """`rule` with the type of the labels, of which `column` holds the first; `learned`: words to be numbered.

    Raises BadInputError for labels that are mostly numbers: more than half of them, but not all.
    """
    found = type_of(column)
    rule = replace(rule, type=NUMBER if found == INTEGER else found)
    if rule.comparison is not None:
        return rule
    if rule.words:
        words = tuple((spelled(word, rule.type) or word, number) for word, number in rule.words)
        if len(dict(words)) < len(words):
            raise UsageError(f"--label-map: two of its words are one {rule.type}")
        return replace(rule, words=words)
    if labels_as == "words":
        return replace(rule, learned=True)
    if rule.type not in (BOOLEAN, NUMBER):
        texts = column.to_pylist() if kind_of(column.type) == "text" else []
        written = [(row, spelled(text, NUMBER) is not None) for row, text in enumerate(texts) if text]
        odd = [row for row, is_number in written if not is_number]
        if odd and labels_as == "auto" and 2 * len(odd) < len(written):
            named = ", ".join(f"{row} ({texts[row]!r})" for row in odd[:_NAMED])
            more = ", …" if len(odd) > _NAMED else ""
            raise BadInputError(
                f"{where}: column {rule.column!r}: nearly all labels are numbers, but those of rows {named}{more} (0-based) are "
                "not; correct them, or take all as words with --labels-as=words"
            )
        if odd and labels_as == "auto":
            return replace(rule, type=TEXT, learned=True)
    return replace(rule, type=BOOLEAN if rule.type == BOOLEAN else NUMBER)


class LabelReader:
    """Labels by `rule`. `learn`: words get numbers, 0, 1, …, in order of occurrence; otherwise words are those of the rule."""

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
        column = decoded(column)
        found = pc.is_null(column, nan_is_null=pa.types.is_floating(column.type))
        if kind_of(column.type) == "text" and not pa.types.is_null(column.type):
            nothing = pa.array(["", *(NULLS if self._rule.type not in (None, TEXT) else ())], column.type)
            found = pc.or_(found, pc.is_in(column, nothing))
        return found.to_numpy(zero_copy_only=False)

    def read(self, column: pa.Array, place: Place) -> np.ndarray:
        """float64 (n,) labels of a column without missing ones. Raises BadInputError, naming the row."""
        where, rule = place.file, self._rule
        if rule.comparison is not None:
            return np.where(_outcome(column, rule.comparison, rule.type, where), 1.0, -1.0)
        kind = kind_of(column.type)
        if kind not in ("text", "number", "bool"):
            raise BadInputError(f"{where}: column {rule.column!r} holds {column.type}, which is not a label")
        if self._words or self._learn:
            return self._of_words(column, place)
        if kind == "text":
            return self._numbers_of_texts(column, place)
        values = floats_of(column)
        if not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values)))
            raise BadInputError(f"{place(row)}, column {rule.column!r}: label {values[row]} is not finite")
        return values

    def _numbers_of_texts(self, column: pa.Array, place: Place) -> np.ndarray:
        """Labels that are numbers, or booleans (1 and 0), written as text."""
        codes, distinct = _coded(column)
        numbers = np.array([_label(text, self._rule.type) for text in distinct])
        if np.isnan(numbers[codes]).any():
            row = int(np.argmax(np.isnan(numbers[codes])))
            others = "neither true nor false" if self._rule.type == BOOLEAN else "no number"
            what = f"label {distinct[codes[row]]!r} is {others}, as those before are; {_AS_WORDS}"
            raise BadInputError(f"{place(row)}, column {self._rule.column!r}: {what}")
        return numbers[codes]

    def _of_words(self, column: pa.Array, place: Place) -> np.ndarray:
        codes, distinct = _coded(column)
        kind = self._rule.type
        distinct = [spelled(text, kind) or text for text in distinct]
        numbers = np.full(len(distinct), np.nan)
        for code in dict.fromkeys(codes.tolist()):  # in the order of the rows
            word = distinct[code]
            number = self._words.get(word)
            if number is None and self._learn and not self._rule.words:
                number = self._words[word] = float(len(self._words))
            if number is None:
                known = ", ".join(map(repr, list(self._words)[:10]))
                row = int(np.argmax(codes == code))
                raise BadInputError(f"{place(row)}, column {self._rule.column!r}: label {word!r} is none of {known}")
            numbers[code] = number
        if len(self._words) > MAX_DISTINCT_LABELS:
            raise BadInputError(
                f"{place.file}: column {self._rule.column!r} has more than {MAX_DISTINCT_LABELS:,} different words; "
                "does it hold labels?"
            )
        return numbers[codes]


def _coded(column: pa.Array) -> tuple[np.ndarray, list[str]]:
    """(codes, the distinct labels as written) of a column without missing labels."""
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    values = encoded.dictionary
    texts = [text or "" for text in (decoded(values) if kind_of(values.type) == "text" else values.cast(pa.string())).to_pylist()]
    return codes_of(encoded, -1), texts


def _label(text: str, kind: str | None) -> float:
    """The number of a label; nan: it is not of this type."""
    if kind == BOOLEAN and text in BOOLEANS:
        return float(BOOLEANS[text] == "true")
    return float(text) if kind in (BOOLEAN, NUMBER) and text and spelled(text, NUMBER) else np.nan


class LabelCodings:
    """The codings of two labels in the files of a table: 1 and 0 in one, 1 and −1 in another, are not three labels."""

    def __init__(self, state: Sequence[Any] = ()) -> None:
        self._first: dict[str, str] = dict(state[0]) if state else {}  # {"0" or "-1": the first file that has only this one}
        self._file, self._seen, self._others = tuple(state[1:4]) if state else ("", [], False)
        self._seen = list(self._seen)

    def state(self) -> list[Any]:
        """In JSON types, for resuming."""
        return [dict(self._first), self._file, list(self._seen), self._others]

    def add(self, file: str, row: int, y: np.ndarray) -> None:
        """Add the labels, float64 (n,), of the next rows, from row `row` of `file` on."""
        if self._others:
            return
        if file != self._file:
            self._end_file()
            self._file, self._seen = file, []
        zero, one, minus = y == 0.0, y == 1.0, y == -1.0
        self._others = not (zero | one | minus).all()
        for name, found in (("0", zero), ("-1", minus)):
            if found.any() and name not in [seen for seen, _ in self._seen]:
                self._seen.append([name, row + int(np.argmax(found))])

    def _end_file(self) -> None:
        self._others = self._others or len(self._seen) > 1
        for name, row in self._seen:
            self._first.setdefault(name, f"{self._file}: row {row} (0-based)")

    def end(self, column: str | None) -> None:
        """Raise BadInputError if some files have labels 1 and 0, others 1 and −1, and no other labels or mixtures occur."""
        self._end_file()
        if not self._others and len(self._first) == 2:
            raise BadInputError(
                f"{self._first['0']} has the label 0, {self._first['-1']} has -1, and no file has both: are they one label? Make "
                f"column {column!r} the same in all files, or say --labels-as=numbers if these are three labels"
            )


def _outcome(column: pa.Array, comparison: Comparison, type_of_labels: str | None, where: str) -> np.ndarray:
    column = decoded(column)
    if kind_of(column.type) == "text" and type_of_labels in (BOOLEAN, NUMBER):
        codes, distinct = _coded(column)
        numbers = np.array([_label(text, BOOLEAN if type_of_labels == BOOLEAN else NUMBER) for text in distinct])[codes]
        column = pa.array(numbers if type_of_labels != BOOLEAN else numbers == 1.0)
    kind = kind_of(column.type)
    try:
        value = pa.scalar(float(comparison.value)) if kind == "number" else pa.scalar(comparison.value)
        if kind in ("bool", "time"):
            value = value.cast(column.type)
    except (ValueError, pa.ArrowException):
        raise UsageError(f"--label: {comparison}: {comparison.value!r} cannot be compared with {column.type}") from None
    if kind == "other":
        raise BadInputError(f"{where}: column {comparison.column!r} holds {column.type}, which is not a label")
    return _COMPARE[comparison.operator](column, value).to_numpy(zero_copy_only=False)
