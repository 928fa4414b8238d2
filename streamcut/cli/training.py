"""streamcut train and fit"""

from __future__ import annotations

import logging
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from streamcut import api
from streamcut.cli import signals
from streamcut.cli.made import TABLE, checkpoint_of, has, options_from, set_option, taken
from streamcut.cli.output import note, number, print_json, print_rows, print_table, save_trained
from streamcut.config import GRID, SETTINGS, CheckpointOptions, TrainOptions
from streamcut.errors import NotConvergedError
from streamcut.foundation.interrupts import waits_end_by
from streamcut.foundation.shown import options_text
from streamcut.foundation.units import format_bytes
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.formats.finding import is_raw
from streamcut.io.outputs import reserved
from streamcut.progress import Display

if TYPE_CHECKING:
    from streamcut.execution.plan import MemoryPlan
    from streamcut.grids.search import Tried
    from streamcut.models.model import Model
    from streamcut.tuning import Tuned

_TABLE = ("labels", "weights", "format")
_tables = {"group": "Tables and text"}
_OF_FIT = ("task", "loss", "positive_label", "memory", "workers", "seed", "max_time", "scratch")
_C_OF_FIT = {"metavar": "NUMBER[,…]", "help": "Values to try.  [default: 0.01,0.1,1 and further]", "default": None, "group": ""}


@has(
    *options_from(TrainOptions, without=SETTINGS, several=[name for name in GRID if name != "positive_label"]),
    set_option(TrainOptions, SETTINGS, "loss, solver, kernel or task", several=True, group="Solver"),
    *options_from(CheckpointOptions),
    *options_from(ConvertOptions, only=_TABLE, labels=_tables, weights=_tables, format=_tables),
)
def train(
    data: tuple, *, output: str | None = None, folds: int | None = None, measure: str | None = None, plot: str | None = None,
    require_convergence: bool = False, dry_run: bool = False, verbose: bool = False, force: bool = False, as_json: bool = False,
    quiet: bool = False, **options: Any,
) -> None:  # fmt: skip
    """
    output    where to write the model (.npz), also a URL; required, except with --dry-run
    folds     measure models on folds of rows, drawn at random by --seed, in place of --validation
    measure   of `evaluate`: the one by which the best is chosen; log loss where there are probabilities, else the task's first
    plot      draw the measure over C (.svg or .png; needs streamcut[plots])
    require_convergence   exit with code 9 if the tolerance was not reached
    dry_run   print the memory plan on stdout, read no rows and write nothing
    verbose   show the memory plan and log messages

    Any option of what is learnt, of the solver or the kernel takes several values, such as --C 0.1,1,10 or --loss hinge,logistic:
    a model is trained for every combination, and the one that is best on --validation is written. With --folds they are measured
    on the rows of the fold that was left out, and the best is trained on everything; rows of one qid stay together. Models of
    linear solvers share passes, or go from each C to the next; limits such as --max-passes are for each.

    Ctrl-C, SIGTERM or SIGHUP ends it in good order: the best model so far is written (none of --folds) and,
    with --checkpoint, a checkpoint from which the same command with --resume continues. A second one ends it at once.

    How features are made of a table is up to `fit` and `convert`.

    In a shell:
      streamcut train train.zarr -o m.npz
      streamcut train monday.zarr tuesday.zarr -o m.npz
      streamcut train clicks.csv --label click -o m.npz
      streamcut train train.zarr -o m.npz --C 0.1 --memory 4GB --max-time 2h
      streamcut train train.zarr -o m.npz --checkpoint run --resume
      streamcut train train.zarr -o m.npz --C 0.01,0.1,1,10 --validation test.zarr
      streamcut train train.zarr -o m.npz --kernel rbf --gamma 0.01,0.1 --folds 3
      streamcut train train.zarr -o m.npz --solver ocas --set cut=exact
      streamcut train train.zarr --dry-run --memory 4GB
    """
    validation, settings, folder = options.pop("validation"), options.pop("settings"), options["directory"]
    rows = data[0] if len(data) == 1 else list(data)
    if output is None and not dry_run:
        raise click.UsageError("Missing option '--output'.")
    if plot is not None:
        from streamcut.reports.plots import needs_matplotlib

        needs_matplotlib()
    checkpoint, convert = checkpoint_of(options), taken(options, _TABLE)
    if (dry_run or checkpoint is not None) and (convert or (isinstance(rows, str) and is_raw(rows))):
        what = "--dry-run plans" if dry_run else "--checkpoint is"
        raise click.UsageError(f"{what} for a store; make one of {rows} with `streamcut convert` first.")
    options, grid = _divided(options | settings)
    if grid and validation is None and folds is None:
        flag = next(iter(grid)).replace("_", "-")
        raise click.UsageError(f"Several values of --{flag} need --validation DATA or --folds NUMBER to choose the best one.")
    single = TrainOptions(**options, **{name: values[0] for name, values in grid.items()})
    watched = single.record.family != "linear" and not grid  # kernel solvers measure as they go
    if dry_run and not watched:
        validation = None  # the plan of a training is the same without
    search = folds is not None or bool(grid) or (validation is not None and not watched)
    if (measure is not None or plot is not None) and not search:
        raise click.UsageError("--measure and --plot are for models that are measured: see --validation and --folds.")
    if search and dry_run:
        raise click.UsageError("--dry-run plans one training; give one value of each option, and no --folds.")
    if verbose:
        behind = logging.StreamHandler()
        behind.addFilter(lambda record: record.name != "streamcut.run")  # shown below
        logging.basicConfig(format="%(message)s", level=logging.INFO, handlers=[behind])
    shown = _Shown(as_json, quiet, folds, list(grid) or ["C"])

    def show_plan(plan: MemoryPlan) -> None:
        if as_json:
            print_json({"event": "plan", "budget": plan.budget, "needed": plan.needed, "pinned": plan.pinned_bytes})
        elif dry_run or verbose:
            print_table(dict(plan.describe()), err=not dry_run)
        if dry_run:
            raise click.exceptions.Exit(0)

    tuned: Tuned | None = None
    with ExitStack() as held, signals.deferred() as stop:
        if output is not None and not dry_run:
            held.enter_context(reserved(output))
        checkpoint = None if dry_run else checkpoint
        with waits_end_by(stop), Display.chosen(json=as_json and not search, quiet=quiet or as_json) as display:
            if search:
                tuned = api.tune(
                    rows, grid or {"C": [options.pop("C")]}, convert=convert or None, validation=validation, folds=folds,
                    measure=measure, on_iteration=display, on_model=shown.model, on_trained=shown.trained, checkpoint=checkpoint,
                    stop=stop, **options,
                )  # fmt: skip
                model = tuned.model
            else:
                model = api.train(
                    rows, convert=convert or None, validation=validation, on_plan=show_plan, checkpoint=checkpoint, stop=stop,
                    progress=display, **options,
                )  # fmt: skip
        assert output is not None  # only a dry run has none, and ends with its plan
        written, late = save_trained(model, output, force)
        if folder is not None and model.converged:
            from streamcut.models.checkpoint import remove_checkpoints

            remove_checkpoints(folder, nested=search)
    if plot is not None:
        from streamcut.reports.plots import grid_plot, save

        assert tuned is not None  # as --plot needs a search
        save(grid_plot(tuned.cells), plot)
    shown.result(model, written, tuned)
    if verbose and not search:
        used, planned, budget = (format_bytes(model.resources[name]) for name in ("peak", "planned", "budget"))
        note(f"Peak memory {used}, planned {planned}, budget {budget}.")
    signals.raise_received()
    if late is not None:
        raise late
    if require_convergence and not model.converged:
        raise NotConvergedError(f"not converged ({model.stop_reason}); the model in {written} is the best so far")


def _divided(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """(options with one value, those with several)."""
    grid = {name: value for name, value in options.items() if isinstance(value, list) and len(value) > 1}
    return {name: value[0] if isinstance(value, list) else value for name, value in options.items() if name not in grid}, grid


class _Shown:
    """Shows each model when it is ready, and in the end the best. `varied`: the options that differ."""

    def __init__(self, as_json: bool, quiet: bool, folds: int | None, varied: list[str]) -> None:
        self._json, self._quiet, self._folds, self._varied = as_json, quiet, folds, varied

    def _event(self, event: dict[str, object], *texts: str) -> None:
        if self._json:
            print_json(event)
        elif not self._quiet:
            note("  ".join(filter(None, texts)))

    def _named(self, point: dict[str, object], fold: int | None) -> list[str]:
        where = "" if self._folds is None else "all rows" if fold is None else f"fold {fold + 1}"
        return [where, *(options_text({name: value}) for name, value in point.items() if name in self._varied)]

    def model(self, point: dict[str, object], fold: int, tried: Tried) -> None:
        """A model, measured."""
        event = {"event": "model", "fold": None if self._folds is None else fold, **point, **asdict(tried)}
        sparse = f"weights {tried.nonzero:,}" if tried.l1 and tried.nonzero is not None else ""
        gap = f"gap {tried.result['gap']:.3g}" if tried.result.get("gap") is not None else ""
        cost = f"passes {tried.passes}", f"{tried.seconds:.1f} s", gap
        self._event(event, *self._named(point, fold), sparse, f"{tried.measure} {number(tried.value)}", *cost)

    def trained(self, point: dict[str, object], fold: int | None, model: Model) -> None:
        """A model, not yet measured."""
        certificate = model.certificate if len(model.certificates) == 1 else None
        event = {"event": "trained", "fold": fold, **point, **model.result()}
        self._event(event, *self._named(point, fold), f"trained: {certificate.briefly() if certificate else model.in_words()}")

    def result(self, model: Model, written: str, tuned: Tuned | None) -> None:
        """The model, `written`, and the search `tuned`, if there was one."""
        event = {"event": "result", "model": written, **model.result()}
        if tuned is None:
            event |= {name: model.resources[name] for name in ("budget", "planned", "peak", "readings")}
        else:
            best = tuned.best
            for cell in tuned.cells if self._json else ():
                print_json({"event": "cell", **cell.as_dict()})
            event |= {**best.options, best.measure: best.mean, **tuned.resources}
            if not self._json and not self._quiet:
                print_rows([cell.as_dict() for cell in tuned.cells] if len(tuned.cells) > 1 else [], err=True)
                note(f"Best: {options_text(best.options)}, with {best.measure} {number(best.mean)}.")
        self._event(event, model.in_words())
        if not self._json and not self._quiet:
            note(f"Model written to {written}.")


@has(
    *options_from(ConvertOptions, only=TABLE),
    *options_from(TrainOptions, only=_OF_FIT),
    *options_from(CheckpointOptions),
    *options_from(TrainOptions, only=["C"], several=["C"], C=_C_OF_FIT),
)
def fit(
    data: str, *, label: str | None, output: str, validation: str, group_column: str | None, time_column: str | None,
    measure: str | None, store: str | None, force: bool = False, as_json: bool = False, quiet: bool = False, **options: Any,
) -> None:  # fmt: skip
    """
    output    where to write the model (.npz); required

    In a shell:
      streamcut fit clicks.csv --label click -o m.npz
      streamcut fit flights.parquet --label 'delay>15' --time-column date -o m.npz
      streamcut fit visits.csv --label bought --group-column customer -o m.npz
    """
    C = options.pop("C")
    checkpoint = checkpoint_of(options)
    convert = taken(options, TABLE)

    from streamcut.models.checkpoint import remove_checkpoints

    with reserved(output), signals.deferred() as stop:
        with waits_end_by(stop):
            fitted = api.fit(
                data, label, validation=validation, group_column=group_column, time_column=time_column, store=store,
                convert=convert, C=C, measure=measure, on_told=None if quiet or as_json else note, checkpoint=checkpoint,
                stop=stop, **options,
            )  # fmt: skip
        written, late = save_trained(fitted.model, output, force)
        if checkpoint is not None and fitted.model.converged:
            remove_checkpoints(checkpoint.directory, nested=True)
    if as_json:
        shares = {str(label): share for label, share in fitted.shares.items()}
        print_json({
            "event": "result", "model": written, "C": fitted.C, "measure": fitted.measure, "tried": list(fitted.tried.items()),
            "measures": fitted.measures, "baseline": fitted.baseline, "shares": shares, "rows": list(fitted.rows),
            "largest": [list(weight) for weight in fitted.largest], "remarks": fitted.remarks, "store": fitted.store,
            "seconds": fitted.seconds, **fitted.model.result(),
        })  # fmt: skip
    elif not quiet:
        click.echo(fitted.in_words())
        note(f"Model written to {written}; continue with `streamcut predict {written} DATA` or `streamcut report {written}`.")
    signals.raise_received()
    if late is not None:
        raise late
