"""The curvature of pairs against the list of all pairs, and what its points save."""

import numpy as np
from kit.ranking import problem

import streamcut
from streamcut import train


def test_newton_takes_fewer_passes_than_ocas():
    X, y, qid = problem(900, 20, queries=30)
    above = streamcut.rows(X, np.where(y > y.mean(), 1.0, -1.0))
    for data, task, most in ((streamcut.rows(X, y, qid=qid), "ranking", 1.0), (above, "roc-area", 0.7)):
        by = {solver: train(data, task=task, C=1.0, solver=solver) for solver in ("newton", "ocas", "auto")}
        passes = {solver: model.history[-1]["passes"] for solver, model in by.items()}
        assert by["auto"].solver == "newton"
        assert passes["auto"] == passes["newton"] <= most * passes["ocas"]
        assert by["newton"].certificate.lower_bound <= by["ocas"].certificate.primal
        assert by["ocas"].certificate.lower_bound <= by["newton"].certificate.primal


def test_newton_takes_as_many_labels_as_there_are():
    X, _, _ = problem(200, 5, queries=None)
    by = {solver: train(streamcut.rows(X, np.arange(200.0)), task="ranking", solver=solver) for solver in ("auto", "ocas")}
    assert by["auto"].solver == "newton"
    assert by["auto"].history[-1]["passes"] < by["ocas"].history[-1]["passes"]
    assert by["auto"].certificate.lower_bound <= by["ocas"].certificate.primal
