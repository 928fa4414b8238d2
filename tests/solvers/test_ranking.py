"""Pairs: the area under ROC, queries that a manifest counts, few passes, a line for each query; and F1."""

import json

import numpy as np
import pytest
from kit.ranking import problem
from sklearn.datasets import dump_svmlight_file

import streamcut
from streamcut import evaluate, save_model, train


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
