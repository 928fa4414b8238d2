"""Losses of whole labellings: errors are the hinge loss, and F1 is worth optimising."""

import numpy as np
from kit.multivariate import problem
from reference import svm

import streamcut
from streamcut import evaluate, train


def test_errors_are_the_hinge_loss():
    X, y = problem()
    dense = np.hstack([X.toarray(), np.ones((60, 1))])
    primal, dual = svm.optimum(dense, np.where(y > 0, 1.0, -1.0), 0.4, np.ones(60))
    certificate = train(streamcut.rows(X, y), loss="error", C=0.4, tol=1e-6, tol_relative=None).certificate
    assert certificate.lower_bound <= primal * (1 + 1e-9)
    assert certificate.primal >= dual * (1 - 1e-9)
    assert certificate.gap <= 1e-6 * 24.0


def test_optimising_f1_gives_a_better_f1(load):
    X, y = load("a9a")
    test = load("a9a", "test")
    data = streamcut.rows(X, y)
    scores = [evaluate(train(data, C=0.1, loss=loss, max_passes=60), test).f1 for loss in ("hinge", "f1")]
    assert scores[1] > scores[0] + 0.01
