"""Fewer columns at a time than there are: what comes out is what all at once give, in less memory."""

from dataclasses import replace
from itertools import groupby

import numpy as np
import pytest
import scipy.sparse as sp
from kit.columns import REST, overlap, problem, same
from kit.nights import by_night

import streamcut
from streamcut import CheckpointOptions, train, verify
from streamcut.config import TrainOptions
from streamcut.errors import MemoryBudgetError
from streamcut.execution.plan import Machine, plan_memory
from streamcut.jobs.columns import ColumnsJob
from streamcut.jobs.smaller import smallest_change
from streamcut.training import job_class


def groups_of(monkeypatch, size):
    """All trainings are in groups of so many columns, whatever the memory."""
    whole = ColumnsJob.in_groups
    monkeypatch.setattr(ColumnsJob, "in_groups", lambda job: (each for each in whole(job) if each.at_once == size))


@pytest.fixture
def in_groups(monkeypatch):
    groups_of(monkeypatch, 2)


def at_once(data, **options):
    """The model of all classes at once, from what is to be trained in groups otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ColumnsJob, "in_groups", lambda job: iter([job]))
        return train(data, **options)


KINDS = {
    "hinge": {"row_cache": "0"},
    "smooth": {"row_cache": "0", "loss": "logistic", "bias": 0.0},
    "elastic net": {"row_cache": "0", "l1": 0.3},
}


@pytest.mark.parametrize("kind", by_night(KINDS, ("smooth", "elastic net")))
def test_classes_get_what_they_get_beside_all_others(kind, in_groups):
    X, y, u = problem(weights=True)
    data, options = streamcut.rows(X, y, weight=u), {**REST, **KINDS[kind], "tol": 1e-3, "tol_relative": None}
    whole, model = at_once(data, **options), train(data, **options)
    overlap(model, whole)
    assert model.converged
    lines = model.history
    assert lines[-1]["primal"] == pytest.approx(sum(c.primal for c in model.certificates))
    assert lines[-1]["lower_bound"] == pytest.approx(sum(c.lower_bound for c in model.certificates))
    assert lines[-1]["rows"] == lines[-1]["passes"] * len(y)
    assert lines[-1]["passes"] > whole.history[-1]["passes"]
    assert verify(model, data).consistent


@pytest.mark.parametrize("late", [False, True])
def test_stopped_and_resumed_is_uninterrupted(late, in_groups, tmp_path):
    X, y, _ = problem()
    data, options = streamcut.rows(X, y), {**REST, "row_cache": "0", "tol": 1e-3, "tol_relative": None}
    whole = train(data, **options)
    seen, passes = [], whole.history[-1]["passes"] - 2 if late else 3
    kept = CheckpointOptions(str(tmp_path), every=0.0)
    stopped = train(data, **options, checkpoint=kept, on_iteration=seen.append, stop=lambda: len(seen) >= passes)
    assert [c.converged for c in stopped.certificates[:2]] == [late, late]
    assert all(c.stop_reason == "interrupted" for c in stopped.certificates if not c.converged)
    assert not stopped.converged
    assert stopped.weights[:, 2:].any() == late
    assert verify(stopped, data).consistent
    resumed = train(data, **options, checkpoint=replace(kept, resume=True))
    same(resumed, whole)
    names = "iteration", "passes", "primal", "lower_bound", "rows"
    lines = [[[line[name] for name in names] for line in model.history] for model in (resumed, whole)]
    assert lines[0] == lines[1]


def test_a_column_that_waits_takes_the_place_of_the_first_that_leaves(monkeypatch):
    """No two classes take the same number of passes."""
    rng, n = np.random.default_rng(1), 400
    y = np.repeat(np.arange(4.0), n // 4)
    X = np.eye(4)[y.astype(int)] + 0.02 * rng.standard_normal((n, 4))
    X[: n // 4] = rng.standard_normal((n // 4, 4))
    data, options = streamcut.rows(sp.csr_array(X), y), {**REST, "row_cache": "0", "C": 10.0, "tol": None, "tol_relative": 1e-3}
    groups_of(monkeypatch, 1)
    alone = train(data, **options)
    each = [len(list(passes)) for _, passes in groupby(line["classes"] for line in alone.history)]
    assert len(set(each)) == 4
    monkeypatch.undo()
    groups_of(monkeypatch, 2)
    model = train(data, **options)
    assert [line["classes"] for line in model.history[:1]] == ["1–2 of 4"]
    assert any(line["classes"] in ("1–3 of 4", "2–3 of 4") for line in model.history)
    assert model.history[-1]["passes"] < max(each[:2]) + max(each[2:])
    overlap(model, alone)
    assert verify(model, data).consistent


def smaller(budget: int, *, strategy: str, threads: bool = True):
    """What is done of a training on 12 classes with 100,001 features where `budget` bytes are left beside the process."""
    X = sp.csr_array((np.ones(600), np.arange(600) % 100_000, np.arange(601)), shape=(600, 100_000))
    manifest = streamcut.rows(X, np.arange(600) % 12).manifest
    options = TrainOptions(task="multiclass", strategy=strategy, workers=3, row_cache="0", lanes=3)

    def planned(job):
        machine = Machine(budget, 0, job.workers, in_memory=True)
        return job.needs(manifest).planned(lambda needs: plan_memory(needs, manifest, machine))

    return smallest_change(job_class(options).planned(options, manifest), planned, threads=threads)


def test_less_and_less_memory_takes_fewer_threads_then_smaller_groups():
    """How many threads there are then decides no bit."""
    found = [smaller(size * 10**6, strategy="one-vs-rest")[0] for size in (900, 489, 209, 119, 99, 74, 65)]
    assert [(job.at_once, job.workers) for job in found[:1] + found[-1:]] == [(12, 3), (1, 1)]
    order = [(-job.at_once, -job.workers) for job in found]
    assert order == sorted(order)
    assert len(set(order)) > 4, "most of these budgets make a difference"
    with pytest.raises(MemoryBudgetError):
        smaller(65 * 10**6, strategy="one-vs-rest", threads=False)
