"""Groups larger than memory, or than a block of text: whatever the room, the same bits, and no group is cut in two."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from kit.groups import problem, sequences
from sklearn.datasets import dump_svmlight_file

import streamcut
from streamcut import predict, train
from streamcut.jobs.global_risk import GlobalJob
from streamcut.oracles import groups, sorted_scores
from streamcut.prediction import scored_chunks


def bits(model):
    return model.weights.tobytes(), model.certificate.primal, model.certificate.lower_bound, model.history[-1]["passes"]


@pytest.mark.parametrize("options", [{"task": "ranking"}, {"loss": "error"}, {"loss": "f1"}], ids=str)
def test_training_in_little_room_gives_the_same_bits(options, monkeypatch):
    X, y, _ = problem(400, 15, levels=6)
    y = y if "task" in options else np.where(y > np.quantile(y, 0.7), 4.0, -1.0)
    options = {**options, "C": 0.3, "max_passes": 30, "workers": 2}
    for module in (groups, sorted_scores):
        monkeypatch.setattr(module, "BLOCK_ROWS", 50)
    expected, trainer = bits(train(streamcut.rows(X, y), **options)), GlobalJob.trainer
    little = {"row_cache": 9 * 60}  # the scores of 60 rows are sorted at once
    monkeypatch.setattr(GlobalJob, "trainer", lambda job, runner, plan: trainer(job, runner, replace(plan, **little)))
    assert bits(train(streamcut.rows(X, y), **options)) == expected


def test_groups_that_go_on_in_the_next_block_of_text_are_labelled_whole(tmp_path, monkeypatch):
    X, y, qid = sequences(300)
    model = train(streamcut.rows(X, y, qid=qid), task="sequence", max_passes=8)
    dump_svmlight_file(sp.csr_matrix(X), y, str(tmp_path / "t.svm"), query_id=qid, zero_based=False)
    monkeypatch.setattr("streamcut.prediction.SCORES_AT_ONCE", 30)
    chunks = [chunk for chunk, _ in scored_chunks(model, str(tmp_path / "t.svm"))]
    firsts = [int(chunk.qid[0]) for chunk in chunks]
    assert len(chunks) > 10
    assert len(set(firsts)) == len(firsts)
    assert np.array_equal(predict(model, str(tmp_path / "t.svm")), model.predict(X, qid=qid))
