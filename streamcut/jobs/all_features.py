"""Models of the features that occur as models of all of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from streamcut.execution.occurring import OccurringDataset
from streamcut.models.certificate import Witness
from streamcut.models.linear import LinearModel
from streamcut.models.multiclass import MulticlassModel


def with_all_features(model: LinearModel | MulticlassModel, data: OccurringDataset) -> LinearModel | MulticlassModel:
    """`model`, which was trained on `data`; weights and slopes of proofs are 0 for the features that `data` is without."""
    columns = model.weights.size // len(data.index)
    model = replace(model, weights=data.spread(model.weights))
    if isinstance(model, LinearModel):
        return replace(model, witness=None if model.witness is None else _proof(model.witness, data, columns))
    each = columns // max(len(model.witnesses), 1)  # one problem of all classes, or one for each
    return replace(model, witnesses=tuple(_proof(witness, data, each) for witness in model.witnesses))


def _proof(witness: Witness, data: OccurringDataset, columns: int) -> Witness:
    a, n = witness.a.reshape(-1, columns), len(data.index)
    return replace(witness, a=np.concatenate([data.spread(a[:n]), a[n:]]).reshape(-1))  # a bias feature is last
