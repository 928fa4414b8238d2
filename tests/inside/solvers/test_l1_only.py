"""λ‖w‖₁ without ½‖w‖²: next to exact optima, scikit-learn and LIBLINEAR; its bounds in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from kit.shared.l1_only import HOW, SMOOTH, rows, task, text
from reference.optimum import precision
from reference.truth import _exactly, row_loss

import streamcut
from streamcut import train
from streamcut.bundle.l1_only import L1Only
from streamcut.config import TrainOptions
from streamcut.execution.feed import Feed
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.plan import MemoryPlan
from streamcut.execution.runner import Runner
from streamcut.foundation.rounding import CutError
from streamcut.jobs.binary import BinaryJob
from streamcut.oracles.chosen_columns import entry_bytes
from streamcut.solvers.progress import Progress, StoppingRule


@pytest.mark.thirds
@pytest.mark.parametrize(("solver", "intercept"), HOW)
@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("l1", [0.5, 20.0])
def test_every_smooth_loss_is_true_and_converges(loss, l1, solver, intercept):
    X, y = rows(loss, 60, 5)
    with precision():
        own, weights = SMOOTH[loss], []
        for tol in (1e-2, 1e-5, 1e-11):
            asked = {**task(loss), "l1_only": l1, "intercept": intercept, "tol": None, "tol_relative": tol, "max_passes": 80}
            model = train(streamcut.rows(X, y), solver=solver, **asked)
            assert model.converged or tol < 1e-10
            weights.append((model, [arb(v) for v in (*model.weights.tolist(), model.intercept)]))
        terms = [term for x, v in zip(X.tolist(), y.tolist(), strict=True)
                 for term in row_loss(loss, own, [*[arb(a) for a in x], arb(1)], v, _exactly(1.0))]  # fmt: skip

        def F(w):  # noqa: N802
            return arb(l1) * sum((abs(v) for v in w[:-1]), arb(0)) + sum((term.value(w) for term in terms), arb(0))

        values = [F(w) for _, w in weights]
        for (model, _), value in zip(weights, values, strict=True):
            assert not bool(arb(model.certificate.primal) < value)
            assert not any(bool(arb(model.certificate.lower_bound) > other) for other in values)
        assert weights[-1][0].certificate.gap <= 1e-8 * weights[-1][0].certificate.primal


def test_any_cut_bounds_the_optimum_in_the_box():
    rng = np.random.default_rng(2)
    for _ in range(200):
        l1, most, c_bar = 10.0 ** rng.uniform(-3, 3, 3)
        a, b = rng.standard_normal(4) * 10.0 ** rng.uniform(-3, 3), float(rng.standard_normal())
        error = CutError(*(10.0 ** rng.uniform(-12, 0, 2)).tolist())
        bound, _ = L1Only(l1, most=most).bound(c_bar, a, b, error)
        for _ in range(50):
            w = rng.standard_normal(4) * (rng.random(4) < 0.6)
            w *= rng.random() * most / l1 / max(np.abs(w).sum(), 1e-300)
            off = rng.standard_normal(4)
            true = [Fraction(v) for v in (a + error.slope * off / np.linalg.norm(off) * 0.999).tolist()]
            says = sum((v * Fraction(x) for v, x in zip(true, w.tolist(), strict=True)), Fraction(b) - Fraction(error.offset))
            value = Fraction(l1) * sum(abs(Fraction(v)) for v in w.tolist()) + Fraction(c_bar) * says
            assert Fraction(bound) <= value or np.abs(w).sum() * l1 > most


def test_columns_that_have_no_room_together_take_turns():
    X, y = text()
    y = np.where(y > 0.0, 1.0, -1.0)
    rule = {"tol": None, "tol_relative": 1e-4, "max_passes": 100}
    data = streamcut.rows(X, y)
    whole = train(data, loss="logistic", l1_only=0.2, intercept="none", **rule)
    options = TrainOptions(task="binary", loss="logistic", l1_only=0.2, intercept="none", **rule)
    job = BinaryJob.planned(options, data.manifest)
    few = int(0.1 * X.nnz) * entry_bytes(data.manifest)
    with Runner(Feed(data), plan_lanes(data.manifest.statistics, 2), 2) as runner:
        plan = MemoryPlan(0, (), frozenset(), 0, row_cache=few)
        model = job.solve(runner, Progress(StoppingRule(None, 1e-4, max_passes=100)), plan)
    columns = np.count_nonzero(whole.weights)
    assert columns * X.nnz / X.shape[1] > 0.1 * X.nnz  # more than there is room for
    assert model.converged
    assert 3 < model.history[-1]["passes"] < 100
    assert model.certificate.lower_bound <= whole.certificate.primal
    assert model.certificate.primal == pytest.approx(whole.certificate.primal, rel=1e-4)
