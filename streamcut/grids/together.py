"""Models of a grid, trained together: points that differ in C, λ and the fold left out are columns of one training.

Any other option that a grid varies, such as the loss, takes a separate training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from streamcut.config import CheckpointOptions
from streamcut.evaluation import Evaluation, measures_of
from streamcut.execution.ceiling import SLACK
from streamcut.foundation.systems import memory_limit, resident_bytes
from streamcut.io.dataset import Dataset, first_rows, shard_bytes
from streamcut.io.manifest import Manifest
from streamcut.io.row_view import Folds, kept_rows
from streamcut.io.stores.buffers import ShardBuffers
from streamcut.jobs.columns import ColumnsJob, Point
from streamcut.loss_table import JOINT_LOSSES
from streamcut.models.checkpoint import below
from streamcut.models.model import Model
from streamcut.solvers.progress import Observer
from streamcut.training import Session, checked

PROBLEMS = ("binary", "regression", "one-vs-rest", *JOINT_LOSSES)  # those that can be trained as columns


@dataclass(frozen=True, slots=True, eq=False)
class GridProblem:
    """A model for each of `Cs`, with `options` of `train`, without the rows of `fold` (None: on all rows). `point` names it."""

    fold: int | None
    point: Mapping[str, Any]
    Cs: tuple[float, ...]
    options: Mapping[str, Any]


@dataclass(slots=True)
class GridTraining:
    """Trains and measures models of the same data, and counts the `readings` and `bytes_read` (decoded from storage) of all.

    folds       assigns rows to folds
    on_trained  called with (the options that name a model, its fold, the model) when it is trained
    groups      number of groups of columns trained in sequence
    """

    data: Dataset
    memory: str = "auto"
    folds: Folds | None = None
    on_iteration: Observer | None = None
    on_trained: Callable[[dict[str, Any], int | None, Model], None] | None = None
    checkpoint: CheckpointOptions | None = None
    stop: Callable[[], bool] = lambda: False
    bytes_read: int = 0
    readings: float = 0.0
    groups: int = 0

    def train(self, problems: Sequence[GridProblem]) -> list[list[Model]]:
        """The model for each C of each problem. Raises KeyboardInterrupt at a stop before all have a model, or of folds."""
        models: dict[int, list[Model]] = {}
        for name, numbers in _by_training(problems).items():
            outcomes = self._columns([problems[number] for number in numbers], name)
            models |= dict(zip(numbers, outcomes, strict=True))
            if self.stop() and (self.folds is not None or len(models) < len(problems)):
                raise KeyboardInterrupt("training was stopped")
        return [models[number] for number in range(len(problems))]

    def _columns(self, problems: list[GridProblem], name: str) -> list[list[Model]]:
        """The results of problems that differ only in C, λ and fold.

        The largest C comes first: where memory is short and groups are trained in sequence, models that need many passes then
        share them.
        """
        first = problems[0]
        pairs = [(C, number) for number, problem in enumerate(problems) for C in problem.Cs]
        pairs.sort(key=lambda pair: -pair[0])
        points = [Point(C, problems[number].options.get("l1", 0.0), _left_out(problems[number])) for C, number in pairs]
        chosen, scheduler = checked({**first.options, "C": first.Cs[0]})
        chosen = replace(chosen, solver=chosen.chosen_solver)  # no choice by the data
        run = Session(self.data, chosen, scheduler=scheduler, stop=self.stop)
        run.job = job = ColumnsJob.of(run.options, run.dataset.manifest, points, self.folds)
        with run:
            planned = run.job
            assert isinstance(planned, ColumnsJob)
            record = run.progress(self.on_iteration)
            if self.checkpoint is not None:
                record.checkpoints = run.checkpoints(replace(self.checkpoint, directory=below(self.checkpoint.directory, name)))
            trained = run.all_finished(lambda: planned.models(run.runner, record, run.plan))
            models = dict(zip(pairs, trained, strict=True))
            self.groups += -(-job.count // planned.at_once)
            self.readings += run.readings.value
        self.bytes_read += record.history[-1].bytes_read
        del trained
        return [[self._kept(problem, C, models.pop((C, number))) for C in problem.Cs] for number, problem in enumerate(problems)]

    def _kept(self, problem: GridProblem, C: float, model: Model) -> Model:
        if problem.fold is not None:
            model = replace(cast(Any, model), proofs=())  # its bound is in the certificate; no training continues from it
        if self.on_trained is not None:
            self.on_trained({"C": C, **problem.point}, problem.fold, model)
        return model

    def measure(self, models: Sequence[tuple[Model, int]]) -> list[Evaluation]:
        """Each model measured on the rows of a fold of the data, in one pass for as many as memory allows."""
        assert self.folds is not None
        statistics = self.data.manifest.statistics
        of_a_row = max(measures_of(model).row_bytes[statistics.weight_sum is not None] for model, _ in models)
        size = max(1, of_a_row * statistics.n_rows // self.folds.count)
        free = memory_limit(self.memory) - resident_bytes() - SLACK
        at_once, evaluations = 1 + max(0, free) // size, []  # one in any case: what was trained is not lost
        for begin in range(0, len(models), at_once):
            evaluations += self._measured(models[begin : begin + at_once])
        return evaluations

    def _measured(self, models: Sequence[tuple[Model, int]]) -> list[Evaluation]:
        assert self.folds is not None
        collected = [measures_of(model) for model, _ in models]
        buffers, space, first = self.data.buffers(), ShardBuffers(), first_rows(self.data.manifest)
        for shard in range(len(self.data.manifest.shards)):
            chunk = self.data.read(shard, buffers)
            numbers = self.folds.of(chunk, first[shard])
            for fold in {left_out for _, left_out in models}:
                held_out = kept_rows(chunk, numbers == fold, space, first[shard])
                for (model, left_out), measures in zip(models, collected, strict=True):
                    if left_out == fold:
                        measures.add(held_out, model.score_chunk(held_out))
        self.readings += 1.0
        self.bytes_read += decoded_bytes(self.data.manifest)
        return [Evaluation(measures.measures()) for measures in collected]


def _left_out(problem: GridProblem) -> int:
    """The fold left out, numbered as in points (−1: none)."""
    return -1 if problem.fold is None else problem.fold


def _by_training(problems: Sequence[GridProblem]) -> dict[str, list[int]]:
    """The indices of problems trained together, by a name for their common options."""
    groups: dict[str, list[int]] = {}
    for number, problem in enumerate(problems):
        common = {name: value for name, value in problem.point.items() if name != "l1"}
        named = ",".join(f"{name}={value if isinstance(value, str) else repr(value)}" for name, value in common.items())
        groups.setdefault(named or "all", []).append(number)
    return groups


def decoded_bytes(manifest: Manifest) -> int:
    """Decoded bytes of all rows: what a pass counts as read."""
    return sum(shard_bytes(manifest, shard) for shard in manifest.shards)
