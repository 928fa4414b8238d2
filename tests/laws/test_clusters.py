"""A cluster changes no bit: every linear training, on two worker processes."""

from __future__ import annotations

import pytest
from kit.clusters import two_workers
from laws.problems import TRAININGS

import streamcut

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


@pytest.mark.parametrize("name", TRAININGS)
def test_a_cluster_changes_no_bit(name, store, client, tmp_path):
    rows, options, _ = TRAININGS[name]
    data, few = store(rows, shard_nnz=150), {**options, "max_passes": 6}
    here, there = (streamcut.train(data, **few, scheduler=scheduler) for scheduler in ("threads", client))
    for model, path in ((here, "here.npz"), (there, "there.npz")):
        streamcut.save_model(model, tmp_path / path)
    assert here.weights.tobytes() == there.weights.tobytes()
    for claim in ("certificate", "certificates", "intercept", "intercepts", "transitions"):
        assert repr(getattr(here, claim, None)) == repr(getattr(there, claim, None))
    assert here.resources["readings"] == there.resources["readings"]
    assert [line["passes"] for line in here.history] == [line["passes"] for line in there.history]
