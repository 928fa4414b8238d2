"""One-vs-rest in groups of classes: what comes out is what all classes at once give, in less memory."""

import json
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from nights import by_night
from test_ovr import METHODS, REST, problem

import streamcut
from streamcut.config import CheckpointOptions, TrainOptions
from streamcut.errors import CorruptError, ExitCode, MemoryBudgetError, UsageError
from streamcut.execution.plan import Machine, plan_memory
from streamcut.io.memory import MemoryDataset
from streamcut.jobs.ovr import OvrJob
from streamcut.jobs.smaller import smallest_change
from streamcut.models import checkpoint
from streamcut.selection import train_path
from streamcut.training import job_class, train
from streamcut.tuning import tune
from streamcut.verification import verify


@pytest.fixture(params=[2], ids=["two at a time"])
def in_groups(request, monkeypatch):
    """All trainings are in groups of so many classes, whatever the memory."""
    whole = OvrJob.in_groups
    monkeypatch.setattr(OvrJob, "in_groups", lambda job: (each for each in whole(job) if each.at_once == request.param))


def same(model, other):
    np.testing.assert_array_equal(model.weights, other.weights)
    np.testing.assert_array_equal(model.intercepts, other.intercepts)
    assert model.certificates == other.certificates
    for ours, theirs in zip(model.witnesses, other.witnesses, strict=True):
        np.testing.assert_array_equal(ours.a, theirs.a)


def at_once(data, **options):
    """The model of all classes at once, from what is to be trained in groups otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OvrJob, "in_groups", lambda job: iter([job]))
        return train(data, **options)


KINDS = {
    "bundle-dca": {"row_cache": "0"},
    "ocas": {"solver": "ocas"},
    "cpa": {"solver": "cpa", "max_passes": 12},
    "smooth": {"row_cache": "0", "loss": "logistic", "bias": 0.0},
    "elastic net": {"row_cache": "0", "l1": 0.3, "positive_weight": 1.0},
}


@pytest.mark.parametrize("kind", by_night(KINDS, ("cpa", "smooth", "elastic net")))
def test_classes_get_what_they_get_beside_all_others(kind, in_groups):
    X, y, u = problem(weights=kind != "ocas")
    data, options = MemoryDataset(X, y, weight=u), {**REST, **KINDS[kind], "tol": 1e-4}
    whole, model = at_once(data, **options), train(data, **options)
    same(model, whole)
    lines = model.history
    assert {line["classes"] for line in lines} == {"1–2 of 4", "3–4 of 4"}
    assert (np.diff([line["gap"] for line in lines]) <= 1e-9 * lines[0]["primal"]).all()
    assert (np.diff([line["passes"] for line in lines]) > 0).all()
    assert lines[-1]["primal"] == pytest.approx(sum(c.primal for c in model.certificates))
    assert lines[-1]["lower_bound"] == pytest.approx(sum(c.lower_bound for c in model.certificates))
    assert lines[-1]["rows"] == lines[-1]["passes"] * len(y)
    assert verify(model, data).consistent


@pytest.mark.long
@pytest.mark.parametrize("method", [METHODS["bundle-dca"], METHODS["few cached"]], ids=["all cached", "few cached"])
def test_with_cached_rows_every_class_is_certified(method, in_groups):
    X, y, _ = problem()
    data = MemoryDataset(X, y)
    whole, model = at_once(data, **REST, **method), train(data, **REST, **method)
    assert model.converged
    for ours, theirs in zip(model.certificates, whole.certificates, strict=True):
        assert ours.lower_bound <= theirs.primal
        assert theirs.lower_bound <= ours.primal
    assert verify(model, data).consistent


@pytest.mark.long
def test_a_number_of_classes_that_groups_do_not_divide(monkeypatch):
    X, y, _ = problem(200)
    y = np.where(np.arange(200) % 9 == 0, 11.0, y)
    whole = OvrJob.in_groups
    monkeypatch.setattr(OvrJob, "in_groups", lambda job: (each for each in whole(job) if each.at_once == 3))
    model = train(MemoryDataset(X, y), **REST, row_cache="0", lanes=2, scheduler="sync")
    assert {line["classes"] for line in model.history} == {"1–3 of 5", "4–5 of 5"}
    same(model, at_once(MemoryDataset(X, y), **REST, row_cache="0", lanes=2, scheduler="sync"))


def first_group(history) -> int:
    """Iterations of the first group."""
    return sum(line["classes"] == "1–2 of 4" for line in history)


@pytest.mark.parametrize("late", [False, True])
def test_stopped_and_resumed_is_uninterrupted(late, in_groups, tmp_path):
    X, y, _ = problem()
    data, options = MemoryDataset(X, y), {**REST, "row_cache": "0", "tol": 1e-6}
    whole = train(data, **options)
    seen, iterations = [], 2 + late * first_group(whole.history)
    kept = CheckpointOptions(str(tmp_path), iterations=1)
    stopped = train(data, **options, checkpoint=kept, on_iteration=seen.append, stop=lambda: len(seen) >= iterations)
    assert [c.stop_reason for c in stopped.certificates[2:]] == ["interrupted"] * 2
    assert all(c.converged == late for c in stopped.certificates[:2])
    assert stopped.weights[:, 2:].any() == late
    assert verify(stopped, data).consistent
    resumed = train(data, **options, checkpoint=replace(kept, resume=True))
    same(resumed, whole)
    names = "iteration", "passes", "primal", "lower_bound", "rows", "classes"
    lines = [[[line[name] for name in names] for line in model.history] for model in (resumed, whole)]
    assert lines[0] == lines[1]


def test_a_higher_limit_on_passes_trains_what_had_stopped_at_the_lower_one(in_groups, tmp_path):
    X, y, _ = problem()
    data, options = MemoryDataset(X, y), {**REST, "row_cache": "0", "tol": 1e-6}
    stopped = train(data, **options, max_passes=4, checkpoint=str(tmp_path))
    assert {c.stop_reason for c in stopped.certificates} == {"max_passes"}
    assert [line["passes"] for line in stopped.history][-1] == 8  # of each group
    resumed = train(data, **options, max_passes=60, checkpoint=CheckpointOptions(str(tmp_path), resume=True))
    same(resumed, train(data, **options, max_passes=60))


def test_a_checkpoint_of_other_groups_is_that_of_a_different_run(in_groups, tmp_path):
    X, y, _ = problem()
    train(MemoryDataset(X, y), **REST, row_cache="0", max_passes=2, checkpoint=str(tmp_path))
    with pytest.raises(UsageError, match=r"classes_at_once \(2, now None\)"):
        at_once(MemoryDataset(X, y), **REST, row_cache="0", checkpoint=CheckpointOptions(str(tmp_path), resume=True))


FORGED = {
    "a class of none": lambda own: own["done"]["lines"].update({"9": own["done"]["lines"]["0"]}),
    "no number": lambda own: own["done"]["lines"]["0"].__setitem__(1, float("inf")),
    "no reason": lambda own: own["done"]["lines"]["0"].__setitem__(-1, "luck"),
    "too few numbers": lambda own: own["done"]["lines"]["0"].pop(),
    "passes": lambda own: own["done"]["passes"].update({"0": -1}),
    "nothing": lambda own: own.clear(),
    "first": lambda own: own.update(first="0"),
}


@pytest.mark.parametrize("wrong", FORGED)
def test_forged_checkpoints_are_refused(wrong, in_groups, tmp_path, monkeypatch):
    X, y, _ = problem()
    seen, options = [], {**REST, "row_cache": "0"}

    def stop():
        return bool(seen) and seen[-1].classes.startswith("3")

    train(MemoryDataset(X, y), **options, checkpoint=str(tmp_path), on_iteration=seen.append, stop=stop)
    read = checkpoint.open_checkpoint

    def forged(path, name=None):
        found = read(path, name)
        FORGED[wrong](found.record["state"]["groups"])
        return found

    monkeypatch.setattr(checkpoint, "open_checkpoint", forged)
    with pytest.raises(CorruptError, match="no state of this run"):
        train(MemoryDataset(X, y), **options, checkpoint=CheckpointOptions(str(tmp_path), resume=True))


def test_a_model_to_begin_with_and_paths(in_groups, tmp_path):
    X, y, _ = problem()
    data, options = MemoryDataset(X, y), {**REST, "row_cache": "0"}
    start = at_once(data, **options)
    same(train(data, **options, C=3.0, warm_start=start), at_once(data, **options, C=3.0, warm_start=start))
    models = []
    train_path(data, [0.1, 2.0], **options, on_model=lambda model, _: models.append(model), checkpoint=str(tmp_path))
    for C, model in zip((0.1, 2.0), models, strict=True):
        same(model, at_once(data, **options, C=C))  # each begins anew
    again = []
    kept = CheckpointOptions(str(tmp_path), resume=True)
    train_path(data, [0.1, 2.0], **options, on_model=lambda model, _: again.append(model), checkpoint=kept)
    for model, known in zip(again, models, strict=True):
        same(model, known)
        assert len(model.history) == len(known.history)
    sparse = train(data, **options, l1="40%", loss="squared-hinge")
    whole = at_once(data, **options, l1="40%", loss="squared-hinge")
    assert sparse.parameters["l1_max"] == whole.parameters["l1_max"]
    assert sparse.converged
    found = tune(data, {"C": [0.1, 1.0]}, folds=3, **options)
    assert found.model.converged


D, CLASSES = 65_000, 24


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A store with long vectors of many classes: 12.5 MB for a number of each feature and class."""
    rng, n = np.random.default_rng(0), 1000
    y = rng.integers(0, CLASSES, n)
    own = rng.integers(0, 50, (n, 20)) * CLASSES + y[:, None]
    columns = np.hstack([rng.integers(0, D, (n, 20)), own]).ravel()
    X = sp.csr_array((np.ones(40 * n, np.float32), (np.repeat(np.arange(n), 40), columns)), shape=(n, D))
    path = tmp_path_factory.mktemp("wide") / "rows.zarr"
    with streamcut.create(path) as made:
        made.append(X, y.astype(float))
    return path


def command(store, folder, memory, *options):
    """(what ended it, what it printed as JSON)"""
    fixed = ["train", str(store), "--task", "multiclass", "--strategy", "one-vs-rest", "--row-cache", "0", "--max-passes", "3"]
    run = [sys.executable, "-P", "-c", "from streamcut.cli import main; main()", *fixed, "--json"]
    done = subprocess.run([*run, "--model", str(folder / f"{memory}.npz"), "--memory", memory], capture_output=True, text=True)
    return done, [json.loads(line) for line in done.stdout.splitlines()]


def smaller(budget: int, *, strategy: str, threads: bool = True):
    """What is done of a training on 12 classes with 100,001 features where `budget` bytes are left beside the process."""
    X = sp.csr_array((np.ones(600), np.arange(600) % 100_000, np.arange(601)), shape=(600, 100_000))
    manifest = MemoryDataset(X, np.arange(600) % 12).manifest
    options = TrainOptions(task="multiclass", strategy=strategy, workers=3, row_cache="0", lanes=3)

    def planned(job):
        machine = Machine(budget, 0, job.workers, in_memory=True)
        return job.needs(manifest).planned(600, budget, lambda needs: plan_memory(needs, manifest, machine))

    apart = replace(options, strategy="one-vs-rest")
    others = [("--strategy one-vs-rest", [*OvrJob.planned(apart, manifest).in_groups()][-1])]
    return smallest_change(job_class(options).planned(options, manifest), planned, threads=threads, others=lambda: others)


def test_less_and_less_memory_takes_smaller_groups_then_fewer_threads():
    found = [smaller(size * 10**6, strategy="one-vs-rest")[0] for size in (900, 480, 200, 120, 100, 75, 65)]
    assert [(job.at_once, job.workers) for job in found[:1] + found[-1:]] == [(12, 3), (1, 1)]
    order = [(-job.workers, -job.at_once) for job in found]
    assert order == sorted(order)
    assert len(set(order)) == len(order)
    for job in found:
        sizes = [len(group) for group in job.groups]
        assert [k for group in job.groups for k in group] == list(range(12))
        assert max(sizes) == job.at_once
        assert min(sizes) >= max(sizes) - 1
    with pytest.raises(MemoryBudgetError):
        smaller(75 * 10**6, strategy="one-vs-rest", threads=False)


@pytest.mark.parametrize(("megabytes", "said"), [
    (330, "It would fit with --max-cuts 8$"),
    (240, "It would fit with --max-cuts 4$"),
    (150, "It would fit with --strategy one-vs-rest$"),
    (20, "The least is .* MB, with --strategy one-vs-rest$"),
])  # fmt: skip
def test_a_refusal_says_what_would_fit(megabytes, said):
    with pytest.raises(MemoryBudgetError, match=said):
        smaller(megabytes * 10**6, strategy="crammer-singer")


def test_memory_for_some_of_the_classes_is_enough(wide, tmp_path):
    refused, _ = command(wide, tmp_path, "10MB")
    assert refused.returncode == ExitCode.MEMORY
    least = int(re.search(r"at least (\d+)MB", refused.stderr)[1]) + 40
    ended = {}
    for size in (least, 4000):
        done, lines = command(wide, tmp_path, f"{size}MB")
        assert done.returncode == 0, done.stderr
        ended[size] = {line.get("classes", "") for line in lines if line["event"] == "iteration"}, lines[-1]["peak"]
    assert len(ended[least][0]) > 4
    assert ended[4000][0] == {""}
    assert ended[least][1] <= least * 10**6
    assert ended[least][1] + 100 * 10**6 < ended[4000][1]
    same(*(streamcut.load_model(tmp_path / f"{size}MB.npz") for size in ended))
