"""Likely mistakes in a table, found before training: constant columns, columns that reveal the label, rare labels."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from streamcut.errors import given
from streamcut.foundation.chunk import copied
from streamcut.io.dataset import Dataset
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.recipe.table import ABSENT, NUMERIC, TEXT
from streamcut.io.row_view import HeldOut, held_out_view

_SAMPLE, _ENTRIES = 50_000, 1 << 19  # the most rows held out, on which columns are measured, and entries of these
_TELLS = 0.999  # a column with a larger area under the curve reveals the label
_PART = 0.2  # fraction of the rows of a store
_EACH = 10  # rows of each class needed to report that
_FEW = 20  # rows of a class
_SAME = 1e-12  # of the mean square: smaller variances are rounding errors
_LEAST = 100  # rows needed to judge columns
_KEY = re.compile(r"(?:[^=\\]|\\.)*=")  # prefix of the key of a category


def remarks(data: Dataset, positive: float | None = None) -> list[str]:
    """A sentence for errors.spelled on each likely mistake in a store made from a table, with the remedy.

    positive   the positive label of two; None: the greater one

    Columns are fitted on four fifths of the rows and measured on the rest. Reads the rows once; no remarks on rows without labels
    or on other stores.
    """
    recipe, statistics = data.recipe, data.manifest.statistics
    if recipe is None or recipe.table is None or recipe.labels.none:
        return []
    labels = statistics.labels
    if positive is None and labels is not None and len(labels) == 2:
        positive = max(labels)
    found = _of_labels(recipe, labels)
    if recipe.names is None or statistics.n_rows < _LEAST:
        return found
    return [*found, *_of_columns(*held_out_view(data, HeldOut(_PART, rows=statistics.n_rows)), positive)]


def _of_labels(recipe: Recipe, labels: dict[float, int] | None) -> list[str]:
    found = []
    names = recipe.labels.names
    alike = defaultdict(list)
    for word in names.values():
        alike[word.strip().casefold()].append(word)
    for words in alike.values():
        if len(words) > 1:
            found.append(f"labels {' and '.join(map(repr, words))} are spelled alike; if they are one, correct the data")
    if labels is not None and (names or all(label.is_integer() for label in labels)):
        few = [(names.get(label, f"{label:g}"), count) for label, count in labels.items() if count < _FEW]
        if few and len(labels) <= 1000:
            said = ", ".join(f"{word} {count}" for word, count in few[:5])
            more = f" and {len(few) - 5} others" if len(few) > 5 else ""
            found.append(f"few rows of a label ({said}{more}): measures of them are unreliable")
    return found


def _of_columns(training: Dataset, validation: Dataset, positive: float | None) -> list[str]:
    recipe = training.recipe
    assert recipe is not None
    assert recipe.table is not None
    assert recipe.names is not None
    total, ours, spread = _counts(training, len(recipe.names), positive)
    owner = _owners(recipe)
    columns = list(zip(recipe.table.columns, _of_each(owner, len(recipe.table.columns)), strict=True))
    rows, found = training.manifest.statistics.n_rows, []
    constant = set()
    for column, own in columns:
        present = own[total[own] > 0]
        numeric = column.role == NUMERIC
        same = len(present) == 1 and total[present[0]] == rows
        if not len(present) or (same and (not numeric or spread[present[0]] <= _SAME)):
            constant.add(column.name)
            found.append(f"column {column.name!r} is constant: uninformative ({given('drop', column.name)} leaves it out)")
    if positive is None:
        return found
    rows_of, features_of, values, y = _sample(validation)
    truth = y == positive
    if min(truth.sum(), len(truth) - truth.sum()) < _EACH:
        return found
    base = ours.sum() / max(total.sum(), 1)
    worth = (ours + base) / (total + 1.0) - base
    for column, own in columns:
        if column.role == NUMERIC:
            worth[own] = 1.0
            owner[[feature for feature in own.tolist() if recipe.names[feature] != recipe.table.key(column.name)]] = -1
    terms = worth[features_of] * values
    for column, own in zip(recipe.table.columns, _of_each(owner[features_of], len(recipe.table.columns)), strict=True):
        if column.role == TEXT or column.name in constant:
            continue
        scores = np.bincount(rows_of[own], terms[own], minlength=len(y))
        area = area_under_curve(scores, truth)
        if max(area, 1.0 - area) > _TELLS:
            found.append(
                f"column {column.name!r} alone tells the label (area under the curve {max(area, 1.0 - area):.4f}): is it known "
                f"before the label is? {given('drop', column.name)} leaves it out"
            )
    return found


def _counts(training: Dataset, n_features: int, positive: float | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(rows with each feature, those with the positive label among them, the variance of its values relative to their mean
    square), float64 (features)."""
    total, ours, buffers = np.zeros(n_features), np.zeros(n_features), training.buffers()
    sums, squares = np.zeros(n_features), np.zeros(n_features)
    for shard in range(len(training.manifest.shards)):
        chunk = training.read(shard, buffers)
        total += np.bincount(chunk.indices, minlength=n_features)
        values = np.ones(len(chunk.indices)) if chunk.data is None else np.asarray(chunk.data, np.float64)
        sums += np.bincount(chunk.indices, values, minlength=n_features)
        squares += np.bincount(chunk.indices, values * values, minlength=n_features)
        if positive is not None:
            ours += np.bincount(chunk.indices, np.repeat(chunk.y == positive, np.diff(chunk.indptr)), minlength=n_features)
    several = np.maximum(total, 1.0)
    return total, ours, 1.0 - (sums / several) ** 2 / np.maximum(squares / several, np.finfo(float).tiny)


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


def _of_each(owner: np.ndarray, columns: int) -> Iterator[np.ndarray]:
    """Of each column the places in `owner` that are its own, increasing."""
    order = np.argsort(owner, kind="stable")
    ends = np.searchsorted(owner[order], np.arange(columns + 1))
    return (order[start:stop] for start, stop in pairwise(ends.tolist()))


def _sample(data: Dataset) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(row, feature, value) of the entries of the first rows, and the labels of these rows."""
    pieces, labels, rows, entries = [], [], 0, 0
    for shard in range(len(data.manifest.shards)):
        if rows >= _SAMPLE or entries >= _ENTRIES:
            break
        chunk = data.read(shard)
        most = int(np.searchsorted(chunk.indptr - chunk.indptr[0], _ENTRIES - entries))
        chunk = copied(chunk.rows(0, min(chunk.n_rows, _SAMPLE - rows, max(1, most))))
        values = np.ones(chunk.nnz, np.float32) if chunk.data is None else chunk.data
        pieces.append((rows + np.repeat(np.arange(chunk.n_rows), np.diff(chunk.indptr)), chunk.indices, values))
        labels.append(chunk.y)
        rows, entries = rows + chunk.n_rows, entries + chunk.nnz
    of_rows, of_features, values = (np.concatenate(each) for each in zip(*pieces, strict=True))
    return of_rows, of_features, values, np.concatenate(labels)


def area_under_curve(scores: np.ndarray, positive: np.ndarray) -> float:
    """The fraction of pairs of a positive and a negative row that scores, float64 (n), rank correctly; ties count half."""
    _, codes = np.unique(scores, return_inverse=True)
    ups = np.bincount(codes, positive)
    downs = np.bincount(codes, ~positive, minlength=len(ups))
    below = np.cumsum(downs) - downs
    return float(ups @ (below + downs / 2) / (positive.sum() * (~positive).sum()))
