"""Passes that trainings take where they took many: large costs, sorted rows, pairs, sequences; and what they read."""

from __future__ import annotations

import json

import numpy as np
import pytest
from kit.ranking import problem
from sklearn.datasets import dump_svmlight_file

import streamcut
from streamcut import load_model, train, verify


def separable(rows=600, features=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, features)) * np.geomspace(0.1, 3.0, features)
    return streamcut.rows(X, np.where(X @ rng.standard_normal(features) + 0.1 * rng.standard_normal(rows) > 0.0, 1.0, -1.0))


@pytest.mark.parametrize(("lanes", "most"), [(1, 16), (8, 6)])
def test_a_large_cost_takes_few_passes_in_any_number_of_lanes(lanes, most):
    data = separable()
    model = train(data, C=1e4, solver="bundle-dca", row_cache="50%", lanes=lanes, scheduler="sync", max_passes=60)
    assert model.certificate.converged
    assert model.history[-1]["passes"] <= most
    assert verify(model, data).consistent


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


def test_commands_print_readings(run, tmp_path):
    X = np.eye(4).repeat(40, axis=0)
    store, model = tmp_path / "d.zarr", tmp_path / "m.npz"
    dump_svmlight_file(X, np.arange(160) % 2, str(tmp_path / "d.svm"), zero_based=False)
    streamcut.convert(str(tmp_path / "d.svm"), str(store))
    lines = [json.loads(line) for line in run("train", store, "--output", model, "--json")[1].splitlines()]
    assert lines[-1]["readings"] == load_model(str(model)).readings >= 1.0
    tuned = run("train", store, "--output", tmp_path / "t.npz", "--C", "1,2", "--folds", 2, "--json")[1]
    assert json.loads(tuned.splitlines()[-1])["readings"] >= 1.0
