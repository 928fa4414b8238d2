"""Measures equal scikit-learn's, ties and weights included."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

import streamcut
from streamcut import evaluate
from streamcut.errors import BadInputError
from streamcut.measures import separation
from streamcut.models.certificate import Certificate, StopReason
from streamcut.models.linear import LinearModel

CERTIFICATE = Certificate(1.0, 1.0, 1.0, None, None, True, StopReason.CONVERGED)
IDENTITY = LinearModel(
    weights=np.ones(1), intercept=0.0, bias=0.0, labels=(-1.0, 1.0), C=1.0, certificates=(CERTIFICATE,)
)  # the score of a row is its only value


def evaluated(scores, y, weight=None, shard_nnz=5):
    return evaluate(IDENTITY, streamcut.rows(sp.csr_array(np.asarray(scores)[:, None]), y, weight=weight, shard_nnz=shard_nnz))


@st.composite
def scored_rows(draw):
    """Few distinct scores, so that ties abound; both classes; weights sometimes, 0 among them."""
    n = draw(st.integers(2, 40))
    scores = draw(st.lists(st.integers(-3, 3).map(lambda k: k / 2), min_size=n, max_size=n))
    y = draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=n - 2, max_size=n - 2))
    weight = draw(st.none() | st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=n - 2, max_size=n - 2))
    return np.array(scores), np.array([-1.0, 1.0, *y]), None if weight is None else np.array([1.0, 2.0, *weight])


@given(scored_rows())
@settings(max_examples=60, deadline=None)
def test_measures_equal_those_of_scikit_learn(case):
    scores, y, weight = case
    found = evaluated(scores, y, weight)
    said = np.where(scores > 0, 1.0, -1.0)
    words = {"sample_weight": weight}
    expected = {
        "accuracy": metrics.accuracy_score(y, said, **words),
        "balanced_accuracy": metrics.balanced_accuracy_score(y, said, **words),
        "roc_auc": metrics.roc_auc_score(y, scores, **words),
        "average_precision": metrics.average_precision_score(y, scores, **words),
        "recall": metrics.recall_score(y, said, **words),
        "mean_hinge_loss": metrics.hinge_loss(y, scores, **words),
    }
    if found.precision is not None:
        expected["precision"] = metrics.precision_score(y, said, **words)
        expected["f1"] = metrics.f1_score(y, said, **words)
    for name, value in expected.items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-12, abs=1e-12), name
    matrix = metrics.confusion_matrix(y, said, labels=[-1, 1], **words).ravel()
    ours = [found.true_negatives, found.false_positives, found.false_negatives, found.true_positives]
    np.testing.assert_allclose(ours, matrix, rtol=1e-12)


def test_accuracy_comes_first():
    found = evaluated(np.array([1.0, -1.0]), np.array([1.0, 1.0]))
    assert next(iter(found.measures().items())) == ("accuracy", 0.5)
    assert all(getattr(found, name) == value for name, value in found.measures().items())
    with pytest.raises(AttributeError, match="no measure 'nonsense'"):
        _ = found.nonsense


@pytest.mark.parametrize("weighted", [False, True])
def test_many_rows_in_many_pieces(weighted, monkeypatch):
    monkeypatch.setattr(separation, "QUERIES_AT_ONCE", 64)
    rng = np.random.default_rng(1)
    y = rng.choice([-1.0, 1.0], size=5000, p=[0.9, 0.1])
    scores = np.round(rng.normal(size=5000) + y, 2)
    weight = rng.exponential(size=5000) if weighted else None
    found = evaluated(scores, y, weight, shard_nnz=300)
    assert found.roc_auc == pytest.approx(metrics.roc_auc_score(y, scores, sample_weight=weight), rel=1e-12)
    assert found.average_precision == pytest.approx(metrics.average_precision_score(y, scores, sample_weight=weight), rel=1e-12)


def test_what_one_class_leaves_undefined_is_none():
    found = evaluated([1.0, -1.0], [-1.0, -1.0])
    assert found.roc_auc is found.average_precision is found.recall is found.balanced_accuracy is None
    assert found.accuracy == 0.5
    assert found.f1 == 0.0
    assert evaluated([1.0, -1.0], [1.0, 1.0]).roc_auc is None
    assert evaluated([-1.0, -2.0], [1.0, -1.0]).precision is None


def test_rows_of_weight_zero_are_as_if_absent():
    y, scores = np.array([1.0, -1.0, 1.0, -1.0]), np.array([0.5, 0.5, -1.0, 3.0])
    weighted = evaluated(scores, y, np.array([1.0, 1.0, 1.0, 0.0])).measures()
    removed = evaluated(scores[:3], y[:3]).measures()
    assert {**weighted, "rows": 3} == removed


def test_a_label_that_the_model_does_not_know_is_an_error():
    with pytest.raises(BadInputError, match=r"row 7 \(0-based\) has label 2, but the model knows only -1 and 1"):
        evaluated(np.ones(9), [1, 1, 1, 1, 1, 1, 1, 2, 1])


def test_a_model_of_one_against_the_rest_knows_every_label():
    from dataclasses import replace

    model = replace(IDENTITY, labels=(-1.0, 4.0), rest=True)
    found = evaluate(model, (np.array([[1.0], [-1.0], [2.0]]), [4, 1, 2]))
    assert (found.true_positives, found.true_negatives, found.false_positives) == (1, 1, 1)
