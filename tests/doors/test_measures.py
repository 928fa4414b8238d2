"""Measures are those of scikit-learn; those that it lacks, of rankings and sequences, are written out here."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn import metrics

import streamcut
from streamcut.errors import BadInputError

NAMES = {
    "binary": ("accuracy", "balanced_accuracy", "precision", "recall", "f1"),
    "classes": ("accuracy", "balanced_accuracy"),
    "numbers": ("r2", "mean_squared_error", "mean_absolute_error"),
    "quantiles": ("r2", "pinball_loss"),
    "counts": ("r2", "mean_poisson_deviance"),
}
OPTIONS = {
    "binary": {"loss": "logistic"},
    "classes": {"task": "multiclass", "loss": "softmax"},
    "numbers": {"task": "regression"},
    "quantiles": {"task": "regression", "loss": "quantile", "quantile": 0.3},
    "counts": {"task": "regression", "loss": "poisson"},
}


def rows(task: str) -> tuple[np.ndarray, np.ndarray]:
    """X of few values, so that many scores are equal and some 0, and y."""
    rng = np.random.default_rng(3)
    X = rng.integers(-1, 2, (300, 3)).astype(float)
    s = X @ [1.0, 0.5, -2.0] + 0.7 * rng.standard_normal(300)
    targets = {"binary": np.sign(s), "classes": np.clip(np.round(s), -1, 1), "counts": np.floor(np.exp(np.clip(s, -2, 2)))}
    return X, targets.get(task, s)


def calibration_error(p: np.ndarray, hit: np.ndarray, weight: np.ndarray) -> float:
    """Over 15 bins of equal width."""
    bins = np.minimum((15 * p).astype(int), 14)
    return sum(abs(np.sum((weight * (p - hit))[bins == k])) for k in range(15)) / weight.sum()


@pytest.mark.parametrize("shard_nnz", [40, 10_000])
@pytest.mark.parametrize("task", NAMES)
def test_measures_are_those_of_scikit_learn(task, shard_nnz):
    X, y = rows(task)
    weight = np.where(np.arange(300) % 7 == 0, 0.0, np.random.default_rng(4).uniform(0.5, 2, 300))
    model = streamcut.train((X, y), intercept="none", **OPTIONS[task])
    found = streamcut.evaluate(model, streamcut.rows(X, y, weight=weight, shard_nnz=shard_nnz))
    predicted = model.predict(X)
    for name in set(NAMES[task]) - {"pinball_loss"}:
        theirs = getattr(metrics, name if hasattr(metrics, name) else f"{name}_score")
        assert getattr(found, name) == pytest.approx(theirs(y, predicted, sample_weight=weight)), name
    if task == "quantiles":
        assert found.pinball_loss == pytest.approx(metrics.mean_pinball_loss(y, predicted, sample_weight=weight, alpha=0.3))
    if task == "classes":
        p, target = model.probabilities_of(model.decision_function(X)), (y + 1).astype(int)
        assert found.macro_f1 == pytest.approx(metrics.f1_score(y, predicted, sample_weight=weight, average="macro"))
        assert found.log_loss == pytest.approx(metrics.log_loss(y, p, sample_weight=weight))
        assert found.brier_score == pytest.approx(np.average(((p - np.eye(3)[target]) ** 2).sum(axis=1), weights=weight))
        assert found.calibration_error == pytest.approx(calibration_error(p.max(axis=1), p.argmax(axis=1) == target, weight))
    if task == "binary":
        s, p = model.decision_function(X), np.reshape(model.predict_proba(X).T, (-1, len(y)))[-1]
        assert np.sum(s == 0) > 5
        assert found.roc_auc == pytest.approx(metrics.roc_auc_score(y, s, sample_weight=weight))
        assert found.average_precision == pytest.approx(metrics.average_precision_score(y, s, sample_weight=weight))
        assert found.log_loss == pytest.approx(metrics.log_loss(y, p, sample_weight=weight))
        assert found.brier_score == pytest.approx(metrics.brier_score_loss(y, p, sample_weight=weight))
        assert found.calibration_error == pytest.approx(calibration_error(p, y > 0, weight))
        counts = [found.true_negatives, found.false_positives, found.false_negatives, found.true_positives]
        np.testing.assert_allclose(counts, metrics.confusion_matrix(y, predicted, sample_weight=weight).ravel())
        machine = streamcut.train((X, y), intercept="none")
        hinge = metrics.hinge_loss(y, machine.decision_function(X), sample_weight=weight)
        assert streamcut.evaluate(machine, (X, y, weight)).mean_hinge_loss == pytest.approx(hinge)


def test_many_rows_with_ties_are_measured_in_pieces():
    rng = np.random.default_rng(1)
    y = rng.choice([-1.0, 1.0], size=600_000)
    X = np.round(rng.normal(size=600_000) + y, 2)[:, None]
    model = streamcut.train((X[:2000], y[:2000]))
    found, s = streamcut.evaluate(model, streamcut.rows(X, y, shard_nnz=100_000)), model.decision_function(X)
    assert found.roc_auc == pytest.approx(metrics.roc_auc_score(y, s), rel=1e-12)
    assert found.average_precision == pytest.approx(metrics.average_precision_score(y, s), rel=1e-12)


def test_what_one_class_leaves_undefined_is_none():
    X, y = rows("binary")
    model = streamcut.train((X, y))
    found = streamcut.evaluate(model, (X[y < 0], y[y < 0]))
    assert found.roc_auc is found.average_precision is found.recall is found.balanced_accuracy is None
    assert next(iter(found.measures())) == "accuracy"
    assert found.f1 == 0.0
    assert streamcut.evaluate(model, (X[y > 0], y[y > 0])).roc_auc is None
    silent = model.predict(X) < 0
    assert streamcut.evaluate(model, (X[silent], y[silent])).precision is None
    with pytest.raises(AttributeError, match="no measure 'nonsense'"):
        _ = found.nonsense
    with pytest.raises(BadInputError, match=r"row 7 \(0-based\) has label 2, but the model knows only -1 and 1"):
        streamcut.evaluate(model, (X[:9], [1, 1, 1, 1, 1, 1, 1, 2, 1]))
    rest = streamcut.train((X, np.where(y > 0, 4.0, np.arange(300) % 3)), task="binary", positive_label=4)
    of_all = streamcut.evaluate(rest, (X[:3], [4, 1, 2]))
    assert of_all.true_positives + of_all.false_negatives == 1


def test_measures_of_rankings():
    """Means over queries; gains are 2^label − 1."""
    rng = np.random.default_rng(5)
    X, qid = rng.standard_normal((120, 3)), np.repeat(np.arange(20), 6)
    y = np.clip(np.round(X[:, 0] + rng.standard_normal(120)), 0, 3)
    model = streamcut.train(streamcut.rows(X, y, qid=qid))
    found, s, queries = streamcut.evaluate(model, streamcut.rows(X, y, qid=qid)), model.decision_function(X), y.reshape(20, 6)
    for k in (1, 5):
        assert getattr(found, f"ndcg_at_{k}") == pytest.approx(metrics.ndcg_score(2**queries - 1, s.reshape(20, 6), k=k))
    means = [metrics.average_precision_score(one > 0, of) for one, of in zip(queries, s.reshape(20, 6), strict=True) if one.any()]
    assert found.map == pytest.approx(sum(means) / 20)


def test_measures_of_sequences():
    """Chunks begin with B-x, or with an I-x that no x precedes."""
    rng = np.random.default_rng(6)
    letters = rng.choice(list("obi"), 200)
    X = (letters[:, None] == list("obi")) + rng.standard_normal((200, 3))
    qid, y = np.repeat(np.arange(40), 5), np.argmax(letters[:, None] == list("obi"), axis=1) + 1.0
    data = streamcut.rows(X, y, qid=qid)
    model = streamcut.train(data, task="sequence")
    found = streamcut.evaluate(model, data, label_names={1.0: "O", 2.0: "B-x", 3.0: "I-x"})
    predicted = np.array(list("obi"))[model.predict(X, qid=qid).astype(int) - 1]

    def chunks(tags: np.ndarray) -> set:
        tags = [(q, "".join(tags[qid == q])) for q in range(40)]
        return {(q, chunk.span()) for q, text in tags for chunk in re.finditer("bi*|i+", text)}

    ours, true = chunks(predicted), chunks(letters)
    assert found.accuracy == pytest.approx(np.mean(predicted == letters))
    assert found.sequence_accuracy == pytest.approx(np.mean((predicted == letters).reshape(40, 5).all(axis=1)))
    assert found.chunk_f1 == pytest.approx(2 * len(ours & true) / (len(ours) + len(true)))
    assert found.chunk_count == len(true)
