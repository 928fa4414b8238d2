"""Export to a small model file: what scoring needs, with weights rounded to float32."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from streamcut.errors import UsageError
from streamcut.models.files import model_bytes
from streamcut.models.linear import LinearModel
from streamcut.models.link import OwnLink
from streamcut.models.model import Model
from streamcut.models.multiclass import MulticlassModel


def compact(model: Model) -> Model:
    """`model` with weights rounded to float32 and without history and proof; its certificate is that of the original.

    Raises UsageError for a model that is not linear, and when a weight is too large for float32.
    """
    if not isinstance(model, LinearModel | MulticlassModel):
        raise UsageError(f"compact: only linear models can be made smaller, not those of kind {model.kind}")
    with np.errstate(over="ignore"):
        weights = model.weights.astype(np.float32).astype(np.float64)
    if not np.isfinite(weights).all():
        raise UsageError("compact: a weight is too large for float32")
    changes: dict[str, Any] = {"weights": weights, "history": [], "parameters": {**model.parameters, "rounded": "float32"}}
    return replace(model.without_proof(), **changes)


def compact_file(model: Model, link: OwnLink | None) -> bytes:
    """The file of `compact(model)`, which `load_model` reads. Raises UsageError without a `link` if the loss implies one."""
    if link is None and model.own_link is not None:
        raise UsageError("compact: the loss of the model implies its probabilities; they cannot be left out")
    return model_bytes(replace(compact(model), link=None if link is None else model.link))
