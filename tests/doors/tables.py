"""A table to convert and train on, and what a store holds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import scipy.sparse as sp

import streamcut


def table(n: int = 400, seed: int = 0) -> pd.DataFrame:
    """Categories with blanks and quotes, numbers, words, and labels that depend on them."""
    rng = np.random.default_rng(seed)
    site, age = rng.choice(["a", "b", "c d", 'e"f'], n), np.round(rng.normal(40, 9, n), 1)
    words = [" ".join(rng.choice(["red", "green", "Big", "été", "Ärger", "größer", "東京"], 4)) for _ in range(n)]
    click = np.where((site == "a") * 1.5 + (age - 40) / 9 + rng.standard_normal(n) > 0.7, "yes", "no")
    return pd.DataFrame({"site": site, "age": age, "words": words, "click": click})


def content(path) -> tuple[np.ndarray, np.ndarray]:
    """X, float64 (n, d), and y, float64 (n,), of the store at `path`."""
    data = streamcut.open(path)
    X, y = [], []
    for shard in range(len(data.manifest.shards)):
        chunk = data.read(shard)
        entries = slice(chunk.indptr[0], chunk.indptr[-1])
        values = np.ones(chunk.nnz) if chunk.data is None else chunk.data[entries].astype(float)
        shape = (len(chunk.y), data.manifest.statistics.n_features)
        X.append(sp.csr_array((values, chunk.indices[entries].copy(), chunk.indptr - chunk.indptr[0]), shape).toarray())
        y.append(chunk.y.copy())
    return np.vstack(X), np.concatenate(y)
