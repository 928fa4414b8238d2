"""streamcut train"""

from __future__ import annotations

import logging
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from streamcut.cli import signals
from streamcut.cli.destinations import expect_saved, refuse_existing, reserved_output, save_trained
from streamcut.cli.help import Command
from streamcut.cli.output import note, number, print_json, print_table
from streamcut.cli.parameters import (
    Grouped,
    NumbersOrParts,
    checkpoint_of,
    force_option,
    json_option,
    options_from,
    quiet_option,
    table_options,
    taken,
)
from streamcut.config import CheckpointOptions, TrainOptions
from streamcut.errors import NotConvergedError
from streamcut.foundation.interrupts import waits_end_by
from streamcut.foundation.units import format_bytes
from streamcut.io.places.outputs import exists
from streamcut.progress.display import Display

if TYPE_CHECKING:
    from streamcut.execution.plan import MemoryPlan
    from streamcut.grids.selection import Tried
    from streamcut.models.model import Model


@click.command(cls=Command)
@click.argument("data")
@click.option(
    "--output",
    "-o",
    "--model",
    "model_path",
    metavar="FILE",
    help="Where to write the model (.npz), also a URL. Required, except with --dry-run.",
)
@options_from(TrainOptions, l1_only={"type": NumbersOrParts(), "metavar": "NUMBER|PART%[,…]"})
@options_from(CheckpointOptions)
@click.option(
    "--choose-by",
    cls=Grouped,
    group="What is learnt",
    help="Measure of `evaluate` by which the best model on --validation is chosen. Default: the task's first.",
    metavar="MEASURE",
)
@table_options
@click.option("--report", metavar="FILE", help="Also write a page (.html) about the model; see `streamcut report`.")
@click.option("--require-convergence", is_flag=True, help="Exit with code 9 if the tolerance was not reached.")
@click.option("--dry-run", is_flag=True, help="Print the memory plan on stdout, read no rows and write nothing.")
@click.option("--verbose", "-v", is_flag=True, help="Show the memory plan and log messages.")
@force_option
@json_option
@quiet_option
def command(
    data: str,
    label: str | None,
    model_path: str | None,
    report: str | None,
    require_convergence: bool,
    dry_run: bool,
    verbose: bool,
    force: bool,
    as_json: bool,
    quiet: bool,
    C: tuple[float, ...],
    l1: tuple[float | str, ...],
    l1_only: tuple[float | str, ...],
    validation: str | None,
    choose_by: str | None,
    **options: Any,
) -> None:
    """Train a model on DATA, a store, svmlight text or, with --label, a table, and write it to the --output file.

    The linear model for two classes minimises ½‖w‖² + C Σ u_i max(0, 1 − y_i⟨w, x_i⟩) and ends, like all linear models, with a
    certificate: the objective reached, and a bound that no weights can beat.

    Ctrl-C, SIGTERM or SIGHUP ends it in good order: the best model so far is written and, with --checkpoint, a checkpoint from
    which the same command with --resume continues. A second one ends it at once.

    \b
    Examples:
      streamcut train train.zarr -o m.npz
      streamcut train clicks.csv --label click -o m.npz
      streamcut train train.zarr -o m.npz --C 0.1 --memory 4GB --max-time 2h
      streamcut train train.zarr -o m.npz --checkpoint run --checkpoint-every 30m
      streamcut train train.zarr -o m.npz --checkpoint run --resume
      streamcut train train.zarr -o m.npz --C 0.01,0.1,1,10 --validation test.zarr
      streamcut train train.zarr --dry-run --memory 4GB
    """
    folder, resume = options["directory"], options["resume"]
    replace = force or (resume and model_path is not None and _is_unfinished(model_path))
    if model_path is not None:
        refuse_existing(model_path, "--output", replace, reads=[data, validation])
    elif not dry_run:
        raise click.UsageError("Missing option '--output'.")
    if report is not None:
        refuse_existing(report, "--report", force, reads=[data, validation, model_path])
        from streamcut.reports.drawing import needs_matplotlib

        needs_matplotlib()
    checkpoint, convert = checkpoint_of(options), taken(options)
    if dry_run:
        checkpoint = None
    several = [name for name, values in (("--C", C), ("--l1", l1), ("--l1-only", l1_only)) if len(values) > 1]
    if several and validation is None:
        raise click.UsageError(f"Several values of {several[0]} need --validation DATA to choose the best one.")
    if len(several) > 1:
        raise click.UsageError(f"A path goes over {several[0]} or over {several[1]}: give one value of the other.")
    options |= {"l1": l1[0], "l1_only": l1_only[0]}
    by_C = validation is not None and TrainOptions(**options).record.family == "linear"
    if not by_C and (several or choose_by is not None):
        raise click.UsageError(
            "Several --C or --l1 and --choose-by are for linear solvers with --validation; see `streamcut tune`."
        )
    path: dict[str, Any] = {}
    if several and several[0] != "--C":
        name, values = ("l1", l1) if several == ["--l1"] else ("l1_only", l1_only)
        path = {"l1s": values, "alone": name == "l1_only"}
    if verbose:
        behind = logging.StreamHandler()
        behind.addFilter(lambda record: record.name != "streamcut.run")  # shown below
        logging.basicConfig(format="%(message)s", level=logging.INFO, handlers=[behind])

    with ExitStack() as held, signals.deferred() as stop:
        if model_path is not None and not dry_run:
            held.enter_context(reserved_output(model_path, "--output", replace))
        from streamcut.data.datasets import stored, with_origin
        from streamcut.models.checkpoint_places import remove_checkpoints
        from streamcut.models.files import plain
        from streamcut.training import opened, train

        made = stored(data, label, convert or None, options["scratch"], options["memory"])
        with waits_end_by(stop):
            place, made_of = held.enter_context(made)
            if made_of is not None and (dry_run or checkpoint is not None):
                what = "--dry-run plans" if dry_run else "--checkpoint is"
                raise click.UsageError(f"{what} for a store; make one of {data} with `streamcut convert` first.")
            dataset = opened(place)
        shards = len(dataset.manifest.shards)

        def show_plan(plan: MemoryPlan) -> None:
            if as_json:
                print_json({"event": "plan", "budget": plan.budget, "needed": plan.needed, "pinned": plan.pinned_bytes})
            elif dry_run or verbose:
                print_table(dict(plan.describe(shards)), err=not dry_run)
            if dry_run:
                raise click.exceptions.Exit(0)

        with waits_end_by(stop), Display.chosen(json=as_json, quiet=quiet) as display:
            common: dict[str, Any] = {"progress": display, "on_plan": show_plan, "checkpoint": checkpoint, "stop": stop}
            if by_C:
                from streamcut.grids.selection import train_path

                show = _Path(as_json, quiet)
                options = {known: value for known, value in options.items() if not (path and known == name)}
                model, _ = train_path(
                    dataset, C, validation=validation, measure=choose_by, on_model=show, **path, **common, **options
                )
            else:
                model = train(dataset, C=C[0], validation=validation, **common, **options)
        model = with_origin(model, made_of)
        assert model_path is not None  # only a dry run has none, and ends with its plan
        written = save_trained(model, model_path, replace)
        if folder is not None and model.converged:
            remove_checkpoints(folder)
    if report is not None:
        _report(model, report, validation, written, force)
    if as_json:
        cost = {name: model.resources[name] for name in ("budget", "planned", "peak", "readings")}
        print_json({"event": "result", "model": written, **plain({**model.result(), **cost})})
    elif not quiet:
        note(model.in_words())
        note(f"Model written to {written}.")
    if verbose:
        used, planned, budget = (format_bytes(model.resources[name]) for name in ("peak", "planned", "budget"))
        note(f"Peak memory {used}, planned {planned}, budget {budget}.")
    signals.raise_received()
    expect_saved(written, model_path)
    if require_convergence and not model.converged:
        raise NotConvergedError(f"not converged ({model.stop_reason}); the model in {written} is the best so far")


def _report(model: Model, path: str, validation: str | None, model_path: str, force: bool) -> None:
    from streamcut.reports.page import Report

    Report(model, data=validation, path=model_path).write(path, replace=force)


class _Path:
    """Shows each model of a path over C or λ when it is ready."""

    def __init__(self, as_json: bool, quiet: bool) -> None:
        self._as_json, self._quiet = as_json, quiet
        self._told = False

    def __call__(self, model: Model, tried: Tried) -> None:
        from streamcut.models.files import plain

        if self._as_json:
            print_json({"event": "model", **plain(asdict(tried))})
        elif not self._quiet:
            step = f"C {tried.C:<8g}" if tried.l1 is None else f"l1 {tried.l1:<8g} weights {tried.nonzero:<8,}"
            if (most := model.parameters.get("l1_max")) is not None and not self._told:
                note(f"λmax is {most:g}: at or above it all weights are 0.")
                self._told = True
            note(
                f"{step} {tried.measure} {number(tried.value)}  passes {tried.passes}  {tried.seconds:.1f} s  "
                f"objective {tried.result['primal']:.6g}  gap {tried.result['gap']:.3g}"
            )


def _is_unfinished(model_path: str) -> bool:
    """Whether the file is the model of a run that was interrupted, which --resume may replace."""
    if not exists(model_path):
        return False
    from streamcut.models.certificate import StopReason
    from streamcut.models.files import load_model

    return load_model(model_path).stop_reason is StopReason.INTERRUPTED
