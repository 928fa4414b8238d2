"""A certificate is confirmed by its data, and a forged one is caught; of kernel models from rows and support vectors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import forged_models
from reference.kernels import matrix

import streamcut
from streamcut import load_model, save_model, train, verify
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


def test_too_few_passes_prove_nothing_and_refute_nothing(trained):
    model, data, *_ = trained
    found = verify(model, data, max_passes=1)
    assert (found.outcome, found.passes, found.problems) == ("undecided", 1, ())
    assert 0.0 < found.lower_bound < model.certificate.lower_bound


def test_exit_codes(trained, tmp_path, run):
    _, _, X, y, _ = trained
    with streamcut.create(tmp_path / "a.zarr") as out:
        out.append(sp.csr_array(X), y)
    model = train(tmp_path / "a.zarr", tol=1e-6, tol_relative=None)
    above = replace(model.certificate, lower_bound=1.01 * model.certificate.primal)
    for number, (record, more) in {
        0: (model.certificate, ()),
        5: (above, ()),
        9: (model.certificate, ("--max-passes", 1)),
    }.items():
        replace(model, certificates=(record,)).save(tmp_path / "m.npz")
        assert run("verify", tmp_path / "m.npz", *more)[0] == number


def test_other_data_are_refused_unless_forced(trained):
    model, _, X, y, weight = trained
    other = streamcut.rows(2 * X, y, weight=weight)
    with pytest.raises(UsageError, match="force=True"):
        verify(model, other)
    assert not verify(model, other, force=True).same_data


FORGED = ["hinge weights", "poisson l1", "one-vs-rest logistic l1", "one-class", "ranking", "smo"]
UNUSED = {"smo": {"unit", "intercept"}, "ranking": {"unit", "intercept"}}  # by kernel models; of a ranking it orders nothing


@pytest.mark.parametrize("kind", FORGED)
def test_no_forged_record_is_accepted(kind):
    model, rows = forged_models.trained(kind)
    assert verify(model, forged_models.dataset(rows)).outcome == "reached"
    for change, other, changed in forged_models.changes(model, rows):
        try:
            found = verify(other, forged_models.dataset(changed))
        except (BadInputError, UsageError):
            continue  # refused by name
        assert found.outcome != "reached" or change in UNUSED.get(kind, set()), change


@pytest.mark.parametrize("kind", ["hinge", "softmax", "ranking", "f1", "huber", "squared", "poisson"])
def test_rows_alone_prove_the_bound_of_every_task(kind):
    model, rows = forged_models.trained(kind)
    found = verify(replace(model, witnesses=()), forged_models.dataset(rows))
    assert found.outcome == "reached"
    assert 0.0 < found.passes <= 100
    least = forged_models.trained(kind, tol=1e-9, tol_relative=None)[0]
    for c in least.certificates:
        assert found.lower_bound <= c.primal


KERNELS = {
    "rbf": {"kernel": "rbf", "gamma": 0.4},
    "poly": {"kernel": "poly", "gamma": 0.5, "degree": 2, "coef0": 1.0},
    "linear": {"kernel": "linear"},
}


def kernel_rows(seed=0, n=150, classes=2, weighted=False, repeated=False):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, 6), density=0.6, format="csr", rng=rng, data_sampler=rng.standard_normal)
    y = np.argmax(X @ rng.standard_normal((6, classes)) + 0.4 * rng.standard_normal((n, classes)), axis=1).astype(float)
    if repeated:  # equal rows of both classes
        some = rng.integers(0, n // 8, n)
        X, y = X[some], rng.integers(0, 2, n).astype(float)
    return X, y, rng.uniform(0.1, 3.0, n) if weighted else None


def objective(model, X, y, weight) -> float:
    """½‖w‖² + C Σ u max(0, 1 − y f(x)), from matrices."""
    square = model.coefficients @ matrix(model.kernel, model.support, model.support) @ model.coefficients
    scores = matrix(model.kernel, X, model.support) @ model.coefficients + model.intercept
    u = np.where(y == model.labels[1], model.problem.positive_weight, 1.0) * (1.0 if weight is None else weight)
    return 0.5 * square + model.C * float(u @ np.maximum(0.0, 1.0 - np.where(y == model.labels[1], 1, -1) * scores))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("bias", [1.0, 0.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("repeated", [False, True])
def test_the_certificate_of_smo_is_confirmed(tmp_path, kernel, bias, weighted, repeated):
    X, y, weight = kernel_rows(weighted=weighted, repeated=repeated)
    data = streamcut.rows(X, y, weight=weight, shard_nnz=200)
    model = train(data, solver="smo", C=3.0, bias=bias, positive_weight=1.7, **KERNELS[kernel])
    save_model(model, tmp_path / "m.npz")
    found = verify(load_model(tmp_path / "m.npz"), data)
    assert found.outcome == "reached"
    assert found.lower_bound <= found.primal
    assert found.primal == pytest.approx(objective(model, X, y, weight), rel=1e-10)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000))
def test_no_claimed_dual_beats_the_optimum(seed):
    """Whatever coefficients a file claims, the bound is below the optimum: it is 0 unless they are a feasible point."""
    rng = np.random.default_rng(seed)
    X, y, _ = kernel_rows(n=40)
    data = streamcut.rows(X, y)
    model = train(data, solver="smo", C=1.0, bias=0.0, tol=1e-8, tol_relative=None, **KERNELS["rbf"])
    beta = model.coefficients * rng.choice([0.3, 1.0, 1.5], model.n_support)
    found = verify(replace(model, coefficients=beta), data)
    assert found.lower_bound <= model.certificate.primal * (1 + 1e-12)
    assert (found.lower_bound == 0.0) == bool(np.any(np.abs(beta) > 1.0 + 1e-9))


def test_the_certificate_in_nystroem_features_is_confirmed(tmp_path):
    X, y, _ = kernel_rows()
    data = streamcut.rows(X, y, shard_nnz=200)
    model = train(data, nystroem=20, C=0.1, **KERNELS["rbf"])
    save_model(model, tmp_path / "m.npz")
    found = verify(load_model(tmp_path / "m.npz"), data)
    assert found.outcome == "reached"
    with pytest.raises(UsageError, match="force=True"):
        verify(replace(model, map=replace(model.map, identity={**model.map.identity, "seed": 1})), data)
    with pytest.raises(BadInputError, match="7 features, the model only 6"):
        verify(model, (sp.hstack([X, X[:, :1]], format="csr"), y), force=True)
