"""Likely mistakes in a table, found before training: constant columns, labels spelled alike, rare labels."""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np

from streamcut.errors import given
from streamcut.io.dataset import Dataset
from streamcut.io.features import feature_statistics
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.recipe.table import ABSENT, NUMERIC

_FEW = 20  # rows of a class
_SAME = 1e-12  # of the mean square: smaller variances are rounding errors
_LEAST = 100  # rows needed to judge columns
_KEY = re.compile(r"(?:[^=\\]|\\.)*=")  # prefix of the key of a category


def remarks(data: Dataset) -> list[str]:
    """A sentence for errors.spelled on each likely mistake in a store made from a table, with the remedy.

    No remarks on rows without labels or on other stores.
    """
    recipe, statistics = data.recipe, data.manifest.statistics
    if recipe is None or recipe.table is None or recipe.labels.none:
        return []
    notes = _of_labels(recipe, statistics.labels)
    if recipe.names is None or statistics.n_rows < _LEAST:
        return notes
    return [*notes, *_constant(data, recipe, len(recipe.names))]


def _of_labels(recipe: Recipe, labels: dict[float, int] | None) -> list[str]:
    notes = []
    names = recipe.labels.names
    alike = defaultdict(list)
    for word in names.values():
        alike[word.strip().casefold()].append(word)
    for words in alike.values():
        if len(words) > 1:
            notes.append(f"labels {' and '.join(map(repr, words))} are spelled alike; if they are one, correct the data")
    if labels is not None and (names or all(label.is_integer() for label in labels)):
        few = [(names.get(label, f"{label:g}"), count) for label, count in labels.items() if count < _FEW]
        if few and len(labels) <= 1000:
            said = ", ".join(f"{word} {count}" for word, count in few[:5])
            more = f" and {len(few) - 5} others" if len(few) > 5 else ""
            notes.append(f"few rows of a label ({said}{more}): measures of them are unreliable")
    return notes


def _constant(data: Dataset, recipe: Recipe, n_features: int) -> list[str]:
    """A sentence on each column that has one value in all rows."""
    assert recipe.table is not None
    statistics = feature_statistics(data)
    parts = statistics.nonzeros, statistics.total, statistics.squares
    count, sums, squares = (statistics.dense(part, n_features) for part in parts)
    several = np.maximum(count, 1.0)
    spread = 1.0 - (sums / several) ** 2 / np.maximum(squares / several, np.finfo(float).tiny)
    notes, owner = [], _owners(recipe)
    for number, column in enumerate(recipe.table.columns):
        present = np.flatnonzero((owner == number) & (count > 0))
        same = len(present) == 1 and count[present[0]] == data.manifest.statistics.n_rows
        if not len(present) or (same and (column.role != NUMERIC or spread[present[0]] <= _SAME)):
            notes.append(f"column {column.name!r} is constant: uninformative ({given('drop', column.name)} leaves it out)")
    return notes


def _owners(recipe: Recipe) -> np.ndarray:
    """The number of the column that each feature is of, −1 for crosses, int32 (features)."""
    assert recipe.table is not None
    table = recipe.table
    beginnings: dict[str, int] = {}
    for number, column in enumerate(table.columns):
        key = table.key(column.name)
        beginnings |= dict.fromkeys([f"{key}=", key, f"{key}{ABSENT}", *(f"{key}.{part}=" for part in column.parts)], number)
    bare = next((number for number, column in enumerate(table.columns) if column.bare), None)

    def of(name: str) -> int:
        match = _KEY.match(name)
        return beginnings.get(name, beginnings.get(match[0], -1) if match else -1)

    names = recipe.names or ()
    return np.full(len(names), bare, np.int32) if bare is not None else np.fromiter(map(of, names), np.int32, len(names))
