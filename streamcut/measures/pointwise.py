"""The loss of single rows that a model was trained with."""

from __future__ import annotations

from streamcut.losses import row_loss
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.models.model import Model


def risk_of(model: Model) -> PointwiseRisk:
    """The loss that training minimised, with its labels and weights; the hinge for models that were not trained here.

    Raises UsageError for a loss that is not a sum over single rows.
    """
    positive = model.labels[1] if model.labels else 1.0
    return PointwiseRisk(row_loss(model.parameters.get("loss", "hinge"), model.parameters, positive), model.positive_weight)
