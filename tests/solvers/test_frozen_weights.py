"""Weights stay what they were: small trainings of every task and solver, frozen by scripts/tools/freeze_weights.py."""

import numpy as np
import pytest
from reference.frozen_weights import CASES, answer, frozen

pytestmark = pytest.mark.smoke

FROZEN = frozen()


@pytest.mark.parametrize("name", CASES)
def test_training_gives_the_frozen_weights(name):
    found, expected = np.array(answer(name)), np.array(FROZEN[name])
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())
