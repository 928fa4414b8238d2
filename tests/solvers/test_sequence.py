"""Sequence labelling: transitions, names of labels, and rows that are no sequences."""

import json

import numpy as np
import pytest
from kit.sequence import sequences
from sklearn.datasets import dump_svmlight_file

import streamcut
from streamcut import evaluate, predict, save_model, train
from streamcut.errors import BadInputError, NotFoundError, UsageError


def test_transitions_help():
    X, y, qid = sequences(200)
    Xt, yt, qt = sequences(200, seed=1)
    model = train(streamcut.rows(X, y, qid=qid), task="sequence", C=1.0)
    alone = train(streamcut.rows(X, y, qid=np.arange(len(y))), task="sequence", C=1.0)
    accuracy = evaluate(model, streamcut.rows(Xt, yt, qid=qt)).accuracy
    assert accuracy > np.mean(alone.predict(Xt, qid=np.arange(len(yt))) == yt) + 0.1
    assert accuracy == np.mean(model.predict(Xt, qid=qt) == yt)


def test_names_of_labels_come_from_a_file(tmp_path, run):
    X, y, qid = sequences(30)
    model = train(streamcut.rows(X, y, qid=qid), task="sequence", C=0.1)
    save_model(model, tmp_path / "m.npz")
    dump_svmlight_file(X, y, str(tmp_path / "t.svm"), zero_based=False, query_id=qid)
    kinds = ["B-NP", "I-NP", "O", "B-VP"]
    names = {label: kinds[i % 4] for i, label in enumerate(model.labels)}
    (tmp_path / "names").write_text("".join(f"{label:g} {name}\n" for label, name in names.items()))
    want = evaluate(model, streamcut.rows(X, y, qid=qid), label_names=names).measures()
    command = ["evaluate", tmp_path / "m.npz", tmp_path / "t.svm", "--label-names", tmp_path / "names"]
    assert json.loads(run(*command, "--json")[1]) == want
    assert want["chunk_types"]
    assert "NP" in run(*command)[1]
    (tmp_path / "names").write_text("1 B-NP\n2 two words\n")
    with pytest.raises(BadInputError, match="names, line 2: expected a label and its name, found '2 two words'"):
        evaluate(model, streamcut.rows(X, y, qid=qid), label_names=tmp_path / "names")
    with pytest.raises(BadInputError, match="has no name"):
        evaluate(model, streamcut.rows(X, y, qid=qid), label_names={1.0: "B-NP"})
    with pytest.raises(NotFoundError, match="nowhere"):
        evaluate(model, streamcut.rows(X, y, qid=qid), label_names="nowhere")
    with pytest.raises(UsageError, match="label_names"):
        evaluate(train(streamcut.rows(X, y), task="multiclass"), streamcut.rows(X, y), label_names=names)


def test_rows_that_are_no_sequences_are_not_labelled():
    X, y, qid = sequences(10)
    model = train(streamcut.rows(X, y, qid=qid), task="sequence", max_passes=2)
    with pytest.raises(BadInputError, match="no qid"):
        predict(model, streamcut.rows(X, y))
    with pytest.raises(BadInputError, match="qid has shape"):
        model.predict(X, qid=qid[1:])
    with pytest.raises(UsageError, match="qid: only models of sequences"):
        train(streamcut.rows(X, y)).predict(X, qid=qid)
