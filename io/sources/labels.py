"""Labels as numbers: those of files without types, and of Python; tables (tables/labels.py) read theirs by their types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from streamcut.errors import BadInputError, UsageError
from streamcut.io.manifest import MAX_DISTINCT_LABELS
from streamcut.io.recipe.recipe import LabelRule

SKIP = "; --missing-labels=skip leaves such rows out"
_MAP = "use --label-map (for example --label-map ham=-1,spam=1)"


class Labels:
    """The numbers of labels: numbers stay, words have those of `words` or, with `learn`, the next ones in order of appearance.

    in_files  a text that is a number is one, and a number among words is a word; otherwise types decide
    mapped    `words` are those of a label map, which has all labels, numbers too
    skip      a missing label is nan, not an error
    numbers   whether labels so far are numbers; None: there are none so far
    """

    def __init__(
        self,
        words: Mapping[str, float],
        *,
        learn: bool,
        in_files: bool = False,
        mapped: bool = False,
        skip: bool = False,
    ) -> None:
        self.words, self.learn, self.mapped, self.skip = dict(words), learn, mapped, skip
        self._in_files, self._hint = in_files, SKIP if in_files else ""
        self.numbers: bool | None = None

    @property
    def rule(self) -> LabelRule:
        """The meaning of the labels so far."""
        return LabelRule(words=tuple(self.words.items()), learned=self.learn and bool(self.words))

    def of(self, labels: np.ndarray, place: Callable[[int], str]) -> np.ndarray:
        """float64 (n,) of numbers or objects (n,). Raises BadInputError with the first wrong row, which `place` names."""
        by_words = self.mapped or (self._in_files and bool(self.words))
        if labels.dtype.kind in "biuf" and not by_words:
            return self._of_numbers(labels.astype(np.float64), place)
        missing = np.array([label is None or label != label for label in labels.tolist()], bool)
        if missing.any() and not self.skip:
            raise BadInputError(f"{place(int(np.argmax(missing)))}: the label is missing{self._hint}")
        y, rows = np.full(len(labels), np.nan), np.flatnonzero(~missing)
        if not len(rows):
            return y
        words = [_word(label) for label in labels[rows].tolist()]
        numeric = self._in_files and not by_words and _number_of(words[0]) is not None
        self._expect_kind(numeric, place(rows[0]))
        distinct, codes = np.unique(words, return_inverse=True)
        number = _number_of if numeric else self.number
        y[rows] = self.coded(codes, distinct.tolist(), number, lambda row: place(rows[row]))
        return y

    def coded(
        self,
        codes: np.ndarray,
        distinct: Sequence[str],
        number: Callable[[str], float | None],
        place: Callable[[int], str],
        unknown: str = "",
    ) -> np.ndarray:
        """float64 (n,): the numbers of labels distinct[codes]. `number` is asked in the order of rows; None: the label is refused
        as `unknown`."""
        numbers = np.full(len(distinct), np.nan)
        for code in dict.fromkeys(codes.tolist()):
            value = number(distinct[code])
            if value is None:
                row = int(np.argmax(codes == code))
                raise BadInputError(f"{place(row)}: label {distinct[code]!r} {unknown or self._unknown()}")
            numbers[code] = value
        return numbers[codes]

    def _of_numbers(self, y: np.ndarray, place: Callable[[int], str]) -> np.ndarray:
        wrong = np.isinf(y) if self.skip else ~np.isfinite(y)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise BadInputError(f"{place(row)}: the label is {y[row]}{self._hint}")
        if np.isfinite(y).any():
            self._expect_kind(True, place(0))
        unknown = ~np.isin(y, list(self.words.values())) if self.words and not self.learn else np.zeros(len(y), bool)
        if unknown.any():
            row = int(np.argmax(unknown))
            raise BadInputError(f"{place(row)}: label {y[row]:g} is the number of none of {self._first_words()}")
        return y

    def _expect_kind(self, numbers: bool, where: str) -> None:
        if self.numbers not in (None, numbers) and self.learn and not self._in_files:
            raise BadInputError(f"{where}: labels were {'numbers' if self.numbers else 'words'} before")
        self.numbers = self.numbers or numbers

    def number(self, word: str) -> float | None:
        """The number of a word; None if it is unknown."""
        if self.learn and not self.numbers and len(self.words) < MAX_DISTINCT_LABELS:
            return self.words.setdefault(word, float(len(self.words)))
        return self.words.get(word)

    def _unknown(self) -> str:
        if self.mapped:
            return f"is not in --label-map {_MAP.removeprefix('use --label-map ')}"
        if self._in_files and (self.numbers or not self.words):
            return f"is not a number; {_MAP}"
        if self.learn:
            return f"is beyond the {MAX_DISTINCT_LABELS:,} different words that labels may have; are these labels?"
        return f"is none of {self._first_words() or 'numbers'}"

    def _first_words(self) -> str:
        return ", ".join(map(repr, [*self.words][:10]))


def label_rule(names: Iterable[str] | Mapping[str, float] | None) -> LabelRule:
    """The meaning of labels with words `names`: 0, 1, … in their order, or the numbers of a mapping. Raises UsageError."""
    if names is None:
        return LabelRule()
    if isinstance(names, str):
        raise UsageError(f"labels: {names!r} is a single word; give a list of all words")
    pairs = names.items() if isinstance(names, Mapping) else ((name, number) for number, name in enumerate(names))
    words = tuple((str(name), float(number)) for name, number in pairs)
    if len(dict(words)) < len(words) or len({number for _, number in words}) < len(words):
        raise UsageError("labels: a word or a number stands for two labels")
    return LabelRule(words=words)


def labels_of(y: object, labels: Labels, first_row: int = 0) -> np.ndarray:
    """float64 (n,): the numbers of Python's labels, the first of which is row `first_row`. Raises BadInputError."""
    array = np.asarray(y)
    if array.ndim != 1:
        raise BadInputError(f"y has {array.ndim} dimensions, not 1")
    return labels.of(
        array if array.dtype.kind in "biuf" else array.astype(object), lambda row: f"row {first_row + row} (0-based)"
    )


def _number_of(word: str) -> float | None:
    try:
        return float(word) if np.isfinite(float(word)) else None
    except ValueError:
        return None


def _word(label: object) -> str:
    """A label as it would be written in a label map: 3.0 is `3`."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)
