"""One-vs-rest: every class has the certificate that its own training would have, whatever runs beside it."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import svm

import streamcut
from streamcut.bundle.line_searches import BINS, minimise_along_lines
from streamcut.compiled import ovr
from streamcut.config import CheckpointOptions
from streamcut.errors import UsageError
from streamcut.execution.feed import Feed
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.row_state import RowState
from streamcut.execution.runner import Runner
from streamcut.io.memory import MemoryDataset
from streamcut.losses.hinge import Hinge
from streamcut.training import train

HINGE = Hinge()
REST = {"task": "multiclass", "strategy": "one-vs-rest"}
METHODS = {"ocas": {"solver": "ocas"}, "bundle-dca": {}, "uncached": {"row_cache": "0"}, "few cached": {"row_cache": "30%"}}
methods = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


def problem(n=300, d=10, *, seed=0, weights=False):
    """Noisy sparse rows of four classes of unequal size; some rows have no features."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.5, format="csr", rng=rng, data_sampler=rng.standard_normal)
    scores = X @ rng.standard_normal((d, 4)) + 0.5 * rng.standard_normal((n, 4)) + np.array([0.0, 0.5, 1.0, -1.0])
    return X, np.array([-1.0, 2.0, 5.0, 9.0])[scores.argmax(axis=1)], rng.uniform(0.2, 3.0, n) if weights else None


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.floats(1e-3, 10), st.floats(-5, 1))
def test_line_searches_equal_sorting(seed, A0, B0):
    rng = np.random.default_rng(seed)
    n, active = 20, np.array([0, 2, 3])
    z_b, z, u = rng.standard_normal((n, 4)), rng.standard_normal((n, 4)), rng.uniform(0.1, 2.0, n)
    z_b[:5, 2] = 1.0

    class Rows:
        def slopes_at_zero(self):
            out = np.empty((3, n))
            ovr.slopes_at_zero(HINGE, active, z_b, z, out)
            return out @ u

        def histograms(self, low, width):
            jumps = np.zeros((3, BINS))
            for half in (slice(0, n // 2), slice(n // 2, n)):
                ovr.breakpoint_histograms(HINGE, active, z_b[half], z[half], u[half], low, width, jumps)
            return jumps

    k = minimise_along_lines(np.full(3, A0), np.full(3, B0), 0.7, Rows())
    expected = [svm.line_search_by_sorting(A0, B0, 0.7, z_b[:, c], z[:, a], u) for a, c in enumerate(active)]
    bracket = 0.7 * (u @ np.abs(z[:, :3] - z_b[:, active])) / A0
    assert (np.abs(k - expected) <= 1e-9 * bracket + 1e-12).all()


@methods
@pytest.mark.parametrize(("bias", "weights"), [(0.0, True), (1.0, False), (2.0, True)])
def test_every_class_has_the_certificate_of_its_own_training(weights, bias, method):
    X, y, u = problem(weights=weights)
    data = MemoryDataset(X, y, weight=u)
    model = train(data, **REST, **method, C=0.5, bias=bias)
    assert model.converged
    passes = []
    for k, (label, found) in enumerate(zip(model.labels, model.certificates, strict=True)):
        alone = train(data, positive_label=label, C=0.5, bias=bias, tol=1e-4, solver="ocas")
        passes.append(train(data, positive_label=label, C=0.5, bias=bias, solver="ocas").history[-1]["passes"])
        assert found.lower_bound <= alone.certificate.primal
        assert alone.certificate.lower_bound <= found.primal
        assert found.gap <= min(1e-3 * found.c_bar, 1e-2 * found.primal)
        w, sign = model.augmented_weights[:, k], np.where(y == label, 1.0, -1.0)
        rows = np.hstack([X.toarray(), np.full((len(y), 1), bias)]) if bias else X.toarray()
        assert svm.primal(w, rows, sign, 0.5, np.ones(len(y)) if u is None else u) == pytest.approx(found.primal, rel=1e-11)
    assert model.history[-1]["passes"] <= max(passes) + 10  # the passes are shared
    assert model.history[-1]["gap"] == pytest.approx(sum(c.gap for c in model.certificates))


@methods
def test_workers_and_shards_change_no_bit(method):
    X, y, u = problem(2000, 30, weights=True)
    options = {**REST, **method, "lanes": 3, "tol": 1e-6, "max_passes": 8, "max_cuts": 6}
    expected = train(MemoryDataset(X, y, weight=u), **options, scheduler="sync")
    for shard_nnz, workers in ((1 << 20, 3), (4000, 2)):
        model = train(MemoryDataset(X, y, weight=u, shard_nnz=shard_nnz), **options, workers=workers)
        np.testing.assert_array_equal(model.weights, expected.weights)
        assert model.certificates == expected.certificates


@methods
def test_stopped_and_resumed_is_uninterrupted(tmp_path, method):
    X, y, _ = problem()
    options = {**REST, **method, "tol": 1e-9, "max_cuts": 8, "sweeps": 5}
    if method.get("row_cache") == "0" or method == METHODS["ocas"]:
        del options["sweeps"]
    whole = train(MemoryDataset(X, y), **options, max_passes=30)
    stopped = train(MemoryDataset(X, y), **options, max_passes=7, checkpoint=str(tmp_path))
    assert not stopped.converged
    assert stopped.stop_reason == "max_passes"
    resumed = train(MemoryDataset(X, y), **options, max_passes=30, checkpoint=CheckpointOptions(str(tmp_path), resume=True))
    assert len(resumed.history) > len(stopped.history)
    np.testing.assert_array_equal(resumed.weights, whole.weights)
    assert resumed.certificates == whole.certificates


def test_the_model_says_which_class_is_furthest(tmp_path):
    X, y, _ = problem()
    model = train(MemoryDataset(X, y), **REST, solver="ocas", max_passes=5)
    assert model.in_words().startswith("0 of 4 classes converged.")
    assert set(model.result()["classes"]) == {"-1", "2", "5", "9"}
    found = streamcut.evaluate(model, (X, y))
    signs = np.where(y[:, None] == np.array(model.labels), 1.0, -1.0)
    assert found.mean_loss == pytest.approx(np.maximum(0, 1 - signs * model.decision_function(X)).sum() / len(y))


def test_two_classes_are_task_binary():
    with pytest.raises(UsageError, match="task binary"):
        train(MemoryDataset(np.eye(4), np.array([1.0, 2.0, 1.0, 2.0])), **REST)


class _Sent(Runner):
    """Runs every pass, and merges every partial sum, as it comes out of a pickle: what happens on a cluster."""

    def run(self, work):
        total, report = super().run(pickle.loads(pickle.dumps(work)))
        return pickle.loads(pickle.dumps(total)), report


@pytest.mark.parametrize(
    "options", [REST, {**REST, "solver": "ocas"}, {"task": "multiclass"}], ids=["rest", "ocas", "crammer-singer"]
)
def test_passes_travel_to_other_processes_and_rows_to_scratch_files(options, tmp_path):
    from streamcut.config import TrainOptions
    from streamcut.execution.plan import MemoryPlan
    from streamcut.jobs.multiclass import MulticlassJob
    from streamcut.jobs.ovr import OvrJob
    from streamcut.solvers.progress import Progress, StoppingRule

    X, y, _ = problem()
    data = MemoryDataset(X, y)
    chosen = TrainOptions(**options, max_passes=8)
    job = (OvrJob if "strategy" in options else MulticlassJob).planned(chosen, data.manifest)
    models = []
    for kind, row_state in ((Runner, None), (_Sent, RowState(len(y), tmp_path))):
        with kind(Feed(data, frozenset([0])), plan_lanes(data.manifest.statistics, 2), row_state=row_state) as runner:
            models.append(job.solve(runner, Progress(StoppingRule(max_passes=8)), MemoryPlan(0, (), frozenset([0]), 0)))
    np.testing.assert_array_equal(models[0].weights, models[1].weights)
