"""Measures are those of scikit-learn; those that it lacks, of rankings and sequences, are written out here."""

from __future__ import annotations

import re

import numpy as np
import pytest
from laws.problems import ROW_LOSSES
from sklearn import metrics

import streamcut
from streamcut.errors import BadInputError

LABELLED = list(ROW_LOSSES)[:4]
NAMES = {
    "binary": ("accuracy", "balanced_accuracy", "precision", "recall", "f1"),
    "classes": ("accuracy", "balanced_accuracy"),
    "numbers": ("r2", "mean_squared_error", "mean_absolute_error", "root_mean_squared_error"),
    "quantiles": ("r2",),
    "medians": ("r2",),
    "counts": ("r2", "mean_poisson_deviance"),
}
OPTIONS = {
    "binary": {"loss": "logistic"},
    "classes": {"task": "multiclass", "loss": "softmax"},
    "numbers": {"task": "regression"},
    "quantiles": {"task": "regression", "loss": "quantile", "quantile": 0.3},
    "medians": {"task": "regression", "loss": "quantile"},
    "counts": {"task": "regression", "loss": "poisson"},
}
N = 300
WEIGHT = np.where(np.arange(N) % 7 == 0, 0.0, np.random.default_rng(4).uniform(0.5, 2, N))
WEIGHT[:25] = 0.0  # the first shards weigh nothing


def rows(task: str) -> tuple[np.ndarray, np.ndarray]:
    """X of few values, so that many scores are equal and some 0, and y."""
    rng = np.random.default_rng(3)
    X = rng.integers(-1, 2, (N, 3)).astype(float)
    s = X @ [1.0, 0.5, -2.0] + 0.7 * rng.standard_normal(N)
    targets = {"binary": np.sign(s), "classes": np.clip(np.round(s), -1, 1), "counts": np.floor(np.exp(np.clip(s, -2, 2)))}
    return X, targets.get(task, s)


def calibration_error(p: np.ndarray, hit: np.ndarray, weight: np.ndarray) -> float:
    """Over 15 bins of equal width."""
    bins = np.minimum((15 * p).astype(int), 14)
    return sum(abs(np.sum((weight * (p - hit))[bins == k])) for k in range(15)) / weight.sum()


@pytest.mark.parametrize("weight", [WEIGHT, None], ids=["weighted", "plain"])
@pytest.mark.parametrize("task", NAMES)
def test_measures_are_those_of_scikit_learn(task, weight):
    X, y = rows(task)
    model = streamcut.train((X, y), intercept="none", **OPTIONS[task])
    found = streamcut.evaluate(model, streamcut.rows(X, y, weight=weight, shard_nnz=40 if weight is not None else 10_000))
    weight, predicted = np.ones(N) if weight is None else weight, model.predict(X)
    assert (found.rows, found.weight) == (N, pytest.approx(weight.sum()))
    for name in NAMES[task]:
        theirs = getattr(metrics, name if hasattr(metrics, name) else f"{name}_score")
        assert getattr(found, name) == pytest.approx(theirs(y, predicted, sample_weight=weight)), name
    if "quantile" in OPTIONS[task].values():
        alpha = OPTIONS[task].get("quantile", 0.5)
        assert found.pinball_loss == pytest.approx(metrics.mean_pinball_loss(y, predicted, sample_weight=weight, alpha=alpha))
    if task == "classes":
        p, target = model.probabilities_of(model.decision_function(X)), (y + 1).astype(int)
        assert found.macro_f1 == pytest.approx(metrics.f1_score(y, predicted, sample_weight=weight, average="macro"))
        assert [found.log_loss, found.mean_loss] == pytest.approx([metrics.log_loss(y, p, sample_weight=weight)] * 2)
        assert found.brier_score == pytest.approx(np.average(((p - np.eye(3)[target]) ** 2).sum(axis=1), weights=weight))
        assert found.calibration_error == pytest.approx(calibration_error(p.max(axis=1), p.argmax(axis=1) == target, weight))
        np.testing.assert_allclose(found.confusion_matrix, metrics.confusion_matrix(y, predicted, sample_weight=weight))
        of_class = metrics.precision_recall_fscore_support(y, predicted, sample_weight=weight, zero_division=0)
        off = [calibration_error(p[:, k], target == k, weight) for k in range(3)]
        for name, theirs in zip(("precision", "recall", "f1", "support", "calibration_error"), (*of_class, off), strict=True):
            np.testing.assert_allclose([one[name] or 0.0 for one in found.classes], theirs, err_msg=name)
    if task == "binary":
        s, p = model.decision_function(X), np.reshape(model.predict_proba(X).T, (-1, N))[-1]
        assert np.sum(s == 0) > 5
        assert found.roc_auc == pytest.approx(metrics.roc_auc_score(y, s, sample_weight=weight))
        assert found.average_precision == pytest.approx(metrics.average_precision_score(y, s, sample_weight=weight))
        assert [found.log_loss, found.mean_logistic_loss] == pytest.approx([metrics.log_loss(y, p, sample_weight=weight)] * 2)
        assert found.brier_score == pytest.approx(metrics.brier_score_loss(y, p, sample_weight=weight))
        assert found.calibration_error == pytest.approx(calibration_error(p, y > 0, weight))
        bins = [np.minimum((15 * p).astype(int), 14) == k for k in range(15)]
        theirs = [[np.average(of, weights=weight * b) for of in (p, y > 0)] + [weight[b].sum()] for b in bins if weight[b].sum()]
        np.testing.assert_allclose([[b["mean"], b["share"], b["weight"]] for b in found.reliability], theirs)
        counts = [found.true_negatives, found.false_positives, found.false_negatives, found.true_positives]
        np.testing.assert_allclose(counts, metrics.confusion_matrix(y, predicted, sample_weight=weight).ravel())


@pytest.mark.parametrize("loss", LABELLED)
def test_mean_losses_are_those_that_training_minimises(loss):
    """Of labels 0 and 4, and of three classes, one against the rest or jointly; near kinks, on them, and far away."""
    X, y = rows("classes")
    X = np.append(X / 2, np.random.default_rng(1).standard_normal((N, 1)), axis=1)
    several = streamcut.rows(X, y, weight=WEIGHT)
    for strategy in ("one-vs-rest", "crammer-singer") if loss == "hinge" else ("one-vs-rest",):
        model = streamcut.train(several, task="multiclass", strategy=strategy, **({} if loss == "hinge" else {"loss": loss}))
        S, one = model.decision_function(X), y[:, None] == [-1, 0, 1]
        losses = ROW_LOSSES[loss](S, np.where(one, 1.0, -1.0)).sum(axis=1)
        if strategy == "crammer-singer":
            losses = (S + ~one).max(axis=1) - S[one]
        assert streamcut.evaluate(model, several).mean_loss == pytest.approx(np.average(losses, weights=WEIGHT))
    two = streamcut.rows(X, np.where(y > 0, 4.0, 0.0), weight=WEIGHT)
    for C in (1e-3, 10.0):
        model = streamcut.train(two, loss=loss, C=C)
        losses = ROW_LOSSES[loss](model.decision_function(X), np.where(y > 0, 1.0, -1.0))
        mean = getattr(streamcut.evaluate(model, two), f"mean_{loss.replace('-', '_')}_loss")
        assert mean == pytest.approx(np.average(losses, weights=WEIGHT))


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


@pytest.mark.parametrize("shard_nnz", [30, 10_000])
def test_measures_of_rankings(shard_nnz):
    """Means over queries, some without pairs, of scores with ties; gains are 2^label − 1."""
    rng = np.random.default_rng(5)
    qid = np.repeat(3 * np.arange(30), rng.integers(1, 16, 30))
    X = np.column_stack([rng.integers(-1, 2, len(qid)), rng.integers(0, 2, (len(qid), 2))]).astype(float)
    y = np.clip(np.round(X[:, 0] + rng.standard_normal(len(qid))), 0, 3)
    y[qid == 6], y[qid == 9] = 0.0, 2.0
    data = streamcut.rows(X, y, qid=qid, shard_nnz=shard_nnz)
    model = streamcut.train(data)
    found, s = streamcut.evaluate(model, data), model.decision_function(X)
    queries = [(y[qid == q], s[qid == q]) for q in np.unique(qid)]
    above = [(true[:, None] > true, (of[:, None] < of) + 0.5 * (of[:, None] == of)) for true, of in queries]
    pairs, swapped = np.array([(better.sum(), (better * wrong).sum()) for better, wrong in above]).T
    assert np.sum(pairs == 0) >= 3
    expected = {"queries": 30, "pairs": pairs.sum(), "rows": len(qid), "swapped_pairs": swapped.sum() / pairs.sum()}
    expected["pairwise_accuracy"] = 1 - expected["swapped_pairs"]
    expected["mean_swapped_pairs"] = np.mean(swapped[pairs > 0] / pairs[pairs > 0])
    expected["map"] = sum(metrics.average_precision_score(t > 0, of) for t, of in queries if t.any()) / 30
    for k in (1, 5, 10):  # scikit-learn takes no query of one row
        each = [metrics.ndcg_score([2**t - 1], [of], k=k) if len(t) > 1 else float(t[0] > 0) for t, of in queries]
        expected[f"ndcg_at_{k}"] = np.mean(each)
    assert found.measures() == pytest.approx(expected)
    for labels, known in ((y - 1, False), (np.where(y > 2, 60.0, y), True), (np.where(y > 2, 61.0, y), False)):
        of = streamcut.evaluate(model, streamcut.rows(X, labels, qid=qid))
        assert (of.ndcg_at_5 is not None) == known
        assert of.pairwise_accuracy == pytest.approx(expected["pairwise_accuracy"])


def test_measures_of_a_roc_area_are_those_of_scikit_learn():
    X, y = rows("binary")
    y = np.where(y > 0, 5.0, 3.0)
    model = streamcut.train((X, y), task="roc-area")
    found, s = streamcut.evaluate(model, streamcut.rows(X, y, weight=WEIGHT, shard_nnz=40)), model.decision_function(X)
    assert found.roc_auc == pytest.approx(metrics.roc_auc_score(y, s, sample_weight=WEIGHT))
    assert found.average_precision == pytest.approx(metrics.average_precision_score(y == 5, s, sample_weight=WEIGHT))
    assert found.rows == N
    assert streamcut.evaluate(model, (X[y > 4], y[y > 4])).roc_auc is None
    with pytest.raises(BadInputError, match="needs two labels; these rows have 3, 4, 5"):
        streamcut.evaluate(model, (X, np.append(y[1:], 4.0)))


def test_measures_of_sequences():
    """Chunks begin with B-x, or with an I-x that no x precedes; i and j are I-x and I-y."""
    rng = np.random.default_rng(6)
    letters = rng.choice(list("obij"), 200)
    X = (letters[:, None] == list("obij")) + 0.7 * rng.standard_normal((200, 4))
    qid, y = np.repeat(np.arange(40), 5), np.argmax(letters[:, None] == list("obij"), axis=1) + 1.0
    data = streamcut.rows(X, y, qid=qid, shard_nnz=90)
    model = streamcut.train(data, task="sequence")
    found = streamcut.evaluate(model, data, label_names={1.0: "O", 2.0: "B-x", 3.0: "I-x", 4.0: "I-y"})
    predicted = np.array(list("obij"))[model.predict(X, qid=qid).astype(int) - 1]

    def chunks(tags: np.ndarray) -> set:
        tags = [(q, "".join(tags[qid == q])) for q in range(40)]
        return {
            (q, chunk.span(), "y" if "j" in chunk[0] else "x") for q, text in tags for chunk in re.finditer("bi*|i+|j+", text)
        }

    assert found.accuracy == pytest.approx(np.mean(predicted == letters))
    assert found.sequence_accuracy == pytest.approx(np.mean((predicted == letters).reshape(40, 5).all(axis=1)))
    assert (found.rows, found.sequences) == (200, 40)
    counted = {"chunk_": found.measures(), **{of["type"]: of for of in found.chunk_types}}
    for kind, of in counted.items():
        ours, true = ({chunk for chunk in chunks(tags) if kind in ("chunk_", chunk[2])} for tags in (predicted, letters))
        name = "chunk_" if kind == "chunk_" else ""
        both, (precision, recall, f1, count) = len(ours & true), (of[name + n] for n in ("precision", "recall", "f1", "count"))
        assert both < len(ours) != len(true)
        assert (precision, recall, count) == (both / len(ours), both / len(true), len(true))
        assert f1 == pytest.approx(2 * both / (len(ours) + len(true)))
