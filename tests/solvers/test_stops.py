"""When training ends, and why: no stop but for the reason that is named, bundles that grow before they hold anything up."""

from __future__ import annotations

import itertools
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from streamcut.bundle.bundle import Bundle
from streamcut.config import CheckpointOptions, TrainOptions
from streamcut.errors import MemoryBudgetError
from streamcut.execution.dask.shared_rows import SharedRows
from streamcut.execution.lanes import Lanes
from streamcut.execution.plan import MemoryPlan, Needs
from streamcut.execution.row_state import RowState
from streamcut.foundation.rounding import CutError
from streamcut.io.memory import MemoryDataset
from streamcut.jobs.binary import BinaryJob
from streamcut.jobs.linear import most_cuts
from streamcut.models.certificate import Certificate, StopReason, Tolerance
from streamcut.solvers.standstill import Standing, Standstill
from streamcut.training import train

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts" / "checks"))
import check_stops

# --- small random problems; scripts/checks/check_stops.py has more of them ------------------------------------------------------


def test_warm_starts_do_not_stall():
    """Those that did when the bundle's own bound, below the model's, was not looked at, and some others."""
    for seed in (8, 15, 65, 83, 111, *range(20, 29)):
        found = check_stops.warm_start(seed, max_passes=300)
        assert found.reason is StopReason.CONVERGED, found


def test_small_dense_problems_take_few_passes():
    passes = [check_stops.dense_problem(seed, max_passes=300).passes for seed in range(30)]
    assert np.percentile(passes, 90) <= 67


# --- reasons --------------------------------------------------------------------------------------------------------------------

AT = Standing(primal=10.0, value=9.0, qp_gap=0.0, error=1e-12, full=False)


def after(passes: int, now: Standing) -> StopReason | None:
    standstill = Standstill()
    for _ in range(passes + 1):
        standstill.see(now)
    return standstill.reason()


def test_rounding_is_said_only_of_gaps_that_float64_cannot_resolve():
    assert after(1000, AT) is None
    assert after(4, replace(AT, value=10.0 - 1e-12)) is None
    assert after(5, replace(AT, value=10.0 - 1e-12)) is StopReason.STALLED
    assert after(5, replace(AT, qp_gap=0.6)) is StopReason.SCALE  # the master problem itself is no better known
    assert after(5, replace(AT, qp_gap=0.4)) is None


def test_a_bundle_is_to_blame_only_when_it_is_full_and_after_many_passes():
    full = replace(AT, full=True)
    assert after(49, full) is None
    assert after(50, full) is StopReason.BUNDLE
    assert "--max-cuts" in StopReason.BUNDLE.because


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
    assert certificate.stop_reason in (StopReason.MAX_PASSES, StopReason.BUNDLE)
    assert not certificate.converged


# --- which gap is waited for ----------------------------------------------------------------------------------------------------


def test_the_strictest_rule():
    assert Tolerance.strictest(1e-3, 1e-2, 50.0, 100.0) == Tolerance(0.1, "tol 0.001")
    assert Tolerance.strictest(1e-3, 1e-2, 5.0, 100.0) == Tolerance(0.05, "tol_relative 0.01")
    assert Tolerance.strictest(1e-3, 1e-2, 1e-6, 100.0) == Tolerance(1e-8, "tol_relative 0.01")
    assert Tolerance.strictest(1e-3, None, 1e-6, 100.0) == Tolerance(0.1, "tol 0.001")
    assert Tolerance.strictest(None, None, 1.0, 100.0) == Tolerance(0.0, "")


@pytest.mark.parametrize("C", [1e8, 1e12])
def test_separable_data_is_converged_only_within_both_tolerances(C):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 5))
    y = np.sign(X[:, 0] + 0.5 * np.sign(X[:, 0]))
    model = train(MemoryDataset(X, y), loss="logistic", C=C, max_passes=150)
    certificate = model.certificate
    assert certificate.gap <= min(1e-3 * certificate.c_bar, 0.01 * certificate.primal) or not certificate.converged
    assert certificate.converged == (certificate.stop_reason is StopReason.CONVERGED)
    assert model.history[-1]["waits_for"] == certificate.tolerance.rule == "tol_relative 0.01"


def test_the_certificate_says_what_is_waited_for():
    words = Certificate(10.0, 9.0, 1000.0, 1e-3, 1e-2, False, StopReason.MAX_PASSES).in_words()
    assert "used up, and the gap is 1 where 0.1 was asked for (tol_relative 0.01)." in words
    assert "was asked for" not in Certificate(10.0, 9.0, 100.0, None, None, False, StopReason.TIME).in_words()


# --- bundles that grow ----------------------------------------------------------------------------------------------------------


@cache
def crowded() -> tuple[MemoryDataset, float]:
    """A problem whose bundle grows twice."""
    return check_stops.problem(1034, (50, 400), (3, 40), 1e3)


def grown(**options):
    data, C = crowded()
    return train(data, C=C, tol=1e-5, lanes=2, row_cache="5%", workers=1, **options)


@cache
def whole():
    return grown()


def test_a_bundle_grows_and_says_how_far():
    cuts = [line["cuts"] for line in whole().history]
    assert whole().converged
    assert 32 < max(cuts) <= 64
    fixed = grown(max_cuts=16, max_passes=len(cuts))
    assert max(line["cuts"] for line in fixed.history) == 16
    assert not fixed.converged


def test_stopped_and_resumed_after_every_growth(tmp_path):
    folder = str(tmp_path / "run")
    for passes in (5, 12, 20, 40, 1000):
        model = grown(max_passes=passes, checkpoint=CheckpointOptions(folder, resume=True))
    assert model.weights.tobytes() == whole().weights.tobytes()
    assert [line["cuts"] for line in model.history] == [line["cuts"] for line in whole().history]


def test_spilled_rows_grow_with_the_same_bits(tmp_path, monkeypatch):
    def spilled(self, n_rows, scratch=None):
        original(self, n_rows, tmp_path)

    original = RowState.__init__
    monkeypatch.setattr(RowState, "__init__", spilled)
    assert grown().weights.tobytes() == whole().weights.tobytes()


def test_classes_have_a_bundle_that_grows():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((300, 30))
    y = (X @ rng.standard_normal((30, 3)) + 2.0 * rng.standard_normal((300, 3))).argmax(axis=1).astype(float)
    options = {"task": "multiclass", "C": 10.0, "row_cache": "0"}
    model = train(MemoryDataset(X, y), **options)
    fixed = train(MemoryDataset(X, y), max_cuts=16, max_passes=model.history[-1]["passes"], **options)
    assert max(line["cuts"] for line in model.history) > 32
    assert max(line["cuts"] for line in fixed.history) <= 16
    assert model.converged


def test_a_bundle_doubles_before_it_merges():
    rng, bundle = np.random.default_rng(0), Bundle(8, 10.0, 4, 10)
    sizes = []
    for _ in range(30):
        bundle.grow(2)
        merges, _ = bundle.make_room(2)
        sizes.append(bundle.max_cuts)
        assert not merges or bundle.max_cuts == 10
        for _ in range(2):
            bundle.add(rng.standard_normal(8), rng.uniform(), CutError(0.0, 0.0))
        bundle.solve(1e-9)
    assert sorted(set(sizes)) == [4, 8, 10]


@pytest.mark.parametrize("place", ["memory", "scratch"])
@pytest.mark.parametrize("more", [(), (2,)])
def test_rows_are_widened_in_place(place, more, tmp_path):
    n = 150_000
    state = RowState(n, tmp_path if place == "scratch" else None)
    state.add("codes", np.uint16, (3, *more), most=11)
    before = np.random.default_rng(0).integers(0, 65536, (n, 3, *more)).astype(np.uint16)
    state.arrays["codes"][:] = before
    for length in (4, 11):
        state.widen("codes", length)
        found = state.arrays["codes"]
        assert found.shape == (n, length, *more)
        assert found.flags.c_contiguous
        np.testing.assert_array_equal(found[:, :3], before)
        assert not found[:, 3:].any()


def test_shared_rows_are_widened_when_they_are_read(tmp_path):
    (tmp_path / "rows").mkdir()
    lanes = Lanes((0, 9_000, 20_000))
    rows = SharedRows(tmp_path / "rows", lanes, tmp_path, itertools.count(1).__next__)
    rows.add("codes", np.uint16, (3,), most=8)
    before = np.arange(60_000, dtype=np.uint16).reshape(20_000, 3) + np.uint16(1)
    rows.arrays["codes"][:] = before
    rows.commit()
    rows.widen("codes", 8)
    expected = np.zeros((20_000, 8), np.uint16)
    expected[:, :3] = before
    np.testing.assert_array_equal(rows.files.read("codes", 1, 11_000), expected[9_000:])
    assert rows.files.differs("codes", 0, expected[:9_000])
    np.testing.assert_array_equal(rows.arrays["codes"], expected)
    rows.commit()  # nothing was changed by anybody, but files that are too narrow are written anew
    assert not rows.files.differs("codes", 0, expected[:9_000])
    assert rows.files.lengths == {("codes", 0): 8, ("codes", 1): 8}


# --- memory for growth ----------------------------------------------------------------------------------------------------------

NEEDS = Needs(dimension=100, max_cuts=16, most_cuts=64, cut_bytes=2, row_bytes=48)


def planned(budget: int, n_rows: int) -> MemoryPlan:
    def plan(needs: Needs) -> MemoryPlan:
        total = needs.row_bytes * n_rows + 8 * needs.dimension * needs.max_cuts
        if total > budget:
            raise MemoryBudgetError("too little")
        return MemoryPlan(budget, (("all", total),), frozenset(), 0)

    return NEEDS.planned(n_rows, budget, plan)


def test_growth_is_reserved_and_takes_a_tenth_of_the_budget_at_most():
    rows = 100_000
    assert planned(10**9, rows).max_cuts == 64
    assert planned(10**9, rows).needed == (48 + 2 * 48) * rows + 800 * 64
    assert planned(90 * 10**6, rows).max_cuts == 32
    assert planned(10**7, rows).max_cuts == 16
    with pytest.raises(MemoryBudgetError):
        planned(10**6, rows)


def test_what_a_bundle_may_grow_to():
    options = TrainOptions()
    assert most_cuts(options, 16, 8 * 31 + 2 * 400) == 64
    assert most_cuts(options, 16, 2 * 3_000_000) == 22
    assert most_cuts(options, 16, 2 * 100_000_000) == 16
    assert most_cuts(TrainOptions(max_cuts=20), 20, 100) == 20
    data, _ = crowded()
    needs = BinaryJob.planned(options, data.manifest).needs(data.manifest)
    assert (needs.max_cuts, needs.most_cuts, needs.cut_bytes) == (16, 64, 2)
