"""Platt scaling: the minimum that others find, weights as repeated rows, through files and the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax
from sklearn.datasets import dump_svmlight_file
from sklearn.metrics import log_loss

import streamcut
from streamcut import calibrate, load_model, predict, save_model, train
from streamcut.errors import BadInputError, UsageError


def rows(seed=0, n=600):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, 20), density=0.4, rng=rng, format="csr", data_sampler=rng.standard_normal)
    odds = 3 * (X @ np.random.default_rng(9).standard_normal(20))
    return X, np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), 1.0, -1.0), odds


def test_probabilities_are_close_to_the_truth_and_survive_a_file(tmp_path):
    X, y, _ = rows()
    model = train(streamcut.rows(X, y))
    with pytest.raises(UsageError, match="calibrate"):
        predict(model, X, answer="probabilities")
    held_out, labels, _ = rows(1)
    fitted = calibrate(model, (held_out, labels))
    test, _, odds = rows(2)
    p = predict(fitted, test, answer="probabilities")
    assert np.abs(p - 1 / (1 + np.exp(-odds))).mean() < 0.08
    save_model(fitted, tmp_path / "m.npz")
    np.testing.assert_array_equal(predict(tmp_path / "m.npz", test, answer="probabilities"), p)
    np.testing.assert_array_equal(fitted.decision_function(test), model.decision_function(test))
    save_model(model, tmp_path / "plain.npz")
    assert load_model(tmp_path / "plain.npz").link is None


def test_what_has_no_probabilities():
    X, y, _ = rows()
    model = train(streamcut.rows(X, y))
    with pytest.raises(BadInputError, match="both classes"):
        calibrate(model, (X, np.ones(600)))
    numbers = streamcut.rows(X, np.arange(600) % 3, qid=np.arange(600) // 60)
    with pytest.raises(UsageError, match="for classifiers"):
        calibrate(train(numbers, task="ranking"), numbers)


def test_the_command_calibrates_a_copy_or_the_model_itself(tmp_path, run):
    X, y, _ = rows()
    dump_svmlight_file(sp.csr_matrix(X), y, str(tmp_path / "rows.svm"), zero_based=False)
    model = tmp_path / "m.npz"
    save_model(train(streamcut.rows(X, y)), model)
    code, _, err = run("predict", model, tmp_path / "rows.svm", "--answer", "probabilities")
    assert (code, "calibrate" in err) == (2, True)
    before = model.read_bytes()
    code, out, _ = run("calibrate", model, tmp_path / "rows.svm", "-o", tmp_path / "p.npz", "--json")
    assert (code, json.loads(out)["rows"]) == (0, 600)
    assert model.read_bytes() == before
    assert run("calibrate", model, tmp_path / "rows.svm", "-o", tmp_path / "p.npz")[0] == 2
    assert run("calibrate", model, tmp_path / "rows.svm")[0] == 0
    assert pytest.approx(json.loads(out)["A"]) == load_model(model).link.A
    assert "probabilities_A" in run("info", tmp_path / "p.npz", "--json")[1]


@pytest.mark.parametrize("strategy", ["crammer-singer", "one-vs-rest"])
def test_several_classes_have_probabilities_close_to_the_truth(strategy, tmp_path):
    rng = np.random.default_rng(5)
    X = sp.csr_array(rng.normal(size=(900, 6)))
    W = rng.normal(size=(6, 4))
    truth = softmax(2.0 * (X @ W), axis=1)
    y = np.array([rng.choice(4, p=p) for p in truth]).astype(np.float64)
    model = train(streamcut.rows(X[:300], y[:300]), task="multiclass", strategy=strategy)
    fitted = calibrate(model, (X[300:600], y[300:600]))
    save_model(fitted, tmp_path / "m.npz")
    p = predict(tmp_path / "m.npz", X[600:], answer="probabilities")
    np.testing.assert_array_equal(p, fitted.probabilities_of(model.decision_function(X[600:])))
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    best = log_loss(y[600:], truth[600:])
    assert best < log_loss(y[600:], p) < best + 0.15
