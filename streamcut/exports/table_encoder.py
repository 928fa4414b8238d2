"""A transformer of scikit-learn's that makes features of tables by a recipe, whatever that says."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin

from streamcut.data.inputs import framed, rows_of
from streamcut.io.formats.format import Raw
from streamcut.io.recipe.recipe import Recipe
from streamcut.prediction import warn_of


class TableEncoder(TransformerMixin, BaseEstimator):
    """Rows of a table, as frames or dicts, as a CSR matrix of `n_features`; the recipe is there, and nothing is fitted."""

    def __init__(self, recipe: Recipe, n_features: int) -> None:
        self.recipe = recipe
        self.n_features = n_features

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Nothing is to be done."""
        self.n_features_in_ = len(self.columns)
        return self

    @property
    def columns(self) -> list[str]:
        """The columns that rows have to have."""
        assert self.recipe.table is not None
        return [column.name for column in self.recipe.table.columns]

    def transform(self, X: Any) -> sp.csr_array:
        """float64 (n, n_features); unseen values are warned of. Raises BadInputError as `streamcut.predict` does."""
        raw, parts = Raw(labelled=False), []
        for chunk in rows_of(framed(X), self.recipe, raw):
            values = np.ones(len(chunk.indices)) if chunk.data is None else chunk.data
            parts.append(sp.csr_array((values, chunk.indices, chunk.indptr), shape=(chunk.n_rows, self.n_features)))
        warn_of(raw.unseen)
        return sp.vstack(parts, format="csr") if len(parts) > 1 else parts[0]
