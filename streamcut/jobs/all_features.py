"""Models of the occurring features, extended to all features."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from streamcut.execution.occurring import OccurringDataset
from streamcut.models.linear import LinearModel


def with_all_features(model: Any, data: OccurringDataset) -> Any:
    """`model`, linear or with a kernel, trained on `data`: weights, slopes of proofs and vectors are 0 for features that
    `data` leaves out."""
    if not isinstance(model, LinearModel):
        import scipy.sparse as sp  # the import takes 0.1 s, which linear models can avoid

        kernel, support, index = model.kernel, model.support, data.index
        if kernel.centre is not None:
            kernel = replace(kernel, centre=replace(kernel.centre, index=index[kernel.centre.index].astype(np.int64)))
        shape = support.shape[0], data.inner.manifest.statistics.n_features
        support = sp.csr_array((support.data, index[support.indices], support.indptr), shape=shape)
        return replace(model, kernel=kernel, support=support)
    columns = model.weights.size // len(data.index)
    model = replace(model, weights=data.spread(model.weights))
    columns = columns if len(model.witnesses) == 1 else 1  # of the one problem of all classes, in which a bias feature is last
    spread = (replace(each, a=data.spread(each.a.reshape(-1, columns)).reshape(-1)) for each in model.witnesses)
    return replace(model, witnesses=tuple(spread))
