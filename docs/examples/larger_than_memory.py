"""More rows than memory: write a store block by block, train within a budget, and check the proof."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import streamcut

FEATURES = 20_000
truth = np.random.default_rng(0).normal(size=FEATURES)


def blocks(number: int) -> Iterator[tuple[sp.csr_array, np.ndarray]]:
    """Rows as they come, from a database for example: 2,000 at a time, none kept."""
    for block in range(number):
        random = np.random.default_rng(block + 1)
        X = sp.random_array((2000, FEATURES), density=0.001, format="csr", rng=random)
        yield X, np.where(X @ truth + random.normal(size=2000) > 0, 1.0, -1.0)


with tempfile.TemporaryDirectory() as folder:
    with streamcut.create(Path(folder, "rows.zarr")) as store:
        for X, y in blocks(10):
            store.append(X, y)
    model = streamcut.train(Path(folder, "rows.zarr"), loss="logistic", C=0.1, memory="400MB")  # of the whole process
    print(model.certificate.in_words())
    print(streamcut.verify(model, Path(folder, "rows.zarr")).outcome)  # reads the rows again, and proves the bound anew
