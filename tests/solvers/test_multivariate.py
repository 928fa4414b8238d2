"""Losses of whole labellings: the search over tables against all labellings, and certificates that hold."""

import numpy as np
import pytest
from kit.multivariate import problem
from reference import svm

import streamcut
from streamcut import evaluate, train
from streamcut.errors import BadInputError, UsageError


def test_errors_are_the_hinge_loss():
    X, y = problem()
    dense = np.hstack([X.toarray(), np.ones((60, 1))])
    primal, dual = svm.optimum(dense, np.where(y > 0, 1.0, -1.0), 0.4, np.ones(60))
    certificate = train(streamcut.rows(X, y), loss="error", C=0.4, tol=1e-6, tol_relative=None).certificate
    assert certificate.lower_bound <= primal * (1 + 1e-9)
    assert certificate.primal >= dual * (1 - 1e-9)
    assert certificate.gap <= 1e-6 * 24.0


def test_what_makes_no_sense_is_refused():
    X, y = problem()
    with pytest.raises(BadInputError, match="weights"):
        train(streamcut.rows(X, y, weight=np.ones(60) * 2), loss="f1")
    with pytest.raises(UsageError, match="positive_weight"):
        train(streamcut.rows(X, y), loss="f1", positive_weight=2.0)
    with pytest.raises(UsageError, match="k"):
        train(streamcut.rows(X, y), loss="prec@k")


def test_optimising_f1_gives_a_better_f1(load):
    X, y = load("a9a")
    test = load("a9a", "test")
    data = streamcut.rows(X, y)
    scores = [evaluate(train(data, C=0.1, loss=loss, max_passes=60), test).f1 for loss in ("hinge", "f1")]
    assert scores[1] > scores[0] + 0.01
