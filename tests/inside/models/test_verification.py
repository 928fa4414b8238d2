"""A certificate is confirmed by its data, and a forged one is caught."""

from __future__ import annotations

from dataclasses import replace

import pytest
from reference import forged_models

from streamcut import verify
from streamcut.errors import BadInputError, UsageError
from streamcut.verification import Outcome

FORGED = ["hinge weights", "poisson l1", "one-vs-rest logistic l1", "one-class", "ranking", "smo"]
TRUE = {"tol", "bound", "bound = primal"}  # what is claimed may be true all the same; a tolerance is no claim
UNUSED = {"smo": {"unit", "intercept"}, "ranking": {"unit", "intercept"}}  # by kernel models; of a ranking it orders nothing


@pytest.mark.parametrize("kind", FORGED)
def test_no_forged_record_is_accepted(kind):
    model, rows = forged_models.trained(kind)
    assert verify(model, forged_models.dataset(rows)).outcome is Outcome.REACHED
    for change, other, given in forged_models.changes(model, rows):
        try:
            found = verify(other, forged_models.dataset(given))
        except (BadInputError, UsageError):
            continue  # refused by name
        assert found.outcome is not Outcome.REACHED or change in TRUE | UNUSED.get(kind, set()), change


@pytest.mark.parametrize("kind", ["hinge", "softmax", "ranking", "f1", "huber", "squared", "poisson"])
def test_rows_alone_prove_the_bound_of_every_task(kind):
    model, rows = forged_models.trained(kind)
    found = verify(replace(model, witnesses=()), forged_models.dataset(rows))
    assert found.outcome is Outcome.REACHED
    assert 0.0 < found.passes <= 100
    least = forged_models.trained(kind, tol=1e-9, tol_relative=None)[0]
    for c in least.certificates:
        assert found.lower_bound <= c.primal
