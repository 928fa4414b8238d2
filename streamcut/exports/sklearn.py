"""Export to a scikit-learn estimator, which needs no streamcut, or warns that it does."""

from __future__ import annotations

import io
import logging
from contextlib import suppress
from typing import Any

import joblib
import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import LabelBinarizer
from sklearn.svm import LinearSVC

from streamcut.errors import UsageError
from streamcut.exports.linear_form import LinearForm, linear_form
from streamcut.exports.table_encoder import TableEncoder
from streamcut.models.link import Odds, OwnLink
from streamcut.models.model import Model

log = logging.getLogger(__name__)


def content(model: Model, link: OwnLink | None) -> bytes:
    """A fitted estimator with the weights of `model`, by joblib: the same labels and probabilities, scores up to the order of
    summation. Loading such a file means trusting it: it is a pickle.

    LogisticRegression if the loss has probabilities, one per class in a OneVsRestClassifier if trained one-vs-rest, LinearSVC
    for other classifiers; a LinearRegression whose `predict` gives the scores of a ranking or the answers of a regression, and
    a PoissonRegressor for counts. A model of tables becomes a Pipeline that takes frames with the columns of the training.
    Raises UsageError for models without a linear form.
    """
    estimator = _estimator(linear_form(model, "scikit-learn", link))
    if model.recipe is not None and model.recipe.form != "numbers":
        if model.recipe.table is None:
            raise UsageError(f"scikit-learn has no transformer for {model.recipe.in_words()}; leave it out: --without-recipe")
        log.warning("the Pipeline needs streamcut wherever it is loaded, to encode tables")
        estimator = Pipeline([("columns", TableEncoder(model.recipe, model.n_features).fit()), ("model", estimator)])
    buffer = io.BytesIO()
    joblib.dump(estimator, buffer)
    return buffer.getvalue()


def _estimator(form: LinearForm) -> Any:
    if isinstance(form.link, Odds):  # one-vs-rest, its probabilities normalised to sum 1
        estimator: Any = OneVsRestClassifier(LogisticRegression())
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


def _fitted(estimator: Any, weights: np.ndarray, intercept: Any, classes: np.ndarray | None = None) -> Any:
    estimator.coef_, estimator.intercept_, estimator.n_features_in_ = weights, intercept, weights.shape[-1]
    if classes is not None:
        estimator.classes_ = classes
    return estimator
