"""Structured tasks of one's own: the protocol, its certificate, and what is refused."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from reference import viterbi

import streamcut
from streamcut import structured, train
from streamcut.errors import BadInputError, UsageError


class Ordered:
    """Grades 0 … K − 1, where a mistake costs the distance: the README's example."""

    def __init__(self, grades):
        self.grades = grades

    def size(self, n_features):
        return self.grades * n_features

    def joint_features(self, x, y):
        return x.indices + int(y[0]) * x.shape[1], x.data

    def loss(self, y, answer):
        return abs(y[0] - answer[0])

    def argmax(self, w, x, y=None):
        scores = (x @ w.reshape(self.grades, -1).T).ravel()
        if y is not None:
            scores = scores + abs(np.arange(self.grades) - y[0])
        return np.array([np.argmax(scores)])


class Chain:
    """Sequences by trying every labelling: what the built-in task computes in another way."""

    def __init__(self, K):
        self.K = K

    def size(self, n_features):
        return n_features * self.K + self.K**2

    def joint_features(self, x, y):
        return viterbi.joint_features(x.toarray(), y.astype(int), self.K)

    def loss(self, y, answer):
        return np.count_nonzero(y != answer)

    def argmax(self, w, x, y=None):
        d = x.shape[1]
        target = np.zeros(x.shape[0], int) if y is None else y.astype(int)
        W, T = w[: d * self.K].reshape(d, self.K), w[d * self.K :].reshape(self.K, self.K)
        return np.array(viterbi.worst(target, x @ W, T, augment=float(y is not None))[1], float)


def grades(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, 6), density=0.6, format="csr", rng=rng)
    return X, np.digitize(X @ rng.standard_normal(6), [-0.4, 0.0, 0.5]).astype(float)


def test_a_task_of_ones_own():
    X, y = grades()
    model = structured.train(streamcut.rows(X, y), Ordered(4), tol_relative=1e-3)
    W = model.weights.reshape(4, 6)
    scores = X @ W.T + abs(np.arange(4) - y[:, None])
    F = 0.5 * np.sum(W**2) + np.sum(scores.max(axis=1) - (X @ W.T)[np.arange(len(y)), y.astype(int)])
    certificate = model.certificate
    assert certificate.converged
    assert F <= certificate.primal <= F * (1 + 1e-11)
    assert 0.999 * certificate.primal <= certificate.lower_bound <= certificate.primal
    found = np.array(model.predict(streamcut.rows(X, y))).ravel()
    assert np.array_equal(found, np.argmax(X @ W.T, axis=1))
    assert np.abs(found - y).mean() < 0.5
    again = structured.train(streamcut.rows(X, y, shard_nnz=60), Ordered(4), tol_relative=1e-3)
    assert again.weights.tobytes() == model.weights.tobytes()  # no law is asked of tasks of one's own


def test_a_chain_in_python_is_the_built_in_one():
    rng = np.random.default_rng(2)
    lengths = rng.integers(1, 4, 15)
    y = rng.integers(0, 3, lengths.sum()).astype(float)
    X = sp.csr_array(rng.standard_normal((len(y), 3)) + y[:, None])
    data = streamcut.rows(X, y, qid=np.repeat(np.arange(15), lengths))
    own = structured.train(data, Chain(3), C=0.3, tol_relative=1e-3).certificate
    built_in = train(data, task="sequence", C=0.3, bias=0, tol_relative=1e-3).certificate
    assert own.lower_bound <= built_in.primal
    assert built_in.lower_bound <= own.primal


def test_what_structured_tasks_refuse():
    X, y = grades(20)

    class Hasty(Ordered):
        def argmax(self, w, x, y=None):
            return np.array([0])

    with pytest.raises(UsageError, match="Hasty: argmax"):
        structured.train(streamcut.rows(X, y), Hasty(4), max_passes=50)
    model = structured.train(streamcut.rows(X, y), Ordered(4), max_passes=2)
    with pytest.raises(BadInputError, match="features"):
        model.predict(streamcut.rows(np.ones((2, 9)), np.zeros(2)))
    with pytest.raises(KeyboardInterrupt):
        structured.train(streamcut.rows(X, y), Ordered(4), stop=lambda: True)
    for options, complaint in (
        ({"kernel": "rbf"}, "kernel: for rbf give nystroem or fourier"),
        ({"nystroem": 10}, "nystroem: the linear kernel has none"),
        ({"kernel": "rbf", "nystroem": 10, "fourier": 10}, "nystroem|fourier"),
        ({"solver": "ocas"}, "solver: 'ocas' is unknown; use one of stabilised, cpa"),
    ):
        with pytest.raises(UsageError, match=complaint):
            structured.train(streamcut.rows(X, y), Ordered(4), **options)


@pytest.mark.parametrize("C", [0.1, 1.0])
def test_cuts_ahead_of_the_best_point_save_passes(C):
    X, y = grades()
    both = [
        structured.train(streamcut.rows(X, y), Ordered(4), C=C, tol=None, tol_relative=1e-3, solver=solver)
        for solver in ("stabilised", "cpa")
    ]
    ours, cpa = (model.certificate for model in both)
    assert ours.converged
    assert cpa.converged
    assert ours.lower_bound <= cpa.primal
    assert cpa.lower_bound <= ours.primal
    assert both[0].history[-1].passes <= 0.8 * both[1].history[-1].passes
    assert all(a.primal >= b.primal for a, b in pairwise(both[0].history)), "the best point only improves"


@pytest.mark.parametrize("features", [{"nystroem": 40}, {"fourier": 60}], ids=["Nyström", "Fourier"])
def test_a_task_of_ones_own_with_a_kernel(features):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(240, 2))
    y = np.digitize(np.sqrt((X**2).sum(axis=1)), [0.8, 1.4]).astype(float)  # rings, which no line tells apart
    train_rows, rest = streamcut.rows(X[:160], y[:160]), streamcut.rows(X[160:], y[160:])
    options = {"C": 10.0, "tol": None, "tol_relative": 0.05}
    wrong = {}
    for name, more in (("linear", {}), ("kernel", {"kernel": "rbf", "gamma": 1.0, **features})):
        model = structured.train(train_rows, Ordered(3), **options, **more)
        assert model.certificate.converged
        wrong[name] = np.mean(np.array(model.predict(rest)).ravel() != y[160:])
    assert wrong["kernel"] < 0.15 < 0.3 < wrong["linear"]
    assert len(model.weights) == 3 * model.map.n_features
    Z = model.map.features(rest.read(0)).astype(float)
    expected = np.argmax(Z @ model.weights.reshape(3, -1).T, axis=1)
    assert np.array_equal(np.array(model.predict(rest)).ravel(), expected)
