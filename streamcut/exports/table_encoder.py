"""A scikit-learn transformer that encodes tables by any recipe, and learns recipes from frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin

from streamcut.data.inputs import rows_of
from streamcut.errors import UsageError
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.shown import warn
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.formats.format import Raw
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.sources.lazy import framed, is_frame
from streamcut.prediction import warn_of


class TableEncoder(TransformerMixin, BaseEstimator):
    """Rows of a table, as frames or dicts, as a CSR matrix of `n_features`; the recipe is given, and nothing is fitted."""

    def __init__(self, recipe: Recipe, n_features: int) -> None:
        self.recipe = recipe
        self.n_features = n_features

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Does nothing."""
        self.n_features_in_ = len(self.columns)
        return self

    @property
    def columns(self) -> list[str]:
        """The columns that rows must have."""
        assert self.recipe.table is not None
        return [column.name for column in self.recipe.table.columns]

    def transform(self, X: Any) -> sp.csr_array:
        """float64 (n, n_features); warns of unseen values. Raises BadInputError as `streamcut.predict` does."""
        raw = Raw(labelled=False)
        found = _matrix(rows_of(framed(X), self.recipe, raw), self.n_features)
        warn_of(raw.unseen)
        return found


def learned(X: Any, convert: Mapping[str, Any]) -> tuple[TableEncoder, sp.csr_array]:
    """(an encoder for rows like those of the frame `X`, these rows encoded), by a recipe as `streamcut.fit` makes it.

    convert   more options of `streamcut.convert`: roles of columns, crosses, hash_bits, missing, …

    Numbers are standardised, missing ones have a feature of their own, long texts have tf-idf weights; columns that look like
    identifiers are left out with a warning. Raises UsageError for anything but a frame and for unsuitable options.
    """
    from streamcut.io.tables.frames import FrameFile
    from streamcut.io.tables.opening import OpenedTables

    X = framed(X)
    if hasattr(X, "reset_index"):
        X = X.reset_index(drop=True)  # else its index is a column
    if not is_frame(X):
        raise UsageError(
            f"recipe: features are made of frames (pandas, polars, Arrow) and rows as dicts, not of {type(X).__name__}"
        )
    if taken := sorted({"labels", "qid", "weights", "recipe"} & set(convert)):
        raise UsageError(f"recipe: {taken[0]} is not an option here; labels, groups and weights are arguments of `fit`")
    tables = OpenedTables([FrameFile(X)], ConvertOptions(**{"labels": "none", **convert}))
    rows = tables.rows(_BLOCK, _MOST, 1, grouped=False)
    chunks = [chunk for chunk, _ in rows.blocks()]
    recipe = rows.recipe()
    for sentence in tables.told:
        warn(sentence)
    encoder = TableEncoder(recipe, 1 << recipe.hash_bits if recipe.hash_bits is not None else len(recipe.names or ())).fit()
    return encoder, _matrix(chunks, encoder.n_features)


_BLOCK, _MOST = 1 << 20, 64 << 20  # bytes of a frame encoded at once, and of a row


def _matrix(chunks: Iterable[Chunk], n_features: int) -> sp.csr_array:
    parts = []
    for chunk in chunks:
        values = np.ones(len(chunk.indices)) if chunk.data is None else chunk.data
        parts.append(sp.csr_array((values, chunk.indices, chunk.indptr), shape=(chunk.n_rows, n_features)))
    return sp.vstack(parts, format="csr") if len(parts) > 1 else parts[0]
