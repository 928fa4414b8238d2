"""A certificate is confirmed by its data, and a forged one is caught."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.svm import LinearSVC

import streamcut
from streamcut import train, verify
from streamcut.errors import BadInputError, UsageError


def problem(weighted: bool, n=400, d=12):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)
    y = np.where(X @ rng.normal(size=d) + rng.normal(size=n) > 0.5, 1.0, -1.0)
    weight = rng.integers(0, 3, size=n).astype(float) if weighted else None
    return X, y, weight


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "weighted"])
def trained(request):
    X, y, weight = problem(request.param)
    data = streamcut.rows(X, y, weight=weight, shard_nnz=300)
    model = train(data, C=0.3, positive_weight=2.0, bias=0.5, tol=1e-5, tol_relative=None, scheduler="sync")
    return model, data, X, y, weight


def optimum(X, y, weight) -> float:
    """min F from LIBLINEAR, for the options of `trained`; its objective is evaluated here, in the obvious way."""
    u = np.where(y > 0, 2.0, 1.0) * (1.0 if weight is None else weight)
    Z = np.column_stack([X, np.full(len(X), 0.5)])
    fitted = LinearSVC(loss="hinge", C=0.3, tol=1e-10, max_iter=1_000_000, fit_intercept=False)
    w = fitted.fit(Z, y, sample_weight=u).coef_[0]
    return 0.5 * w @ w + 0.3 * u @ np.maximum(0, 1 - y * (Z @ w))


def test_a_true_certificate_is_confirmed(trained):
    model, data, X, y, weight = trained
    found = verify(model, data, prove=True)
    best = optimum(X, y, weight)
    assert found.rows == len(y)
    assert found.same_data
    assert found.consistent
    assert found.primal == pytest.approx(model.certificate.primal, rel=1e-11)
    assert found.witness_bound == pytest.approx(model.certificate.lower_bound, rel=1e-12)
    slack = 1e-9 * best
    assert found.proved
    assert found.convergence_proved
    assert model.certificate.lower_bound - slack <= found.proof.lower_bound <= best + slack
    assert best <= found.primal + slack


def test_nothing_is_proved_unless_asked(trained):
    model, data, *_ = trained
    found = verify(model, data)
    assert found.proof is found.proved is found.proved_gap is None
    assert found.consistent


def test_a_model_without_witness_can_still_be_proved(trained):
    model, data, *_ = trained
    found = verify(replace(model, witness=None), data, prove=True)
    assert found.bound_agrees is None
    assert found.proved
    assert found.consistent


@pytest.mark.parametrize("field", ["primal", "lower_bound"])
def test_a_forged_certificate_is_caught(trained, field):
    model, data, *_ = trained
    forged = replace(model.certificate, **{field: getattr(model.certificate, field) * (1 + 1e-7)})
    assert not verify(replace(model, certificate=forged), data).consistent


def test_a_witness_above_the_objective_is_caught(trained):
    model, data, *_ = trained
    witness = replace(model.witness, b=model.witness.b * 2)
    forged = replace(model.certificate, lower_bound=witness.bound(model.certificate.c_bar))
    found = verify(replace(model, witness=witness, certificate=forged), data)
    assert found.bound_agrees
    assert not found.consistent


def test_other_data_are_refused_unless_forced(trained):
    model, _, X, y, weight = trained
    other = streamcut.rows(2 * X, y, weight=weight)
    with pytest.raises(UsageError, match="force=True"):
        verify(model, other)
    assert not verify(model, other, force=True).same_data


def test_unknown_labels_are_refused(trained):
    model, _, X, y, _ = trained
    with pytest.raises(BadInputError, match=r"row 3 \(0-based\) has label 9"):
        verify(model, (X, np.where(np.arange(len(y)) == 3, 9.0, y)), force=True)
