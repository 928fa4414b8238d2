"""Sampled cuts: close to the optimum, what they cost, and what is proved: estimates are taken for no bound and no objective."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from kit.groups import sequences
from laws.problems import Rows, objective
from sklearn.metrics.pairwise import rbf_kernel

import streamcut
from streamcut import train, verify
from streamcut.errors import UsageError

SOLVERS = ("sampled-linear", "sampled-constant")
RBF = {"kernel": "rbf", "gamma": 0.5}


@cache
def problem(seed=0, n=80, classes=2):
    """(X, y, row weights, some of them 0)."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, 3)) > 0.2, rng.standard_normal((n, 3)), 0.0)
    scores = np.stack([np.sin(2 * X[:, 0] + c) + X[:, 1] * (c - 0.5) for c in range(classes)], axis=1)
    y = np.argmax(scores + 0.5 * rng.standard_normal((n, classes)), axis=1).astype(float)
    weight = rng.uniform(0.0, 3.0, n)
    weight[:3] = 0.0
    return X, y, weight


def by_row(model, X, coefficients):
    """`coefficients` of the support vectors by row of X; rows of X differ."""
    places = {row.tobytes(): i for i, row in enumerate(X)}
    found = np.zeros((len(X), *coefficients.shape[1:]))
    found[[places[vector.tobytes()] for vector in model.support.toarray()]] = coefficients
    return found


def hinge_optimum(K, sign, C):
    """The least ½‖w‖² + C Σ max(0, 1 − sign f) without bias, as dual coordinate ascent finds it."""
    alpha = np.zeros(len(K))
    for _ in range(300):
        for i in range(len(K)):
            step = (1.0 - sign[i] * (K[i] @ (alpha * sign))) / K[i, i]
            alpha[i] = min(max(alpha[i] + step, 0.0), C)
    f = K @ (alpha * sign)
    return 0.5 * (alpha * sign) @ f + C * np.maximum(0.0, 1.0 - sign * f).sum()


def test_kernel_values_are_those_of_rows_and_samples():
    X, y, _ = problem(n=120)
    facts = train((X, y), solver="sampled-linear", samples=30, bias=0, tol=1e-2, **RBF).facts
    cuts = facts["iterations"] - 1
    assert 0.9 * cuts * len(y) * 30 < facts["kernel_evaluations"] <= cuts * (len(y) * 30 + 30 * 30)  # O(T m r)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("samples", [5, 20, 60])
@pytest.mark.parametrize("seed", [0, 1])
def test_no_answer_of_sequences_is_below_the_bound(solver, samples, seed):
    X, y, qid = sequences(seed=seed)
    data = streamcut.rows(X, y, qid=qid, shard_nnz=60)
    common = {"task": "sequence", "C": 0.5, "bias": 0}
    best = train(data, tol=1e-5, tol_relative=None, **common).certificate
    model = train(data, solver=solver, samples=samples, tol=1e-2, max_passes=60, seed=seed, **common)
    found = model.certificate
    assert found.lower_bound <= best.primal
    assert best.lower_bound <= found.primal
    assert found.lower_bound > 0.0
    if samples == 60:
        linear = SimpleNamespace(weights=model.support.T @ model.coefficients, intercept=0.0, transitions=model.transitions)
        assert model.converged
        assert found.primal == pytest.approx(objective(linear, Rows(X, y, qid), {"task": "sequence", "C": 0.5}), rel=1e-10)
    with pytest.raises(UsageError, match="task sequence: its certificate cannot be verified"):
        verify(model, data)


def lies(model):
    """The model with a lie in it, by its name."""
    c, point = model.certificate, model.point
    more = point.coefficients.copy()
    more[np.argmax(np.abs(more).reshape(len(more), -1).max(axis=1))] *= 1.5
    swapped = model.support.copy()
    swapped.data[0] += 1e-6
    yield "primal", replace(model, certificates=(replace(c, primal=c.primal * (1 - 1e-7)),))
    yield "bound", replace(model, certificates=(replace(c, lower_bound=c.lower_bound * (1 + 1e-7)),))
    yield "point", replace(model, point=replace(point, coefficients=more))
    yield "other class", replace(model, point=replace(point, coefficients=-point.coefficients))
    yield "support vector", replace(model, support=swapped)
    yield "C", replace(model, problem=replace(model.problem, C=model.C * 0.9))


@pytest.mark.parametrize(("seed", "solver"), [(20, "sampled-linear"), (33, "sampled-linear"), (7, "sampled-constant")])
def test_an_honest_model_whose_scores_cancel_out_is_not_called_a_liar(seed, solver):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((30, 3)) * 10.0 ** rng.uniform(0, 2, 3), np.arange(30) % 2.0
    how = {"kernel": "poly", "gamma": 0.1, "degree": 2, "coef0": 1.0, "C": 5000.0}
    model = train(streamcut.rows(X, y), solver=solver, samples=6, tol=0.05, **how)
    assert verify(model, streamcut.rows(X, y, shard_nnz=10)).consistent


@pytest.mark.parametrize("classes", [2, 4])
def test_lies_are_caught(classes):
    X, y, _ = problem(5, classes=classes)
    data, task = streamcut.rows(X, y), "binary" if classes == 2 else "multiclass"
    model = train(data, task=task, solver="sampled-linear", samples=40, tol=1e-2, **RBF)
    assert verify(model, data).consistent
    for lie, other in lies(model):
        assert not verify(other, data).consistent, lie


@pytest.mark.parametrize("solver", SOLVERS)
def test_estimates_are_no_convergence(solver):
    outcomes, coefficients = set(), set()
    for seed in range(5):
        X, y, _ = problem(seed, n=300)
        model = train(streamcut.rows(X, y), solver=solver, samples=20, seed=seed, tol=1e-2, C=5.0, **RBF)
        found = model.certificate
        outcomes.add(str(model.stop_reason))
        coefficients.add(model.coefficients.tobytes())
        assert model.converged == (found.gap <= 1e-2 * found.c_bar)
        assert str(model.stop_reason) == ("converged" if model.converged else "samples")
    assert "samples" in outcomes
    assert len(coefficients) == 5
    words = model.in_words()
    assert words.startswith("Not converged: the tolerance is met by the estimate from samples")
    assert "a larger samples helps" in words
    result = model.result()
    assert {"primal", "lower_bound", "gap", "primal_estimate", "bound_estimate"} <= set(result)
    assert not {"objective", "model_value"} & set(result)


@pytest.mark.parametrize("solver", SOLVERS)
def test_all_that_is_read_counts_as_passes(solver):
    """However often samples are drawn again."""
    X, y, _ = problem(n=600)
    model = train(streamcut.rows(X, y, shard_nnz=300), solver=solver, samples=20, tol=1e-3, max_passes=300, **RBF)
    redraws, passes = sum(line["redraws"] for line in model.history), model.history[-1]["passes"]
    assert model.resources["readings"] <= passes + 2.0, "the proof, and statistics of the rows"
    assert (redraws > 0) == (solver == "sampled-linear")


def test_who_is_interrupted_before_the_proof_has_a_model_without_one():
    X, y, _ = problem(n=300)
    asked, data = [], streamcut.rows(X, y, shard_nnz=100)
    train(data, solver="sampled-linear", samples=20, max_passes=3, stop=lambda: asked.append(0) or False, **RBF)
    late = iter(range(len(asked)))
    model = train(data, solver="sampled-linear", samples=20, max_passes=3, stop=lambda: next(late) == len(asked) - 1, **RBF)
    assert model.stop_reason == "interrupted"
    assert model.certificate is model.point is None
    assert "nothing is proved" in model.in_words()
    with pytest.raises(UsageError, match="claims no bound"):
        verify(model, data)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("samples", "seed"), [(5, 0), (12, 1), (30, 2), (80, 3)])
def test_primal_and_bound_of_two_classes(solver, weighted, samples, seed):
    X, y, weight = problem(seed)
    C, bias, sign = 2.0, 0.7, np.where(y == 1.0, 1.0, -1.0)
    u = weight * np.where(y == 1.0, 1.6, 1.0) if weighted else np.ones(len(y))
    data = streamcut.rows(X, y, weight=weight if weighted else None)
    model = train(
        data, solver=solver, C=C, bias=bias, samples=samples, seed=seed, tol=1e-2, max_passes=60,
        positive_weight=1.6 if weighted else 1.0, **RBF,
    )  # fmt: skip
    K = rbf_kernel(X, gamma=0.5) + bias**2
    found = model.certificate
    f = K @ by_row(model, X, model.coefficients)
    w = by_row(model, X, model.coefficients)
    primal = 0.5 * w @ f + C * u @ np.maximum(0.0, 1.0 - sign * f)
    assert found.primal - found.raised == pytest.approx(primal, rel=1e-11)
    assert primal < found.primal < primal * (1 + 1e-9)
    alpha = sign * by_row(model, X, model.point.coefficients)
    assert np.all(alpha >= 0.0)
    assert np.all(alpha <= C * u * (1 + 1e-12))
    value = alpha.sum() - 0.5 * (alpha * sign) @ K @ (alpha * sign)
    assert found.lower_bound == pytest.approx(max(value, 0.0), rel=1e-9)
    assert found.lower_bound <= value
    if not weighted:
        assert found.lower_bound <= hinge_optimum(K, sign, C) * (1 + 1e-12)
    checked = verify(model, data)
    assert checked.consistent
    assert checked.outcome == "reached"
