"""Export to LIBLINEAR's text model, which LIBLINEAR's own `predict` reads."""

from __future__ import annotations

import os

from streamcut.errors import UsageError
from streamcut.files import write_durably
from streamcut.models.linear import LinearModel
from streamcut.models.model import Model


def save_liblinear(model: Model, path: str | os.PathLike) -> None:
    """Write `model` so that LIBLINEAR gives the same labels and, up to the order of summation, the same scores.

    LIBLINEAR scores are those of the label it lists first, so that is our positive one. Its labels are C integers.
    Raises UsageError for a label that is not one and for a model that LIBLINEAR does not know, DiskFullError.
    """
    if not isinstance(model, LinearModel) or model.labels is None:
        raise UsageError(f"LIBLINEAR has no models of task {model.task} by {model.solver}")
    for label in model.labels:
        if label != int(label) or abs(label) >= 2**31:
            raise UsageError(f"LIBLINEAR labels are whole numbers below 2³¹, {label:g} is not; train on other labels")
    negative, positive = (int(label) for label in model.labels)
    header = [
        "solver_type L2R_L1LOSS_SVC_DUAL",
        "nr_class 2",
        f"label {positive} {negative}",
        f"nr_feature {model.n_features}",
        f"bias {model.bias if model.bias else -1:.17g}",  # a negative number stands for no bias feature
        "w",
    ]
    # LIBLINEAR itself ends these lines with a blank
    lines = header + [f"{weight:.17g} " for weight in model.augmented_weights.tolist()]
    write_durably(path, "\n".join([*lines, ""]).encode(), prefix="model")
