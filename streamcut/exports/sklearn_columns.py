"""The columns of a table as a scikit-learn ColumnTransformer, for Pipelines that need no streamcut."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from streamcut.errors import UsageError
from streamcut.exports.linear_form import LinearForm
from streamcut.exports.raw_form import Category, Number, RawForm, raw_form
from streamcut.io.recipe.table import BOOLEAN, BOOLEANS
from streamcut.io.tables.values import is_number
from streamcut.models.model import Model

Part = tuple[Any, list[Any], np.ndarray]  # a transformer, two values to fit it on, the weights (K, ·) of its features


def encoder_of(model: Model, form: LinearForm) -> tuple[Any, np.ndarray]:
    """(a fitted ColumnTransformer that takes frames of pandas, float64 (K, ·): the weights of its features).

    Numbers are scaled, and one that is missing (None, NaN, NA) has a feature of its own; categories are compared as they are,
    so columns must have the types that they had in training. Raises UsageError, naming the column, if scikit-learn has no
    transformer for it.
    """
    import pandas as pd
    from sklearn.compose import ColumnTransformer

    raw = raw_form(model, form, "scikit-learn")
    assert raw is not None
    if raw.missing == "error":
        raise UsageError("scikit-learn has no encoder that refuses missing values; otherwise it is one of its own")
    transformers, sample, weights, scaled = [], dict[str, Any](), [], list[Number | None]()
    for number, part in enumerate(raw.parts):
        if not isinstance(part, Number | Category):
            crossed = "*".join(coding.column for coding in part.codings)
            raise UsageError(f"scikit-learn has no transformer for the cross {crossed}; otherwise it is one of its own")
        column = part.column if isinstance(part, Number) else part.coding.column
        for kind, (transformer, values, own) in enumerate(
            _number(raw, part) if isinstance(part, Number) else _category(raw, part)
        ):
            transformers.append((f"column {number}{'' if kind == 0 else ' is missing'}", transformer, [column]))
            scaled.append(part if isinstance(part, Number) and kind == 0 else None)
            sample.setdefault(column, values)
            weights.append(own)
    made = ColumnTransformer(transformers, sparse_threshold=1.0).fit(pd.DataFrame(sample))
    for (_, transformer, _), each in zip(made.transformers_, scaled, strict=True):
        if each is not None:
            scaler = transformer[0]
            scaler.mean_, scaler.scale_ = np.array([each.centre]), np.array([each.spread])
            scaler.var_ = scaler.scale_**2
    return made, np.hstack(weights)


def _number(raw: RawForm, part: Number) -> Iterator[Part]:
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    sample = [part.centre - part.spread, part.centre + part.spread]
    scaled = make_pipeline(StandardScaler(), SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True))
    yield scaled, sample, raw.weight(part.feature)[:, None]
    yield from _missing(raw.weight(part.absent), sample)


def _category(raw: RawForm, part: Category) -> Iterator[Part]:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

    coding, absent = part.coding, raw.weight(part.absent)
    weights = np.array([raw.weight(feature) for feature in part.features]).reshape(len(part.features), -1)
    if coding.edges is not None:
        numbers = FunctionTransformer(np.asarray, kw_args={"dtype": float})
        bins = FunctionTransformer(np.digitize, kw_args={"bins": np.array(coding.edges)})
        codes = [np.arange(len(coding.edges) + 1)]
        yield make_pipeline(numbers, bins, OneHotEncoder(categories=codes, handle_unknown="ignore")), [0.0, 1.0], weights.T
        yield from _missing(absent - weights[-1], [0.0, 1.0])  # where NaN is the last bin
        return
    values: list[Any]
    if coding.type == BOOLEAN:
        kept = [code for code, word in enumerate(coding.words) if word in BOOLEANS]
        values = [BOOLEANS[coding.words[code]] == "true" for code in kept]
    elif coding.numbers:
        kept = [code for code, word in enumerate(coding.words) if is_number(word)]
        values = [float(coding.words[code]) for code in kept]
    else:
        kept, values = list(range(len(coding.words))), list(coding.words)
    order = sorted(range(len(values)), key=values.__getitem__)
    values, weights = [values[at] for at in order], weights[[kept[at] for at in order]]
    if not coding.numbers and coding.type != BOOLEAN:
        values, weights = ["", *values], np.vstack([absent[None, :], weights])  # an empty text is missing, too
    if values:
        categories = np.array(values, dtype=float if coding.numbers else bool if coding.type == BOOLEAN else object)
        yield OneHotEncoder(categories=[categories], handle_unknown="ignore"), [values[0], values[-1]], weights.T
    yield from _missing(absent, values[:1] * 2 or [0.0, 0.0])


def _missing(weight: np.ndarray, sample: list[Any]) -> Iterator[Part]:
    """An indicator of missing values, if its weight is not 0."""
    import pandas as pd
    from sklearn.preprocessing import FunctionTransformer

    if weight.any():
        yield FunctionTransformer(pd.isna), sample, weight[:, None]
