"""Weights stay what they were: small trainings of every task and solver, frozen by scripts/tools/freeze_weights.py."""

import pytest
from reference.frozen_weights import CASES, frozen

from streamcut.config import SOLVERS

pytestmark = pytest.mark.smoke

FROZEN = frozen()


def test_every_solver_is_frozen():
    assert {options["solver"] for _, options in CASES.values()} == set(SOLVERS)
    assert set(FROZEN) == set(CASES)
