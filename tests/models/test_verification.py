"""A certificate is confirmed by its data, and a forged one is caught."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from reference import forged_models

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
TRUE = {"tol", "bound", "bound = primal"}  # what is claimed may be true all the same; a tolerance is no claim
UNUSED = {"smo": {"unit", "intercept"}, "ranking": {"unit", "intercept"}}  # by kernel models; of a ranking it orders nothing


@pytest.mark.parametrize("kind", FORGED)
def test_no_forged_record_is_accepted(kind):
    model, rows = forged_models.trained(kind)
    assert verify(model, forged_models.dataset(rows)).outcome == "reached"
    for change, other, given in forged_models.changes(model, rows):
        try:
            found = verify(other, forged_models.dataset(given))
        except (BadInputError, UsageError):
            continue  # refused by name
        assert found.outcome != "reached" or change in TRUE | UNUSED.get(kind, set()), change


@pytest.mark.parametrize("kind", ["hinge", "softmax", "ranking", "f1", "huber", "squared", "poisson"])
def test_rows_alone_prove_the_bound_of_every_task(kind):
    model, rows = forged_models.trained(kind)
    found = verify(replace(model, witnesses=()), forged_models.dataset(rows))
    assert found.outcome == "reached"
    assert 0.0 < found.passes <= 100
    least = forged_models.trained(kind, tol=1e-9, tol_relative=None)[0]
    for c in least.certificates:
        assert found.lower_bound <= c.primal
