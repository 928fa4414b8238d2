"""A conversion's result before it is written: how features are made, and the first rows as they would be."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streamcut.errors import BadInputError
from streamcut.foundation.chunk import Chunk, concatenate, copied
from streamcut.io.conversion.prepared import prepared
from streamcut.io.recipe.recipe import Recipe


@dataclass(frozen=True, slots=True)
class PreviewRow:
    """One row: its label (a word if labels are words; None: unlabelled), and {name or number of a feature: value}."""

    label: str | float | None
    features: dict[str | int, float]


@dataclass(frozen=True, slots=True)
class Preview:
    """The recipe as far as the rows read determine it, those rows, and a sentence for each guess worth knowing."""

    recipe: Recipe
    rows: tuple[PreviewRow, ...]
    told: tuple[str, ...] = ()


def preview(inputs: Any, output: str | os.PathLike, *, rows: int = 5, **options: Any) -> Preview:
    """What `convert` with the same arguments would make of the first rows; nothing is written.

    Features are numbered from 0 if they have no names. Raises what `convert` raises.
    """
    given = prepared(inputs, output, {**options, "on_error": "raise", "max_errors": None})
    chunks: list[Chunk] = []
    with closing(given.source.blocks()) as blocks:  # type: ignore[type-var]
        for chunk, _ in blocks:
            chunks.append(copied(chunk))
            if sum(part.n_rows for part in chunks) >= rows:
                break
    if not chunks:
        raise BadInputError("no rows in the input")
    whole = concatenate(chunks)
    recipe = given.source.recipe() or Recipe()
    if given.settings.feature_names is not None:
        recipe = replace(recipe, names=given.settings.feature_names)
    return Preview(recipe, tuple(_row(whole, row, recipe) for row in range(min(rows, whole.n_rows))), tuple(given.source.told))


def _row(chunk: Chunk, row: int, recipe: Recipe) -> PreviewRow:
    cut = slice(int(chunk.indptr[row]), int(chunk.indptr[row + 1]))
    values = np.ones(cut.stop - cut.start) if chunk.data is None else chunk.data[cut]
    names = recipe.names or ()
    found = zip(chunk.indices[cut].tolist(), values.tolist(), strict=True)
    features: dict[str | int, float] = {names[j] if j < len(names) else j: value for j, value in found}
    label = float(chunk.y[row])
    return PreviewRow(None if recipe.labels.none else recipe.labels.names.get(label, label), features)
