"""When training ends, and why: no stop but for the reason that is named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streamcut.models.certificate import StopReason, Tolerance
from streamcut.solvers.standstill import Standing, Standstill

# --- reasons --------------------------------------------------------------------------------------------------------------------

AT = Standing(primal=10.0, value=9.0, error=1e-12)


def after(passes: int, now: Standing) -> StopReason | None:
    standstill = Standstill()
    for _ in range(passes + 1):
        standstill.see(now)
    return standstill.reason()


def test_rounding_is_said_only_of_gaps_that_float64_cannot_resolve():
    assert after(9, AT) is None
    assert after(10, AT) is StopReason.SCALE
    assert after(10, replace(AT, value=10.0 - 1e-12)) is StopReason.STALLED
    assert after(10, replace(AT, value=10.0 - 1e-12, unproved=1.0)) is StopReason.SCALE


@pytest.mark.parametrize("moved", [replace(AT, primal=9.9), replace(AT, value=9.1), replace(AT, stage=1.0)])
def test_whatever_moves_is_no_standstill(moved):
    standstill = Standstill()
    for now in (AT, AT, moved):
        standstill.see(now)
    assert standstill.still == 0
    standstill.see(replace(moved, primal=moved.primal + 1.0, value=moved.value - 1.0))  # worse is not better
    assert standstill.still == 1


# --- which gap is waited for ----------------------------------------------------------------------------------------------------


def test_the_strictest_rule():
    assert Tolerance.strictest(1e-3, 1e-2, 50.0, 100.0) == Tolerance(0.1, "tol 0.001")
    assert Tolerance.strictest(1e-3, 1e-2, 5.0, 100.0) == Tolerance(0.05, "tol_relative 0.01")
    assert Tolerance.strictest(1e-3, 1e-2, 1e-6, 100.0) == Tolerance(1e-8, "tol_relative 0.01")
    assert Tolerance.strictest(1e-3, None, 1e-6, 100.0) == Tolerance(0.1, "tol 0.001")
    assert Tolerance.strictest(None, None, 1.0, 100.0) == Tolerance(0.0, "")
