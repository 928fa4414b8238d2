"""Export to an estimator of scikit-learn's, which then needs nothing of streamcut."""

from __future__ import annotations

import io
from typing import Any

import joblib

from streamcut.errors import UsageError
from streamcut.exports.linear_form import linear_form
from streamcut.models.link import Sigmoid, Softmax
from streamcut.models.model import Model


def sklearn_estimator(model: Model) -> Any:
    """A fitted estimator with the weights of `model`: the same labels and probabilities, scores up to the order of summation.

    LogisticRegression where the loss has probabilities, LinearSVC for other classifiers; a LinearRegression whose `predict` gives
    the scores of a ranking or the answers of a regression, and a PoissonRegressor for counts. A linear form is all that they
    have in common with how the model was trained. Raises UsageError for models without one and for probabilities that were
    fitted afterwards, which these estimators cannot hold.
    """
    from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
    from sklearn.svm import LinearSVC

    form = linear_form(model, "scikit-learn")
    if model.link is not None:
        raise UsageError("scikit-learn's linear models cannot hold fitted probabilities; export a model that was not calibrated")
    estimator: Any
    if form.labels is None:
        counts = model.parameters.get("loss") == "poisson"
        estimator = PoissonRegressor() if counts else LinearRegression()
        estimator.coef_, estimator.intercept_ = form.weights[0].copy(), float(form.intercepts[0])
        if counts:
            estimator._base_loss = estimator._get_loss()
    else:
        probable = isinstance(model.own_link, Sigmoid | Softmax)
        estimator = LogisticRegression() if probable else LinearSVC()
        estimator.coef_, estimator.intercept_, estimator.classes_ = form.weights.copy(), form.intercepts.copy(), form.labels
    estimator.n_features_in_ = model.n_features
    return estimator


def sklearn_joblib(model: Model) -> bytes:
    """The same as joblib writes it. Whoever loads such a file trusts it: it is a pickle."""
    buffer = io.BytesIO()
    joblib.dump(sklearn_estimator(model), buffer)
    return buffer.getvalue()
