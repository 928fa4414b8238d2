"""Export to a scikit-learn estimator, which needs no streamcut, or warns that it does."""

from __future__ import annotations

import io
import logging
from contextlib import suppress
from typing import Any

import joblib
import numpy as np

from streamcut.errors import UsageError
from streamcut.exports.linear_form import LinearForm, linear_form
from streamcut.models.link import Odds, OwnLink
from streamcut.models.model import Model

log = logging.getLogger(__name__)


def sklearn_estimator(model: Model, link: OwnLink | None) -> Any:
    """A fitted estimator with the weights of `model`: the same labels and probabilities, scores up to the order of summation.

    LogisticRegression if the loss has probabilities, one per class in a OneVsRestClassifier if trained one-vs-rest, LinearSVC
    for other classifiers; a LinearRegression whose `predict` gives the scores of a ranking or the answers of a regression, and
    a PoissonRegressor for counts. They share only the linear form with the trained model. A model of tables becomes a Pipeline
    that takes frames with the columns of the training. Raises UsageError for models without a linear form.
    """
    form = linear_form(model, "scikit-learn", link)
    if model.recipe is None or model.recipe.form == "numbers":
        return estimator_of(form)
    from sklearn.pipeline import Pipeline

    if model.recipe.table is None:
        raise UsageError(f"scikit-learn has no transformer for {model.recipe.in_words()}; leave it out: --without-recipe")
    from streamcut.exports.table_encoder import TableEncoder

    log.warning("the Pipeline needs streamcut wherever it is loaded, to encode tables")
    columns = TableEncoder(model.recipe, model.n_features).fit()
    return Pipeline([("columns", columns), ("model", estimator_of(form))])


def estimator_of(form: LinearForm) -> Any:
    """The estimator alone."""
    from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
    from sklearn.svm import LinearSVC

    if isinstance(form.link, Odds):
        return _one_for_each(form)
    estimator: Any
    if form.labels is None:
        estimator = PoissonRegressor() if form.exponential else LinearRegression()
        estimator.coef_, estimator.intercept_ = form.weights[0].copy(), float(form.intercepts[0])
        if form.exponential:
            estimator._base_loss = estimator._get_loss()
    else:
        estimator = LinearSVC() if form.link is None else LogisticRegression()
        estimator.coef_, estimator.intercept_, estimator.classes_ = form.weights.copy(), form.intercepts.copy(), form.labels
    estimator.n_features_in_ = form.weights.shape[1]
    return estimator


def _one_for_each(form: LinearForm) -> Any:
    """A one-vs-rest classifier, whose probabilities are normalised to sum 1."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.preprocessing import LabelBinarizer

    estimator = OneVsRestClassifier(LogisticRegression())
    estimator.label_binarizer_ = LabelBinarizer(sparse_output=True).fit(form.labels)
    estimator.estimators_ = []
    for weights, intercept in zip(form.weights, form.intercepts, strict=True):
        each = LogisticRegression()
        each.coef_, each.intercept_, each.classes_ = weights[None, :].copy(), np.array([intercept]), np.array([0, 1])
        each.n_features_in_ = form.weights.shape[1]
        estimator.estimators_.append(each)
    with suppress(AttributeError):  # older releases read label_binarizer_
        estimator.classes_ = form.labels
    estimator.n_features_in_ = form.weights.shape[1]
    return estimator


def sklearn_joblib(model: Model, link: OwnLink | None) -> bytes:
    """The same in joblib's format. Loading such a file means trusting it: it is a pickle."""
    buffer = io.BytesIO()
    joblib.dump(sklearn_estimator(model, link), buffer)
    return buffer.getvalue()
