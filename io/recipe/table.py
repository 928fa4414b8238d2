"""The part of a table's recipe about its columns."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Self

from streamcut.errors import UsageError

NUMERIC, BINNED, CATEGORICAL, TEXT, TIME = ROLES = ("numeric", "binned", "categorical", "text", "time")
BOOLEAN, INTEGER, NUMBER, BYTES = "boolean", "integer", "number", "bytes"
TYPES = (BOOLEAN, INTEGER, NUMBER, TIME, TEXT, BYTES)
BOOLEANS = {spelling: value for value in ("true", "false") for spelling in (value, value.title(), value.upper())}
MISSING = ("own", "zero", "error")
MISSING_LABELS = ("error", "skip")
UNFIT = ("values of ", "features that ")  # prefixes of the counters of misfits
TEXT_WEIGHTS = ("counts", "tfidf")
LABELS_AS = ("auto", "numbers", "words")
TIME_PARTS = ("year", "quarter", "month", "week", "day", "weekday", "hour", "minute")
ABSENT = " is missing"  # after the name of a column: the feature of a missing value


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column that features are made of.

    name    of the column
    role    "numeric": its value is a feature's value; "binned": a category for the interval between `edges` that holds it;
            "categorical": a category; "text": words; "time": categories of its `parts`
    bins    the number requested; `edges` (increasing) are those of the data, empty until then
    ngrams  (least, most) neighbouring words of a text; `characters`: runs of characters instead
    bare    the words of a text are keys without the column's name as prefix
    type    of its values, one of TYPES, which gives them one spelling in every container; None until it is found
    centre, spread   a number x has the value (x − centre) / spread, and a missing one is 0
    documents   > 0: the words of a text have tf-idf weights (1 + ln count) (1 + ln((1 + documents) / (1 + frequency))), and a
            row has length 1; `frequencies` holds, in feature order, the number of documents with each word
    """

    name: str
    role: str
    bins: int = 0
    edges: tuple[float, ...] = ()
    parts: tuple[str, ...] = ()
    ngrams: tuple[int, int] = (1, 1)
    characters: bool = False
    bare: bool = False
    type: str | None = None
    centre: float = 0.0
    spread: float = 1.0
    documents: int = 0
    frequencies: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        sound = (
            self.role in ROLES
            and (self.type is None or self.type in TYPES)
            and (self.role == BINNED) == (self.bins > 1)
            and (self.role == TIME) == bool(self.parts)
            and 1 <= self.ngrams[0] <= self.ngrams[1] <= 100
            and list(self.edges) == sorted(set(self.edges))
            and 0.0 < self.spread < math.inf
        )
        if not sound:
            raise ValueError(f"column {self.name!r} cannot be {self.role!r} like that")

    def in_words(self) -> str:
        """Its role, as displayed."""
        if self.role == BINNED:
            return f"numeric in {len(self.edges) + 1 if self.edges else self.bins} bins"
        if self.role == TIME:
            return f"time: {', '.join(self.parts)}"
        if self.role == TEXT:
            runs = "-".join(map(str, sorted(set(self.ngrams))))
            what = "characters" if self.characters else "words"
            said = f"text: {what}" if self.ngrams == (1, 1) and not self.characters else f"text: runs of {runs} {what}"
            return f"{said}, tf-idf" if self.documents else said
        return f"{self.role}, standardised" if (self.centre, self.spread) != (0.0, 1.0) else self.role

    @property
    def weighed(self) -> bool:
        """Whether its values differ from those of the table."""
        return self.documents > 0 or (self.centre, self.spread) != (0.0, 1.0)

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        """From JSON; ValueError or TypeError if malformed."""
        tuples: dict[str, Any] = {
            name: tuple(record[name]) for name in ("edges", "parts", "ngrams", "frequencies") if name in record
        }
        if "ngrams" in tuples and len(tuples["ngrams"]) != 2:
            raise ValueError("ngrams are two numbers")
        return cls(**{**record, **tuples})


@dataclass(frozen=True, slots=True)
class Spelling:
    """How to read values as text: whether a first line names the columns, and texts that stand for no value (others: NULLS)."""

    header: bool = True
    nulls: tuple[str, ...] = ()


def missing_in(option: str) -> tuple[str, tuple[str, ...]]:
    """(one of MISSING, spellings of missing values) of the option --missing. Raises UsageError for two of MISSING."""
    listed = [text.strip() for text in option.split(",") if text.strip()]
    chosen = [text for text in listed if text in MISSING]
    if len(chosen) > 1:
        raise UsageError(f"--missing: {' and '.join(chosen)} exclude each other")
    return (chosen or [MISSING[0]])[0], tuple(text for text in listed if text not in MISSING)


@dataclass(frozen=True, slots=True)
class Table:
    """How a row of a table becomes features: `columns` in the order of the table, then `crosses` of two categories or more.

    missing     "own": a missing value is a category, or a 0 and an indicator; "zero": it has no feature; "error"
    qid, weight   columns with the group and the weight of a row
    nulls       texts (and the numbers that they spell) that stand for no value, in every column
    unnamed     the number of columns of text without a line of names, where these are 0, 1, …; 0: there are names
    """

    columns: tuple[TableColumn, ...]
    crosses: tuple[tuple[str, ...], ...] = ()
    missing: str = "own"
    qid: str | None = None
    weight: str | None = None
    nulls: tuple[str, ...] = ()
    unnamed: int = 0

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        categories = {column.name for column in self.columns if column.role in (CATEGORICAL, BINNED)}
        if self.missing not in MISSING or len(set(names)) < len(names) or self.unnamed < 0:
            raise ValueError("columns of a table")
        if any(len(cross) < 2 or not set(cross) <= categories for cross in self.crosses):
            raise ValueError("a cross has two categories or more")

    @property
    def spelling(self) -> Spelling:
        return Spelling(not self.unnamed, self.nulls)

    def key(self, name: str) -> str:
        """The name of a column as it appears in keys: with a backslash before each `*`, `=` and backslash."""
        return re.sub(r"[*=\\]", r"\\\g<0>", name)

    def prefixes(self) -> list[str]:
        """Prefixes of the keys of each column, part of a time and cross; the whole keys of numbers."""
        prefixes = []
        for column in self.columns:
            name = self.key(column.name)
            if column.role == NUMERIC:
                prefixes.append(name)
            elif column.role == TIME:
                prefixes += [f"{name}.{part}=" for part in column.parts]
            elif not column.bare:
                prefixes.append(f"{name}=")
            if self.missing == "own" and column.role != TEXT:
                prefixes.append(f"{name}{ABSENT}")
        return prefixes + ["*".join(map(self.key, cross)) + "=" for cross in self.crosses]

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        """From JSON; ValueError or TypeError if malformed."""
        columns = tuple(TableColumn.from_record(column) for column in record["columns"])
        crosses = tuple(tuple(str(name) for name in cross) for cross in record.get("crosses", ()))
        return cls(**{**record, "columns": columns, "crosses": crosses, "nulls": tuple(map(str, record.get("nulls", ())))})


_DENIED = {">": "<=", "<": ">=", ">=": "<", "<=": ">", "==": "!=", "!=": "=="}


@dataclass(frozen=True, slots=True)
class Comparison:
    """A label that is the outcome of a comparison: `delay>15`."""

    column: str
    operator: str
    value: str

    def __post_init__(self) -> None:
        if self.operator not in _DENIED:
            raise ValueError(f"operator {self.operator!r}")

    def __str__(self) -> str:
        return f"{self.column}{self.operator}{self.value}"

    @property
    def opposite(self) -> str:
        """The negated comparison."""
        return f"{self.column}{_DENIED[self.operator]}{self.value}"

    @classmethod
    def parsed(cls, text: str) -> Self | None:
        """`delay>15` or `status=late` as a comparison; None if it is not one."""
        match = re.fullmatch(r"\s*(.+?)\s*(>=|<=|!=|==|=|>|<)\s*(.+?)\s*", text)
        if match is None:
            return None
        return cls(match[1], "==" if match[2] == "=" else match[2], match[3])
