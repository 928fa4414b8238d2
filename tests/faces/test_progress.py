"""What a run shows while it goes: lines, JSON, a table on a terminal, and when it will be done."""

from __future__ import annotations

import numpy as np
import pytest

import streamcut
from streamcut import train

pytestmark = pytest.mark.process


def test_rows_are_computed_in_every_pass_and_read_once():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 6)), np.where(rng.random(300) < 0.5, 1.0, -1.0)
    seen = []
    model = train(streamcut.rows(X, y, shard_nnz=500), on_iteration=seen.append, max_passes=5, tol=1e-9, tol_relative=None)
    size = seen[0].bytes_computed
    assert size == seen[0].bytes_read == seen[-1].bytes_read
    assert [line.bytes_computed for line in seen] == [size * line.passes for line in seen]
    assert seen[-1].allowed_gap == pytest.approx(1e-9 * 300)
    assert model.history[-1]["allowed_gap"] == seen[-1].allowed_gap
