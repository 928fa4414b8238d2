"""Models of the occurring features, extended to all features."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from streamcut.execution.occurring import OccurringDataset
from streamcut.models.certificate import Witness
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
    found, proofs = list[Witness](), model.witnesses
    if len(proofs) > 1:  # one of each class; a file has them in one array
        slopes = np.zeros((len(proofs), len(proofs[0].a) + data.inner.manifest.statistics.n_features - len(data.index)))
        for proof, own in zip(proofs, slopes, strict=True):
            data.spread(proof.a, own)
            found.append(replace(proof, a=own))
    else:  # of the one problem, in which a bias feature is last
        found = [replace(proof, a=data.spread(proof.a.reshape(-1, columns)).reshape(-1)) for proof in proofs]
    return replace(model, witnesses=tuple(found))
