"""Export to LIBLINEAR's text model, which LIBLINEAR's own `predict` reads."""

from __future__ import annotations

from typing import Any

from streamcut.errors import UsageError
from streamcut.loss_table import JOINT_LOSSES
from streamcut.models.link import OwnLink


def content(model: Any, link: OwnLink | None) -> bytes:
    """`model` written so that LIBLINEAR gives the same labels and, up to the order of summation, the same scores.

    LIBLINEAR's score of two classes is that of the label listed first, so our positive label comes first. Its labels are C
    integers. Raises UsageError for a label that is not one and for a model that LIBLINEAR does not know.
    """
    solver = "L2R_L1LOSS_SVC_DUAL" if link is None else "L2R_LR"  # L2R_LR gives the same probabilities (predict -b 1)
    if not model.of_features or model.whole_groups or not model.labels:
        raise UsageError(f"LIBLINEAR has no models of task {model.task} by {model.solver}")
    labels, weights = model.labels, model.augmented_weights
    if weights.ndim == 1:
        labels, weights = labels[::-1], weights[:, None]
    else:
        if (joint := JOINT_LOSSES.get(model.strategy)) is not None:
            if joint.liblinear is None:
                other = f"its {joint.apart} models are one-vs-rest; export it to sklearn, onnx or json"
                raise UsageError(f"LIBLINEAR has no {model.strategy}: {other}")
            solver = joint.liblinear
    for label in labels:
        if label != int(label) or abs(label) >= 2**31:
            raise UsageError(f"LIBLINEAR labels are whole numbers below 2³¹, {label:g} is not; train on other labels")
    header = [
        f"solver_type {solver}",
        f"nr_class {len(labels)}",
        f"label {' '.join(str(int(label)) for label in labels)}",
        f"nr_feature {model.n_features}",
        f"bias {model.bias if model.bias else -1:.17g}",  # a negative number means no bias feature
        "w",
    ]
    # LIBLINEAR itself ends these lines with a blank
    lines = header + ["".join(f"{weight:.17g} " for weight in row) for row in weights.tolist()]
    return "\n".join([*lines, ""]).encode()
