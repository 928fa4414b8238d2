"""Export to JSON: the nonzero weights by feature, and all else that scoring needs."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np

from streamcut.exports.linear_form import linear_form
from streamcut.models.link import Odds, OwnLink
from streamcut.models.model import Model


def content(model: Model, link: OwnLink | None) -> bytes:
    """One JSON object that says how to score a row: score_k = intercepts[k] + Σ_j x[features[j]] · weights[j][k].

    Specified in docs/model-json.md.

    exponential   the answer is e^score: a mean count
    labels        (negative, positive) for one score, else one a score; null: the score is the answer
    features      indices, from 0, of the features that have a weight
    names         their names, if features have names; else left out
    weights       a list of K numbers for each feature
    link          {"A", "B"}: P(positive) = 1 / (1 + exp(A·s + B)); {"scale", "offsets"}: softmax of scale·s + offsets;
                  {"odds": true}: P(k) is the share of 1 / (1 + exp(−s_k)) in their sum; else null
    recipe        how rows become features, as the model keeps it; null: they are numbers as given

    Raises UsageError for a model without a linear form.
    """
    form = linear_form(model, "this JSON", link)
    used = np.flatnonzero(form.weights.any(axis=0))
    link = form.link
    names = None if model.recipe is None else model.recipe.names
    record = {
        "format": "streamcut weights",
        "version": 3,
        "task": model.task,
        "labels": None if form.labels is None else form.labels.tolist(),
        "exponential": form.exponential,
        "n_features": model.n_features,
        "intercepts": form.intercepts.tolist(),
        "features": used.tolist(),
        **({} if names is None else {"names": [names[j] for j in used.tolist()]}),
        "weights": form.weights[:, used].T.tolist(),
        "link": None if link is None else {"odds": True} if isinstance(link, Odds) else asdict(link),
        "recipe": None if model.recipe is None else json.loads(model.recipe.to_json()),
    }
    return json.dumps(record, allow_nan=False).encode() + b"\n"
