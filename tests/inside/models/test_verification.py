"""A certificate is confirmed by its data, and a forged one is caught."""

from __future__ import annotations

from dataclasses import replace

import pytest
from reference import forged_models

from streamcut import verify
from streamcut.errors import BadInputError, UsageError
from streamcut.models.certificate import StopReason

FORGED = ["hinge weights", "poisson l1", "one-vs-rest logistic l1", "one-class", "sequence", "sampled sequences"]


@pytest.mark.parametrize("kind", FORGED)
def test_no_forged_record_is_accepted(kind):
    model, rows = forged_models.trained(kind)
    honest = verify(model, forged_models.dataset(rows))
    assert honest.problems == ()
    for change, other, given in forged_models.changes(model, rows):
        data = forged_models.dataset(given)
        try:
            found = verify(other, data)
        except (BadInputError, UsageError):
            continue  # refused by name
        if found.consistent:  # a plane that only training can show to be none
            assert change == "bound = primal"
            assert not verify(other, data, prove=True).consistent


@pytest.mark.parametrize("kind", ["hinge", "softmax", "ranking", "f1", "sequence ocas", "huber", "squared", "poisson"])
def test_rows_alone_prove_the_bound_of_every_task(kind):
    model, rows = forged_models.trained(kind)
    data = forged_models.dataset(rows)
    found = verify(model.without_proof(), data, prove=True)
    assert found.proved
    assert 0.0 < found.proof.passes <= 100
    least = forged_models.trained(kind, tol=1e-9, tol_relative=None)[0]
    for c in forged_models.certificates(least):
        assert found.proof.lower_bound <= c.primal


def test_too_few_passes_prove_nothing_and_refute_nothing():
    model, rows = forged_models.trained("hinge", tol=1e-9, tol_relative=None)
    found = verify(model, forged_models.dataset(rows), prove=True, max_passes=2)
    assert found.consistent
    assert found.proved is False
    assert not found.convergence_proved
    assert found.proof.lower_bound < model.certificate.lower_bound
    assert found.proof.passes == 2


def test_a_record_that_says_less_than_it_may_is_refuted():
    model, rows = forged_models.trained("hinge", max_passes=2)
    data = forged_models.dataset(rows)
    c = model.certificate
    assert not c.converged
    assert verify(model, data).consistent
    reached = replace(c, tol=1.0, tol_relative=None)
    parameters = {**model.parameters, "tol": 1.0, "tol_relative": None}
    (problem,) = verify(replace(model, certificate=reached, parameters=parameters), data).problems
    assert "but it does not say converged" in problem
    claimed = replace(c, converged=True, stop_reason=StopReason.CONVERGED)
    (problem,) = verify(replace(model, certificate=claimed), data).problems
    assert "it says converged, but the gap is" in problem
