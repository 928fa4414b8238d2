"""Sequence labelling: Viterbi against trying every labelling, and its cuts."""

import numpy as np
import scipy.sparse as sp
from kit.sequence import sequences
from sklearn.datasets import dump_svmlight_file

import streamcut
from streamcut import predict, train
from streamcut.prediction import scored_chunks


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
