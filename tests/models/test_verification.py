"""A certificate is confirmed by its data, and a forged one is caught; of kernel models from rows and support vectors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from laws.problems import ROWS
from reference import forged_models

import streamcut
from streamcut import load_model, save_model, train, verify
from streamcut.errors import BadInputError, UsageError


@pytest.fixture(scope="module")
def trained():
    """(model, its rows X, y and weights, some of them 0)."""
    X, y, _, weight = ROWS["weighted"]
    return train((X, y, weight), C=0.3, positive_weight=2.0, bias=0.5, tol=1e-5, tol_relative=None), (X, y, weight)


def test_too_few_passes_prove_nothing_and_refute_nothing(trained):
    found = verify(*trained, max_passes=1)
    assert (found.outcome, found.passes, found.problems) == ("undecided", 1, ())
    assert 0.0 < found.lower_bound < trained[0].certificate.lower_bound


def test_exit_codes(tmp_path, run):
    train(ROWS["signs"].store(tmp_path / "a.zarr"), tol=1e-6, tol_relative=None).save(tmp_path / "m.npz")
    assert [run("verify", tmp_path / "m.npz", *few)[0] for few in ((), ("--max-passes", 1))] == [0, 9]


def test_other_data_are_refused_unless_forced(trained):
    model, (X, y, weight) = trained
    with pytest.raises(UsageError, match="force=True"):
        verify(model, (2 * X, y, weight))
    assert not verify(model, (2 * X, y, weight), force=True).same_data


FORGED = ["hinge weights", "poisson l1", "one-vs-rest l1", "one-class", "ranking", "smo"]
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
    found = verify(replace(model, proofs=()), forged_models.dataset(rows))
    assert found.outcome == "reached"
    assert 0.0 < found.passes <= 100
    least = forged_models.trained(kind, tol=1e-9, tol_relative=None)[0]
    for c in least.certificates:
        assert found.lower_bound <= c.primal


RBF = {"kernel": "rbf", "gamma": 0.4}


def kernel_rows(n: int):
    rng = np.random.default_rng(0)
    X = sp.random_array((n, 6), density=0.6, format="csr", rng=rng, data_sampler=rng.standard_normal)
    return X, np.argmax(X @ rng.standard_normal((6, 2)) + 0.4 * rng.standard_normal((n, 2)), axis=1).astype(float)


@pytest.mark.parametrize("kernel", [RBF, {"kernel": "poly", "gamma": 0.5, "degree": 2, "coef0": 1.0}, {"kernel": "linear"}])
@pytest.mark.parametrize("bias", [1.0, 0.0])
def test_the_certificate_of_smo_is_confirmed_on_equal_rows_of_both_classes(tmp_path, kernel, bias):
    (X, _), rng = kernel_rows(150), np.random.default_rng(1)
    y, weight = rng.integers(0, 2, 150).astype(float), rng.uniform(0.1, 3.0, 150)
    data = streamcut.rows(X[rng.integers(0, 18, 150)], y, weight=weight, shard_nnz=200)
    save_model(train(data, solver="smo", C=3.0, bias=bias, positive_weight=1.7, **kernel), tmp_path / "m.npz")
    found = verify(load_model(tmp_path / "m.npz"), data)
    assert found.outcome == "reached"
    assert found.lower_bound <= found.primal


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000))
def test_no_claimed_dual_beats_the_optimum(seed):
    """Whatever coefficients a file claims, the bound is below the optimum: it is 0 unless they are a feasible point."""
    rng, data = np.random.default_rng(seed), streamcut.rows(*kernel_rows(40))
    model = train(data, solver="smo", C=1.0, bias=0.0, tol=1e-8, tol_relative=None, **RBF)
    beta = model.coefficients * rng.choice([0.3, 1.0, 1.5], model.n_support)
    found = verify(replace(model, coefficients=beta), data)
    assert found.lower_bound <= model.certificate.primal * (1 + 1e-12)
    assert (found.lower_bound == 0.0) == bool(np.any(np.abs(beta) > 1.0 + 1e-9))


def test_the_certificate_in_nystroem_features_is_confirmed(tmp_path):
    X, y = kernel_rows(150)
    data = streamcut.rows(X, y, shard_nnz=200)
    model = train(data, nystroem=20, C=0.1, **RBF)
    save_model(model, tmp_path / "m.npz")
    found = verify(load_model(tmp_path / "m.npz"), data)
    assert found.outcome == "reached"
    with pytest.raises(UsageError, match="force=True"):
        verify(replace(model, map=replace(model.map, identity={**model.map.identity, "seed": 1})), data)
    with pytest.raises(BadInputError, match="7 features, the model only 6"):
        verify(model, (sp.hstack([X, X[:, :1]], format="csr"), y), force=True)
