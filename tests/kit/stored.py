"""What a store holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp

import streamcut


def content(path: Path | str) -> tuple[np.ndarray, np.ndarray]:
    """X, dense float64 (n, d), and y, float64 (n,), of the store at `path`."""
    data = streamcut.open(path)
    parts, labels = [], []
    for shard in range(len(data.manifest.shards)):
        chunk = data.read(shard)
        cut = slice(chunk.indptr[0], chunk.indptr[-1])
        values = np.ones(chunk.nnz) if chunk.data is None else chunk.data[cut].astype(np.float64)
        shape = (chunk.n_rows, data.manifest.statistics.n_features)
        parts.append(sp.csr_array((values, chunk.indices[cut].copy(), chunk.indptr - chunk.indptr[0]), shape=shape))
        labels.append(chunk.y.copy())
    return sp.vstack(parts).toarray(), np.concatenate(labels)
