"""Export to a scikit-learn estimator, and the transformer of a Pipeline that encodes tables by a recipe, or learns one."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import joblib
import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import LabelBinarizer
from sklearn.svm import LinearSVC

from streamcut.data.inputs import rows_of
from streamcut.errors import UsageError
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.shown import warn
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.formats.registry import FRAME, Raw
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.sources.lazy import framed, is_frame
from streamcut.io.sources.source import Sizes
from streamcut.models.link import Odds
from streamcut.models.model import Model
from streamcut.prediction import warn_of

if TYPE_CHECKING:
    from streamcut.exports.export import LinearForm

log = logging.getLogger(__name__)


def content(model: Model, form: LinearForm) -> bytes:
    """A fitted estimator with the weights of `model`, by joblib: the same labels and probabilities, scores up to the order of
    summation. Loading such a file means trusting it: it is a pickle.

    LogisticRegression if the loss has probabilities, one per class in a OneVsRestClassifier if trained one-vs-rest, LinearSVC
    for other classifiers; a LinearRegression whose `predict` gives the scores of a ranking or the answers of a regression, and
    a PoissonRegressor for counts. A model of tables becomes a Pipeline that takes frames with the columns of the training.
    """
    estimator = _estimator(form)
    if model.recipe is not None and model.recipe.form != "numbers":
        if model.recipe.table is None:
            raise UsageError(f"scikit-learn has no transformer for {model.recipe.in_words()}; leave it out: --without-recipe")
        log.warning("the Pipeline needs streamcut wherever it is loaded, to encode tables")
        estimator = Pipeline([("columns", TableEncoder(model.recipe, model.n_features).fit()), ("model", estimator)])
    buffer = io.BytesIO()
    joblib.dump(estimator, buffer)
    return buffer.getvalue()


def _estimator(form: LinearForm) -> BaseEstimator:
    if isinstance(form.link, Odds):  # one-vs-rest, its probabilities normalised to sum 1
        estimator = OneVsRestClassifier(LogisticRegression())
        estimator.label_binarizer_ = LabelBinarizer(sparse_output=True).fit(form.labels)
        estimator.estimators_ = [
            _fitted(LogisticRegression(), weights[None, :].copy(), np.array([intercept]), np.array([0, 1]))
            for weights, intercept in zip(form.weights, form.intercepts, strict=True)
        ]
        estimator.n_features_in_ = form.weights.shape[1]
        with suppress(AttributeError):  # older releases read label_binarizer_
            estimator.classes_ = form.labels
        return estimator
    if form.labels is not None:
        machine = LinearSVC() if form.link is None else LogisticRegression()
        return _fitted(machine, form.weights.copy(), form.intercepts.copy(), form.labels)
    estimator = PoissonRegressor() if form.exponential else LinearRegression()
    if form.exponential:
        estimator._base_loss = estimator._get_loss()
    return _fitted(estimator, form.weights[0].copy(), float(form.intercepts[0]))


def _fitted(
    estimator: BaseEstimator, weights: np.ndarray, intercept: np.ndarray | float, classes: np.ndarray | None = None
) -> BaseEstimator:
    estimator.coef_, estimator.intercept_, estimator.n_features_in_ = weights, intercept, weights.shape[-1]
    if classes is not None:
        estimator.classes_ = classes
    return estimator


class TableEncoder(TransformerMixin, BaseEstimator):
    """Rows of a table, as frames or dicts, as a CSR matrix of `n_features`; nothing is fitted, as the recipe exists."""

    def __init__(self, recipe: Recipe, n_features: int) -> None:
        self.recipe = recipe
        self.n_features = n_features

    def fit(self, X: object = None, y: object = None) -> Self:
        """Does nothing."""
        self.n_features_in_ = len(self.columns)
        return self

    @property
    def columns(self) -> list[str]:
        """The columns that rows must have."""
        assert self.recipe.table is not None
        return [column.name for column in self.recipe.table.columns]

    def transform(self, X: object) -> sp.csr_array:
        """float64 (n, n_features); warns of unseen values. Raises BadInputError as `streamcut.predict` does."""
        raw = Raw(labelled=False)
        matrix = _matrix(rows_of(framed(X), self.recipe, raw), self.n_features)
        warn_of(raw.unseen)
        return matrix


def learned(X: object, convert: Mapping[str, Any]) -> tuple[TableEncoder, sp.csr_array]:
    """(an encoder for rows like those of the frame `X`, these rows encoded), by a recipe as `streamcut.fit` makes it.

    convert   more options of `streamcut.convert`: roles of columns, crosses, hash_bits, missing, …

    Numbers are standardised, missing ones get a separate feature, long texts have tf-idf weights; columns that look like
    identifiers are left out with a warning. Raises UsageError for anything but a frame and for unsuitable options.
    """
    X = framed(X)
    if hasattr(X, "reset_index"):
        X = X.reset_index(drop=True)  # else its index is a column
    if not is_frame(X):
        raise UsageError(
            f"recipe: features are made of frames (pandas, polars, Arrow) and rows as dicts, not of {type(X).__name__}"
        )
    if taken := sorted({"labels", "qid", "weights", "recipe"} & set(convert)):
        raise UsageError(f"recipe: {taken[0]} is not an option here; labels, groups and weights are arguments of `fit`")
    rows = FRAME.open([X], ConvertOptions(**{"labels": "none", **convert}), "")
    rows.begin(Sizes(threads=1))
    chunks = [chunk for chunk, _ in rows.blocks()]
    recipe = rows.recipe()
    assert recipe is not None
    for sentence in rows.notes:
        warn(sentence)
    encoder = TableEncoder(recipe, 1 << recipe.hash_bits if recipe.hash_bits is not None else len(recipe.names or ())).fit()
    return encoder, _matrix(chunks, encoder.n_features)


def _matrix(chunks: Iterable[Chunk], n_features: int) -> sp.csr_array:
    parts = []
    for chunk in chunks:
        values = np.ones(len(chunk.indices)) if chunk.data is None else chunk.data
        parts.append(sp.csr_array((values, chunk.indices, chunk.indptr), shape=(chunk.n_rows, n_features)))
    return sp.vstack(parts, format="csr") if len(parts) > 1 else parts[0]
