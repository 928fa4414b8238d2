"""Row weights that nothing can be learnt from, or that overflow, are refused with the reason (BAD_INPUT 59)."""

from __future__ import annotations

import kit.shared.row_weights
import numpy as np

import streamcut
from streamcut.io.stores.manifest_file import manifest_bytes, parse_manifest

no_warnings = kit.shared.row_weights.no_warnings


def test_weights_of_labels_are_kept_whatever_the_blocks_and_come_back(tmp_path):
    rng = np.random.default_rng(0)
    labels, weights = rng.choice([1, 2, 3], 500), np.round(rng.random(500), 3)
    lines = [f"{label}:{weight} {k % 7 + 1}:1\n" for k, (label, weight) in enumerate(zip(labels, weights, strict=True))]
    (tmp_path / "a.svm").write_text("".join(lines))
    found = []
    for threads in (1, 3):
        streamcut.convert(tmp_path / "a.svm", tmp_path / f"{threads}.zarr", label_weights=True, shard_nnz=60, threads=threads)
        found.append(streamcut.open(tmp_path / f"{threads}.zarr").manifest)
    assert found[0].statistics == found[1].statistics
    expected = {label: weights[labels == label].sum() for label in (1, 2, 3)}
    np.testing.assert_allclose(list(found[0].statistics.label_weights.values()), list(expected.values()), rtol=1e-12)
    assert parse_manifest(manifest_bytes(found[0]), "here").statistics == found[0].statistics
