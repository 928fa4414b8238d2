"""The labels of a table: numbers, words, or the result of a comparison. Labels are the same in every container."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamcut.errors import BadInputError, UsageError
from streamcut.io.recipe.recipe import LabelRule
from streamcut.io.recipe.table import BOOLEAN, BOOLEANS, INTEGER, NUMBER, TEXT, Comparison
from streamcut.io.sources.labels import Labels
from streamcut.io.sources.source import Place
from streamcut.io.tables.arrow import NULLS, decoded, floats_of, kind_of
from streamcut.io.tables.keys import coded
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
    kind = type_of(column)
    rule = replace(rule, type=NUMBER if kind == INTEGER else kind)
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


class LabelReader(Labels):
    """Labels by `rule`. `learn`: words get numbers, 0, 1, …, in order of occurrence; otherwise words are those of the rule."""

    def __init__(self, rule: LabelRule, *, learn: bool) -> None:
        super().__init__(dict(rule.words), learn=learn)
        self._rule = rule

    @property
    def rule(self) -> LabelRule:
        """The rule with all words so far."""
        learned = self._rule.learned or len(self.words) > len(self._rule.words)
        return replace(self._rule, words=tuple(self.words.items()), learned=learned)

    def missing(self, column: pa.Array) -> np.ndarray:
        """Which rows have no label, bool (n,)."""
        column = decoded(column)
        missing = pc.is_null(column, nan_is_null=pa.types.is_floating(column.type))
        if kind_of(column.type) == "text" and not pa.types.is_null(column.type):
            nothing = pa.array(["", *(NULLS if self._rule.type not in (None, TEXT) else ())], column.type)
            missing = pc.or_(missing, pc.is_in(column, nothing))
        return missing.to_numpy(zero_copy_only=False)

    def read(self, column: pa.Array, place: Place) -> np.ndarray:
        """float64 (n,) labels of a column without missing ones. Raises BadInputError, naming the row."""
        where, rule = place.file, self._rule

        def at(row: int) -> str:
            return f"{place(row)}, column {rule.column!r}"

        if rule.comparison is not None:
            return np.where(_outcome(column, rule.comparison, rule.type, where), 1.0, -1.0)
        kind = kind_of(column.type)
        if kind not in ("text", "number", "bool"):
            raise BadInputError(f"{where}: column {rule.column!r} holds {column.type}, which is not a label")
        codes, distinct = _coded(column) if kind == "text" or self.words or self.learn else (np.empty(0, int), [])
        if self.words or self.learn:
            return self.coded(codes, [spelled(text, rule.type) or text for text in distinct], self.number, at)
        if kind == "text":  # numbers, or booleans (1 and 0)
            others = "neither true nor false" if rule.type == BOOLEAN else "no number"
            what = f"is {others}, as those before are; {_AS_WORDS}"
            return self.coded(codes, distinct, lambda text: _label(text, rule.type), at, what)
        values = floats_of(column)
        if not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values)))
            raise BadInputError(f"{at(row)}: label {values[row]} is not finite")
        return values


def _coded(column: pa.Array) -> tuple[np.ndarray, list[str]]:
    """(codes, the distinct labels as written) of a column without missing labels."""
    codes, values = coded(column)
    return codes, [text or "" for text in (values if kind_of(values.type) == "text" else values.cast(pa.string())).to_pylist()]


def _label(text: str, kind: str | None) -> float | None:
    """The number of a label; None: it is not of this type."""
    if kind == BOOLEAN and text in BOOLEANS:
        return float(BOOLEANS[text] == "true")
    return float(text) if kind in (BOOLEAN, NUMBER) and text and spelled(text, NUMBER) else None


class LabelCodings:
    """The codings of two labels in the files of a table: 1 and 0 in one, 1 and −1 in another, are not three labels."""

    def __init__(self, state: Sequence[Any] | None = None) -> None:
        first, file, here, others = state or ({}, "", (), False)
        self._first: dict[str, str] = dict(first)  # {"0" or "-1": where it is first}
        self._file, self._here, self._others = str(file), set(here), bool(others)  # of the current file

    def state(self) -> list[object]:
        """In JSON types, for resuming."""
        return [dict(self._first), self._file, sorted(self._here), self._others]

    def add(self, file: str, row: int, y: np.ndarray) -> None:
        """Add the labels, float64 (n,), of the next rows, from row `row` of `file` on."""
        if file != self._file:
            self._file, self._here = file, set()
        for name, there in (("0", y == 0.0), ("-1", y == -1.0)):
            if there.any():
                self._first.setdefault(name, f"{file}: row {row + int(np.argmax(there))} (0-based)")
                self._here.add(name)
        self._others = self._others or len(self._here) == 2 or not np.isin(y, (-1.0, 0.0, 1.0)).all()

    def end(self, column: str | None) -> None:
        """Raise BadInputError if some files have labels 1 and 0, others 1 and −1, and no other labels or mixtures occur."""
        if not self._others and len(self._first) == 2:
            raise BadInputError(
                f"{self._first['0']} has the label 0, {self._first['-1']} has -1, and no file has both: are they one label? Make "
                f"column {column!r} the same in all files, or say --labels-as=numbers if these are three labels"
            )


def _outcome(column: pa.Array, comparison: Comparison, type_of_labels: str | None, where: str) -> np.ndarray:
    column = decoded(column)
    if kind_of(column.type) == "text" and type_of_labels in (BOOLEAN, NUMBER):
        codes, distinct = _coded(column)
        numbers = np.array([_label(text, type_of_labels) for text in distinct], np.float64)[codes]
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
