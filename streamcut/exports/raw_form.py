"""How raw rows are scored by a linear model of a table: a weight for each number, and for each word of each column.

It is what another program's format expresses column by column, without features in between. A recipe that hashes, splits texts
into words or times into parts has no raw form and is refused, naming the column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from streamcut.errors import UsageError
from streamcut.exports.linear_form import LinearForm
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.recipe.table import ABSENT, BINNED, BOOLEAN, CATEGORICAL, INTEGER, NUMBER, NUMERIC, TEXT, Column
from streamcut.io.tables.encoder import interval_names
from streamcut.io.tables.values import is_number
from streamcut.models.model import Model

_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_AT_EQUALS, _AT_STAR = (re.compile(rf"((?:[^{sign}\\]|\\.)*)[{sign}](.*)", re.DOTALL) for sign in "=*")
_TYPES = (TEXT, BOOLEAN, INTEGER, NUMBER)


@dataclass(frozen=True, slots=True)
class Coding:
    """The code of a value of a column: its index in `words`; with `edges` (increasing), the number of edges at most as large.

    type   of the column's values, as in recipes. For numeric types, a word that is a number stands for all its spellings
    """

    column: str
    type: str
    words: tuple[str, ...]
    edges: tuple[float, ...] | None = None

    @property
    def numbers(self) -> bool:
        return self.type in (INTEGER, NUMBER)


@dataclass(frozen=True, slots=True)
class Number:
    """A value x adds weight · (x − centre) / spread, a missing one `absent`: float64 (K,) both."""

    column: str
    type: str
    centre: float
    spread: float
    feature: int
    absent: int


@dataclass(frozen=True, slots=True)
class Category:
    """A value with the code i has the feature features[i] (−1: none), a missing one `absent`; any other has none."""

    coding: Coding
    features: tuple[int, ...]
    absent: int


@dataclass(frozen=True, slots=True)
class Cross:
    """Values with the codes (i, j, …) have the feature features[i, j, …]; where one is missing there is none."""

    codings: tuple[Coding, ...]
    features: dict[tuple[int, ...], int]


@dataclass(frozen=True)
class RawForm:
    """Scores are the form's intercepts plus the weights of the features of `parts`.

    missing   "own" and "zero": as in the parts; "error": a missing value is refused
    """

    form: LinearForm
    parts: tuple[Number | Category | Cross, ...]
    missing: str

    def weight(self, feature: int) -> np.ndarray:
        """float64 (K,), 0 for no feature."""
        W = self.form.weights
        return W[:, feature] if 0 <= feature < W.shape[1] else np.zeros(len(W))

    @property
    def columns(self) -> dict[str, str]:
        """The columns of a row, and their types."""
        found: dict[str, str] = {}
        for part in self.parts:
            for each in (part,) if isinstance(part, Number) else (part.coding,) if isinstance(part, Category) else part.codings:
                found[each.column] = each.type
        return found


def raw_form(model: Model, form: LinearForm, program: str) -> RawForm | None:
    """The raw form of a `model` whose rows are those of a table; None: its features are numbers as they are.

    Raises UsageError, naming the column, for what `program` cannot express.
    """
    recipe = model.recipe
    if recipe is None or recipe.form == "numbers":
        return None
    table = recipe.table
    if table is None or recipe.hash_bits is not None or recipe.names is None:
        raise UsageError(f"{program} cannot say what becomes of {recipe.in_words()}; {_OTHERWISE}")
    if not table.typed:
        raise UsageError(f"{program} cannot say how values are spelled by a recipe of an older version; {_OTHERWISE}")
    if table.nulls:
        raise UsageError(f"{program} cannot say that {', '.join(table.nulls)} (--missing) are missing values; {_OTHERWISE}")
    for column in table.columns:
        if column.role not in (NUMERIC, BINNED, CATEGORICAL) or (column.role == CATEGORICAL and column.type not in _TYPES):
            what = column.in_words() if column.role != CATEGORICAL else f"a category of type {column.type}"
            raise UsageError(f"{program} cannot say what becomes of column {column.name!r} ({what}); {_OTHERWISE}")
    return RawForm(form, tuple(_parts(recipe, program)), table.missing)


_OTHERWISE = "export it to one that keeps the recipe (compact, json), or the weights of the features alone: --without-recipe"


def _parts(recipe: Recipe, program: str) -> Iterator[Number | Category | Cross]:
    table, names = recipe.table, recipe.names
    assert table is not None
    assert names is not None
    at = {name: feature for feature, name in enumerate(names)}
    by_prefix: dict[str, dict[str, int]] = {}  # text before the first `=` outside a name: {text after it: feature}
    for name, feature in at.items():
        match = _AT_EQUALS.fullmatch(name)
        if match is not None:
            by_prefix.setdefault(match[1], {})[match[2]] = feature
    codings: dict[str, Coding] = {}
    crossed = {
        name: [*_words_in_crosses(table.crosses, by_prefix, table, name)] for name in {n for c in table.crosses for n in c}
    }
    for column in table.columns:
        key = table.key(column.name)
        absent = at.get(f"{key}{ABSENT}", -1) if table.missing == "own" else -1
        if column.role == NUMERIC:
            yield Number(column.name, column.type or NUMBER, column.centre, column.spread, at[key], absent)
            continue
        known = by_prefix.get(key, {})
        coding = codings[column.name] = _coding(column, {**known, **dict.fromkeys(crossed.get(column.name, ()), -1)}, program)
        yield Category(coding, tuple(known.get(word, -1) for word in coding.words), absent)
    for cross in table.crosses:
        places = [{word: i for i, word in enumerate(codings[name].words)} for name in cross]
        features = {}
        for key, feature in by_prefix.get("*".join(map(table.key, cross)), {}).items():
            words = _split(key)
            features[tuple(place[word] for place, word in zip(places, words, strict=True))] = feature
        yield Cross(tuple(codings[name] for name in cross), features)


def _words_in_crosses(crosses, by_prefix, table, name: str) -> Iterator[str]:
    """The words that the column `name` has in the keys of crosses."""
    for cross in crosses:
        for key in by_prefix.get("*".join(map(table.key, cross)), ()) if name in cross else ():
            yield _split(key)[cross.index(name)]


def _split(key: str) -> list[str]:
    """The words of a key of a cross."""
    found, match = [], _AT_STAR.fullmatch(key)
    while match is not None:
        found.append(match[1])
        key = match[2]
        match = _AT_STAR.fullmatch(key)
    return [_ESCAPED.sub(r"\1", word) for word in (*found, key)]


def _coding(column: Column, known: dict[str, int], program: str) -> Coding:
    assert column.type is not None
    if column.role == BINNED:
        return Coding(column.name, column.type, tuple(interval_names(column.edges)), column.edges)
    coding = Coding(column.name, column.type, tuple(known))
    if coding.numbers:
        numbers = [float(word) for word in known if is_number(word)]
        if len(set(numbers)) < len(numbers):
            twice = next(word for word in known if is_number(word) and numbers.count(float(word)) > 1)
            raise UsageError(
                f"{program} compares numbers as doubles, and column {column.name!r} has categories that are one as such, {twice} "
                f"among them; make it a column of texts, or {_OTHERWISE}"
            )
    return coding
