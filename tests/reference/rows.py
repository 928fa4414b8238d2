"""Rows as plain Python, to compare what went in with what is in a store."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp

import streamcut


def make_rows(n: int, seed: int, *, groups: int | None = None, features: int = 40) -> list[tuple]:
    """[(label, qid or None, ((feature from 1, value), …))], with some rows empty; `groups` rows of one qid follow each other."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        features_of_row = np.sort(rng.choice(np.arange(1, features + 1), rng.integers(0, 8), replace=False)).tolist()
        values = [round(float(v), 3) or 1.0 for v in rng.normal(size=len(features_of_row))]
        rows.append(
            (
                float(rng.integers(-1, 2)),
                None if groups is None else i // groups,
                tuple(zip(features_of_row, values, strict=True)),
            )
        )
    return rows


def write_svmlight(path: Path, rows: list[tuple]) -> Path:
    lines = []
    for label, qid, entries in rows:
        words = [f"{label:.17g}"] + ([] if qid is None else [f"qid:{qid}"]) + [f"{index}:{value!r}" for index, value in entries]
        lines.append(" ".join(words) + "\n")
    path.write_text("".join(lines))
    return path


def dump(path: Path, X, y, qid=None) -> Path:
    """The rows of X as svmlight text of the same float64."""
    X = sp.csr_array(X, dtype=float)
    cells = [sorted(zip((X[[i]].indices + 1).tolist(), X[[i]].data.tolist(), strict=True)) for i in range(X.shape[0])]
    return write_svmlight(path, list(zip(y, [None] * len(cells) if qid is None else qid, cells, strict=True)))


def read_rows(path: Path) -> list[tuple]:
    """The rows of a store in the form of `make_rows`; values are float32 there, and rounded back to three digits here."""
    data = streamcut.open(path)
    rows = []
    for shard in range(len(data.manifest.shards)):
        chunk = data.read(shard)
        for i in range(chunk.n_rows):
            cut = slice(int(chunk.indptr[i]), int(chunk.indptr[i + 1]))
            values = np.ones(cut.stop - cut.start) if chunk.data is None else chunk.data[cut]
            entries = tuple((int(j) + 1, round(float(v), 3)) for j, v in zip(chunk.indices[cut], values, strict=True))
            rows.append((float(chunk.y[i]), None if chunk.qid is None else int(chunk.qid[i]), entries))
    return rows
