"""Model selection: the regularisation path, one C after another over the same data."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from streamcut.config import CheckpointOptions
from streamcut.errors import UsageError
from streamcut.evaluation import evaluate, measure_to_choose, merit
from streamcut.execution.plan import MemoryPlan
from streamcut.foundation.units import part_of, plain
from streamcut.io.dataset import Dataset
from streamcut.io.memory import MemoryDataset
from streamcut.io.stores.buffers import buffer_bytes
from streamcut.models.checkpoint import below
from streamcut.models.model import Model
from streamcut.progress.display import Display, shown_by
from streamcut.solvers.progress import Observer, Progress
from streamcut.training import Session, checked, measurable, opened

_MEASURED_ROW = 64  # bytes: scores kept and sorted, weights


@dataclass(frozen=True, slots=True)
class Tried:
    """The result for one C. `measures` are those of streamcut.evaluate on the validation data, None without it.

    measure, value  the one used for model selection
    l1       λ, of a path over λ
    nonzero  weights that are not 0, of linear models
    """

    C: float
    passes: int
    seconds: float
    result: dict[str, Any]
    measures: dict[str, Any] | None
    measure: str | None = None
    value: float | None = None
    l1: float | None = None
    nonzero: int | None = None


def train_path(
    data: str | os.PathLike | Dataset,
    Cs: Sequence[float],
    *,
    l1s: Sequence[float | str] | None = None,
    alone: bool = False,
    validation: Any = None,
    measure: str | None = None,
    on_model: Callable[[Model, Tried], None] | None = None,
    on_iteration: Observer | None = None,
    on_plan: Callable[[MemoryPlan], None] | None = None,
    checkpoint: CheckpointOptions | str | None = None,
    stop: Callable[[], bool] | None = None,
    progress: bool | Display = False,
    **options: Any,
) -> tuple[Model, list[Tried]]:
    """Train for every C from the smallest up, each from where the last ended; returns (best model, results for all).

    Cutting planes bound the mean loss, which does not depend on C, so they remain valid; dual variables scale with C.

    l1s          with one C: instead a path over the λ of an elastic net, numbers or fractions of λmax ("10%"), from the largest
                 down: weights become nonzero one by one; `alone`: over the λ of l1_only
    validation   data on which every model is measured, as `evaluate` takes it; without it the last model is returned
    measure      the best model has the greatest value of this measure of streamcut.evaluate, the least for a loss or an
                 error (ties: the first); None: the first measure of the task, "accuracy" where it exists
    on_model     called with every model when it is trained
    checkpoint   each C, or λ, has its own folder in it, which the caller removes once all is done

    The other arguments and exceptions are those of `train`; limits such as max_passes apply to each C.

    >>> best, tried = train_path("rows.zarr", [0.1, 10.0], validation="rows.zarr")  # made in the example of `convert`
    >>> [line.C for line in tried]
    [0.1, 10.0]
    """
    steps = _steps(Cs, l1s, options, "l1_only" if alone else "l1")
    chosen, scheduler = checked({**options, **steps[0]})
    for step in steps[1:]:
        replace(chosen, **step)  # rejects invalid values of C
    best: tuple[float, Model] | None = None
    tried: list[Tried] = []
    if isinstance(checkpoint, str):
        checkpoint = CheckpointOptions(checkpoint)
    with ExitStack() as held:
        held_out, more = None, tuple[tuple[str, int], ...]()
        if validation is not None:
            held_out = opened(held.enter_context(measurable(validation, opened(data).recipe, chosen.scratch, chosen.memory)))
            more = (("validation", _measuring_bytes(held_out)),)
        given: dict[str, Any] = {"scheduler": scheduler, "on_plan": on_plan, "stop": stop, "more": more}
        run = held.enter_context(Session(data, chosen, display=held.enter_context(shown_by(progress)), **given))
        if not hasattr(run.job, "trainer"):
            raise UsageError(f"{chosen.chosen_solver} cannot reuse one C for the next; `train` with --folds trains each anew")
        if held_out is not None:
            measure = measure_to_choose(run.job.task, measure)
        for step, model, record in along(run, steps, on_iteration=on_iteration, checkpoint=checkpoint):
            measures = None if held_out is None else evaluate(model, held_out).measures()
            tried.append(tried_model(step, model, record, measures, measure))
            if on_model is not None:
                on_model(model, tried[-1])
            value = tried[-1].value
            worth = 0.0 if value is None or measure is None else merit(measure, value)
            if best is None or value is None or worth > best[0]:
                best = worth, model
    assert best is not None
    model = best[1]
    return replace(model, resources={**model.resources, "readings": run.readings.value}), tried


def along(
    run: Session,
    steps: Sequence[dict[str, Any]],
    *,
    on_iteration: Observer | None = None,
    checkpoint: CheckpointOptions | None = None,
) -> Iterator[tuple[dict[str, Any], Model, Progress]]:
    """Train for one of `steps` (C, and maybe λ) after another, each from where the last ended; a stop ends it early.

    Each has its own folder in `checkpoint`, named after what changes.
    """
    *_, changing = steps[0]
    trainer = run.job.trainer(run.runner, run.plan)  # type: ignore[attr-defined]
    for step in steps:
        record = run.progress(on_iteration)
        if checkpoint is not None:
            folder = replace(checkpoint, directory=below(checkpoint.directory, f"{changing}={_as_name(step[changing])}"))
            record.checkpoints = run.checkpoints(folder, **step, path=[each[changing] for each in steps])
        l1 = step[changing] if changing != "C" else None
        model = run.finished(partial(trainer.train, step["C"], record, l1=l1, keep=checkpoint is not None))
        yield step, model, record
        if run.stop():
            return


def _as_name(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.17g}"


def tried_model(
    step: dict[str, Any], model: Model, record: Progress, measures: dict[str, Any] | None, measure: str | None
) -> Tried:
    """The result of a step. Raises UsageError where the measure is undefined."""
    value = None if measures is None or measure is None else measured(measures, measure)
    last = record.history[-1]
    found = last.passes, last.seconds, model.result(), measures, measure if measures else None, value
    described = model.describe()
    return Tried(step["C"], *found, described["l1"] if len(step) > 1 else None, described.get("n_nonzero_weights"))


def _steps(Cs: Sequence[float], l1s: Sequence[float | str] | None, options: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The options that change along a path, C and maybe λ (by its `name`), in path order. Raises UsageError for values that
    make no path."""
    Cs, l1s = [plain(C) for C in Cs], None if l1s is None else [plain(l1) for l1 in l1s]
    if "C" in options or not Cs:
        raise UsageError("Cs: give one value of C or more, and no option C")
    values = sorted(float(C) for C in Cs)
    if len(set(values)) < len(values):
        raise UsageError("Cs: give every value of C once")
    if l1s is None:
        return [{"C": C} for C in values]
    if name in options or not l1s or len(set(l1s)) < len(l1s):
        raise UsageError(f"l1s: give every value of {name} once, and no option {name}")
    if len(values) > 1:
        raise UsageError("l1s: a path goes over C or over l1; give one value of the other")
    parts = [part_of(l1) for l1 in l1s]
    if None in parts and parts != [None] * len(parts):
        raise UsageError("l1s: give numbers, or parts of λmax such as '10%', not both")
    ordered = sorted(zip(l1s, parts, strict=True), key=lambda each: each[1] or float(each[0]), reverse=True)
    return [{"C": values[0], name: l1 if part else float(l1)} for l1, part in ordered]


def measured(measures: dict[str, Any], name: str) -> float:
    """The measure `name`. Raises UsageError where it is undefined or not available for the model."""
    if name not in measures:
        having = [each for each, value in measures.items() if isinstance(value, float)]
        raise UsageError(f"measure: there is no {name} for such a model, only {', '.join(having)}")
    if measures[name] is None:
        raise UsageError(
            f"measure: {name} is not defined on the validation data (are all its labels the same?); choose another one"
        )
    return float(measures[name])


def _measuring_bytes(data: Dataset) -> int:
    """Memory needed to measure on `data`."""
    reading = 0 if isinstance(data, MemoryDataset) else buffer_bytes(data.manifest)
    return reading + _MEASURED_ROW * data.manifest.statistics.n_rows
