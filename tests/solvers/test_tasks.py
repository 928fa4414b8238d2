"""Rankings, sequences and one class: what is theirs alone, and what their commands print."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from kit.groups import problem, sequences
from sklearn.datasets import dump_svmlight_file
from sklearn.svm import OneClassSVM

import streamcut
from streamcut import evaluate, predict, save_model, train, verify
from streamcut.errors import BadInputError, NotFoundError, UsageError


def test_roc_area_is_ranking_with_two_labels():
    X, y, _ = problem(levels=2)
    area = train(streamcut.rows(X, y), task="roc-area", C=0.3)
    ranked = train(streamcut.rows(X, -5.0 + 3.0 * y), task="ranking", C=0.3)  # labels are compared, nothing else
    np.testing.assert_array_equal(area.weights, ranked.weights)
    assert area.task == "roc-area"
    assert area.labels is None
    np.testing.assert_array_equal(area.predict(X), area.decision_function(X))


def test_a9a_takes_few_passes_and_ranks_better_than_the_hinge(load):
    X, y = load("a9a")
    test = load("a9a", "test")
    area = train(streamcut.rows(X, y), task="roc-area", C=0.1, tol_relative=None)
    assert area.history[-1]["passes"] <= 55  # what OCAS took before, in two passes for each cut
    hinge = train(streamcut.rows(X, y), C=0.1)
    assert evaluate(area, test).roc_auc >= evaluate(hinge, test).roc_auc


def test_a_line_for_each_query(run, tmp_path):
    X, y, qid = problem(40, queries=4)
    model = train(streamcut.rows(X, y, qid=qid), task="ranking")
    save_model(model, tmp_path / "m.npz")
    dump_svmlight_file(X, y, str(tmp_path / "rows.svm"), zero_based=False, query_id=qid)
    arguments = ("evaluate", tmp_path / "m.npz", tmp_path / "rows.svm")
    code, out, _ = run(*arguments, "--per-query")
    lines = out.splitlines()
    assert (code, lines[0]) == (0, "qid,rows,pairs,swapped,average_precision,ndcg_at_1,ndcg_at_5,ndcg_at_10")
    assert [line.split(",")[0] for line in lines[1:]] == [str(q) for q in np.unique(qid)]
    assert lines[1].split(",")[5] == ""  # a label is below 0: no NDCG
    table = json.loads(run(*arguments, "--per-query", "--json")[1])
    whole = json.loads(run(*arguments, "--json")[1])
    assert sum(table["swapped"]) / sum(table["pairs"]) == pytest.approx(whole["swapped_pairs"])
    assert table["ndcg_at_1"] == [None] * 4
    save_model(train(streamcut.rows(X, y > 0)), tmp_path / "two.npz")
    code, _, complaint = run("evaluate", tmp_path / "two.npz", tmp_path / "rows.svm", "--per-query")
    assert (code, "ranking" in complaint) == (2, True)


def test_optimising_f1_gives_a_better_f1(load):
    data, test = streamcut.rows(*load("a9a")), load("a9a", "test")
    scores = [evaluate(train(data, C=0.1, loss=loss, max_passes=60), test).f1 for loss in ("hinge", "f1")]
    assert scores[1] > scores[0] + 0.01


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


def positive() -> sp.csr_array:
    """Rows that mostly lie to one side of the origin."""
    rng = np.random.default_rng(0)
    return sp.random_array(
        (300, 8), density=0.6, format="csr", rng=rng, data_sampler=lambda size: rng.gamma(2.0, 0.5, size) - 0.3
    )


def mean_of_lowest(scores: np.ndarray, nu: float) -> float:
    """The slow way: sorted, the last one counts in part."""
    k = nu * len(scores)
    parts = np.clip(k - np.arange(len(scores)), 0.0, 1.0)
    return float(np.sort(scores) @ parts / k)


@pytest.mark.parametrize("nu", [0.1, 0.37])
def test_the_plane_is_libsvms(nu):
    X, data = positive().toarray(), streamcut.rows(positive(), np.ones(300), shard_nnz=400)
    model = train(data, task="one-class", nu=nu, tol=1e-7, tol_relative=None, max_passes=500)
    theirs = OneClassSVM(kernel="linear", nu=nu, tol=1e-10).fit(X)
    found, length = model.certificate, np.linalg.norm(theirs.coef_)
    assert found.converged
    optimum = 0.5 / (mean_of_lowest(X @ theirs.coef_[0], nu) / length) ** 2
    assert found.lower_bound <= optimum * (1.0 + 1e-12)
    assert found.primal >= optimum * (1.0 - 1e-6)
    assert found.primal == pytest.approx(optimum, rel=1e-4)
    direction = model.weights / np.linalg.norm(model.weights)
    np.testing.assert_allclose(direction, theirs.coef_[0] / length, atol=5e-3)
    assert -model.intercept / np.linalg.norm(model.weights) == pytest.approx(-theirs.intercept_[0] / length, rel=2e-2)
    outside = model.predict(positive()) == -1.0
    assert outside.sum() == int(nu * 300)
    assert np.mean(model.predict(positive()) == theirs.predict(X)) > 0.97
    assert verify(model, data).consistent


def test_units_of_features_are_of_no_matter():
    models = [
        train(streamcut.rows(positive() * unit, np.ones(300)), task="one-class", nu=0.1) for unit in (1.0, 2.0**-20, 2.0**20)
    ]
    directions = [model.weights / np.linalg.norm(model.weights) for model in models]
    for model, direction in zip(models, directions, strict=True):
        assert len(model.history) == len(models[0].history)
        np.testing.assert_allclose(direction, directions[0], rtol=1e-9)


def test_rows_around_the_origin_have_no_plane(caplog):
    X = np.random.default_rng(0).standard_normal((200, 3))
    model = train(streamcut.rows(np.vstack([X, -X]), np.ones(400)), task="one-class", nu=0.5)
    assert model.converged
    assert not model.weights.any()
    assert "the origin lies amid the rows" in caplog.text
