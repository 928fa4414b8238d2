"""Batches of rows from several places of a lane: smooth losses by bundle-dca, where there is more than one batch."""

import numpy as np

import streamcut


def test_small_data_in_order_of_labels_takes_no_more_passes():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30_000, 8)) * np.geomspace(0.1, 1.0, 8)
    y = np.where(X @ rng.standard_normal(8) + 0.5 * rng.standard_normal(len(X)) > 0.6, 1.0, -1.0)
    order = np.argsort(y, kind="stable")
    passes = []
    for data in (streamcut.rows(X, y), streamcut.rows(X[order], y[order])):
        model = streamcut.train(data, C=10.0, solver="bundle-dca", lanes=1, scheduler="sync", max_passes=60)
        passes.append(model.history[-1]["passes"])
    assert passes[1] <= passes[0] + 1
