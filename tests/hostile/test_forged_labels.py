"""Labels that the manifest does not list: refused before a kernel makes an index of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut import train
from streamcut.errors import CorruptError

RBF = {"kernel": "rbf", "gamma": 0.5}
SAMPLED = ("sampled-linear", "sampled-constant")
NUMBERED = [  # not bsca's: it makes no index of a label
    {"task": "multiclass", "solver": "bundle-dca"},
    {"task": "multiclass", "strategy": "one-vs-rest"},
    {"task": "sequence"},
    *({"task": task, "solver": solver, **RBF} for task in ("multiclass", "sequence") for solver in SAMPLED),
]


@pytest.mark.parametrize("options", NUMBERED, ids=lambda options: " ".join(map(str, options.values())))
@pytest.mark.parametrize("label", [2.0, 4.0])
def test_classes_are_numbered_only_with_known_labels(options, label):
    """Of data that is no store: the label between two known ones, and the one above all."""
    X, y = sp.random_array((240, 10), density=0.3, format="csr", rng=np.random.default_rng(1)), np.arange(240) % 4 + 1.0
    data = streamcut.rows(X, y, qid=np.arange(240) // 6 if options["task"] == "sequence" else None)
    statistics = data.manifest.statistics
    labels = {known: rows for known, rows in statistics.labels.items() if known != label}
    data.manifest = replace(data.manifest, statistics=replace(statistics, labels=labels))
    with pytest.raises(CorruptError, match=f"row {int(label)}: the manifest has no label {label:g}"):
        train(data, **options)
