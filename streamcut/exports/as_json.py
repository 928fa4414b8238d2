"""Export to JSON: the nonzero weights by feature, and all else that scoring needs."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np

from streamcut.errors import UsageError
from streamcut.exports.linear_form import LinearForm, linear_form
from streamcut.exports.raw_form import Category, Coding, Cross, Number, raw_form
from streamcut.io.tables.arrow import NULLS
from streamcut.models.link import Odds, OwnLink
from streamcut.models.model import Model


def json_weights(model: Model, link: OwnLink | None) -> bytes:
    """One JSON object that says how to score a row: score_k = intercepts[k] + Σ_j x[features[j]] · weights[j][k].

    Specified in docs/model-json.md.

    exponential   the answer is e^score: a mean count
    labels        (negative, positive) for one score, else one a score; null: the score is the answer
    features      indices, from 0, of the features that have a weight
    names         their names, if features have names; else left out
    weights       a list of K numbers for each feature
    link          {"A", "B"}: P(positive) = 1 / (1 + exp(A·s + B)); {"scale", "offsets"}: softmax of scale·s + offsets;
                  {"odds": true}: P(k) is the share of 1 / (1 + exp(−s_k)) in their sum; else null
    columns       how columns of a table become features; null: they are numbers as given, or only the recipe can tell
    missing    in such a table: "own", "zero" or "error"; nulls: texts that stand for a missing number or boolean
    recipe        how rows become features, as the model keeps it; null: they are numbers as given

    Raises UsageError for a model without a linear form.
    """
    form = linear_form(model, "this JSON", link)
    used = np.flatnonzero(form.weights.any(axis=0))
    link = form.link
    names = None if model.recipe is None else model.recipe.names
    record = {
        "format": "streamcut weights",
        "version": 2,
        "task": model.task,
        "labels": None if form.labels is None else form.labels.tolist(),
        "exponential": form.exponential,
        "n_features": model.n_features,
        "intercepts": form.intercepts.tolist(),
        "features": used.tolist(),
        **({} if names is None else {"names": [names[j] for j in used.tolist()]}),
        "weights": form.weights[:, used].T.tolist(),
        "link": None if link is None else {"odds": True} if isinstance(link, Odds) else asdict(link),
        **_columns(model, form),
        "recipe": None if model.recipe is None else json.loads(model.recipe.to_json()),
    }
    return json.dumps(record, allow_nan=False).encode() + b"\n"


def _columns(model: Model, form: LinearForm) -> dict[str, Any]:
    """The columns of a table; nothing if only the recipe can encode them."""
    try:
        raw = raw_form(model, form, "json")
    except UsageError:
        raw = None
    if raw is None:
        return {"columns": None, "missing": None, "nulls": None}
    return {"columns": [_part(part) for part in raw.parts], "missing": raw.missing, "nulls": sorted(NULLS)}


def _part(part: Number | Category | Cross) -> dict[str, Any]:
    if isinstance(part, Number):
        return {"kind": "number", **{name: _known(value) for name, value in asdict(part).items()}}
    if isinstance(part, Category):
        features = [_known(feature) for feature in part.features]
        return {"kind": "category", **_coding(part.coding), "features": features, "absent": _known(part.absent)}
    features = [[*codes, feature] for codes, feature in part.features.items()]
    return {"kind": "cross", "of": [_coding(coding) for coding in part.codings], "features": features}


def _coding(coding: Coding) -> dict[str, Any]:
    if coding.edges is not None:
        return {"column": coding.column, "type": coding.type, "edges": list(coding.edges)}
    return {"column": coding.column, "type": coding.type, "words": list(coding.words)}


def _known(value: Any) -> Any:
    """null for a missing feature."""
    return None if value == -1 and isinstance(value, int) else value
