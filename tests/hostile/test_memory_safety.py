"""No odd number leads compiled code out of its arrays; arrays and labels from outside are looked at before it sees them.

scripts/test_bounds_checked.sh runs all tests with every index checked; here is what no other test provokes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut import load_model, save_model, train
from streamcut.errors import BadInputError, CorruptError


@pytest.mark.parametrize(
    ("spoil", "match"),
    [
        (lambda X: X.indices.__setitem__(3, 50), "indices must be < 5"),
        (lambda X: X.indices.__setitem__(3, -2), "indices must be >= 0"),
        (lambda X: X.indptr.__setitem__(1, 40), "indptr"),
    ],
)
def test_sparse_matrices_that_are_broken_are_refused(spoil, match):
    X, y = sp.random_array((20, 5), density=0.5, format="csr", rng=np.random.default_rng(0)), np.arange(20) % 2.0
    model = train(streamcut.rows(X, y), max_passes=2)
    spoil(X)
    with pytest.raises(BadInputError, match=match):
        streamcut.rows(X, y)
    with pytest.raises(BadInputError, match=match):
        model.predict(X)


@pytest.mark.parametrize("solver", ["bsca", "bsgd", "sampled-linear"])
def test_rows_without_a_finite_norm_are_refused(solver):
    X = np.array([[1e200, 0.0], [0.0, 1.0]])
    with pytest.raises(BadInputError, match=r"values up to 1e.200.* overflow"):
        train(streamcut.rows(X, np.array([0.0, 1.0])), solver=solver, kernel="rbf", gamma=1.0)


def test_models_whose_parts_do_not_fit_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 4)), np.arange(60) % 2.0
    features = train(streamcut.rows(X, y), nystroem=20, kernel="rbf", gamma=0.5, max_passes=3)
    narrow = train(streamcut.rows(X, y), max_passes=3)
    object.__setattr__(features, "weights", narrow.weights)  # as no training can leave it
    save_model(features, tmp_path / "features.npz")
    with pytest.raises(CorruptError, match="4 features does not fit a map to 20"):
        load_model(tmp_path / "features.npz")
    chain = train(streamcut.rows(X, y, qid=np.arange(60) // 5), task="sequence", max_passes=3)
    object.__setattr__(chain, "problem", replace(chain.problem, labels=()))
    save_model(chain, tmp_path / "chain.npz")
    with pytest.raises(CorruptError, match="2 scores per row for 0 labels"):
        load_model(tmp_path / "chain.npz")


RBF = {"kernel": "rbf", "gamma": 0.5}
NUMBERED = [  # not bsca's: it makes no index of a label
    {"task": "multiclass", "solver": "bundle-dca"},
    {"task": "multiclass", "strategy": "one-vs-rest"},
    {"task": "sequence"},
    *({"task": "multiclass", "solver": f"sampled-{kind}", **RBF} for kind in ("linear", "constant")),
    {"task": "sequence", "solver": "sampled-linear", **RBF},
]


@pytest.mark.parametrize("options", NUMBERED, ids=str)
def test_classes_are_numbered_only_with_known_labels(options):
    """Of data that is no store: the label between two known ones, and the one above all."""
    X, y = sp.random_array((240, 10), density=0.3, format="csr", rng=np.random.default_rng(1)), np.arange(240) % 4 + 1.0
    for label in (2.0, 4.0):
        data = streamcut.rows(X, y, qid=np.arange(240) // 6 if options["task"] == "sequence" else None)
        statistics = data.manifest.statistics
        labels = {known: rows for known, rows in statistics.labels.items() if known != label}
        data.manifest = replace(data.manifest, statistics=replace(statistics, labels=labels))
        with pytest.raises(CorruptError, match=f"row {int(label)}: the manifest has no label {label:g}"):
            train(data, **options)
