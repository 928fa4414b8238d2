"""When training ends, and why: no stop but for the reason that is named."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from streamcut import train
from streamcut.models.certificate import StopReason, Tolerance
from streamcut.solvers.standstill import Standing, Standstill

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts" / "checks"))
import check_stops

# --- small random problems; scripts/checks/check_stops.py has more of them ------------------------------------------------------


def test_warm_starts_do_not_stall():
    """Those that did when the bundle's own bound, below the model's, was not looked at, and some others."""
    for seed in (8, 15, 65, 83, 111, *range(20, 29)):
        found = check_stops.warm_start(seed, max_passes=300)
        assert found.reason is StopReason.CONVERGED, found


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


def test_a_bundle_of_fixed_size_never_says_rounding_before_it_is():
    data, C = check_stops.problem(1050, (50, 400), (3, 40), 1e3)
    given = {"max_cuts": 4, "row_cache": "0", "max_passes": 400, "tol": 0.0, "tol_relative": 1e-4, "scheduler": "sync"}
    certificate = train(data, C=C, **given).certificate
    assert certificate.stop_reason in (StopReason.MAX_PASSES, StopReason.SCALE)
    assert not certificate.converged


# --- which gap is waited for ----------------------------------------------------------------------------------------------------


def test_the_strictest_rule():
    assert Tolerance.strictest(1e-3, 1e-2, 50.0, 100.0) == Tolerance(0.1, "tol 0.001")
    assert Tolerance.strictest(1e-3, 1e-2, 5.0, 100.0) == Tolerance(0.05, "tol_relative 0.01")
    assert Tolerance.strictest(1e-3, 1e-2, 1e-6, 100.0) == Tolerance(1e-8, "tol_relative 0.01")
    assert Tolerance.strictest(1e-3, None, 1e-6, 100.0) == Tolerance(0.1, "tol 0.001")
    assert Tolerance.strictest(None, None, 1.0, 100.0) == Tolerance(0.0, "")
