"""Single cells: which genes mark a type, from an AnnData file (pip install anndata)."""

import tempfile
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix

import streamcut

random = np.random.default_rng(0)
kind = random.integers(0, 3, 600)
counts = random.poisson(0.2, (600, 300))
for number in range(3):  # ten genes are more active in cells of each type
    counts[kind == number, 10 * number : 10 * number + 10] += random.poisson(1.0, ((kind == number).sum(), 10))
cells = anndata.AnnData(
    csr_matrix(np.log1p(counts).astype(np.float32)),
    pd.DataFrame({"type": np.array(["B cell", "T cell", "monocyte"])[kind]}, index=[f"CELL{i}" for i in range(600)]),
    pd.DataFrame(index=[f"GENE{j}" for j in range(300)]),
)

with tempfile.TemporaryDirectory() as folder:
    cells[:400].copy().write_h5ad(Path(folder, "train.h5ad"), compression="gzip")
    cells[400:].copy().write_h5ad(Path(folder, "test.h5ad"), compression="gzip")
    streamcut.convert(Path(folder, "train.h5ad"), Path(folder, "train.zarr"), label="obs:type")  # block by block
    model = streamcut.train(Path(folder, "train.zarr"), loss="softmax", C=0.01)
    print(model.certificate.in_words())
    print(f"accuracy on other cells {streamcut.evaluate(model, Path(folder, 'test.h5ad')).accuracy:.3f}")
    for weight in streamcut.weights(model, top=2, label="T cell"):
        print(f"  {weight.name}: {weight.weight:+.3f}")
