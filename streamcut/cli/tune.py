"""streamcut tune"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from streamcut.cli import signals
from streamcut.cli.destinations import expect_saved, refuse_existing, reserved_output, save_trained
from streamcut.cli.help import Command
from streamcut.cli.output import note, number, print_json, print_rows
from streamcut.cli.parameters import (
    Numbers,
    checkpoint_of,
    force_option,
    json_option,
    options_from,
    quiet_option,
    table_options,
    taken,
)
from streamcut.config import CheckpointOptions, TrainOptions
from streamcut.foundation.interrupts import waits_end_by

if TYPE_CHECKING:
    from streamcut.grids.search import Cell
    from streamcut.grids.selection import Tried
    from streamcut.models.model import Model

_OWN = ("C", "gamma", "budget", "nu", "validation", "target")  # options that `tune` has differently, or not at all


def _others(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> tuple[tuple[str, list[Any]], ...]:
    """(option, values) for each --grid."""
    found: list[tuple[str, list[Any]]] = []
    for text in given:
        name, _, values = text.partition("=")
        name = name.strip("-").replace("-", "_")
        if not values or any(name == before for before, _ in found) or name in ("C", "l1", "gamma", "budget", "nu"):
            raise click.BadParameter(f"{text!r} is not OPTION=VALUE[,…], of an option that has no grid yet", ctx, param)
        found.append((name, [_value(value) for value in values.split(",")]))
    return tuple(found)


def _value(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


@click.command(cls=Command)
@click.argument("data")
@click.option(
    "--output", "-o", "--model", "model_path", required=True, metavar="FILE", help="Where to write the best model (.npz)."
)
@click.option("--C", "C", type=Numbers(), default="1", show_default=True, metavar="NUMBER[,…]", help="Values of C.")
@click.option("--gamma", type=Numbers(), metavar="NUMBER[,…]", help="Kernels: values of γ.")
@click.option("--budget", type=Numbers(), metavar="VECTORS[,…]", help="bsca, bsgd: numbers of support vectors.")
@click.option("--nu", type=Numbers(), metavar="NUMBER[,…]", help="sbp: values of ν, in place of C.")
@click.option(
    "--grid",
    "others",
    multiple=True,
    callback=_others,
    metavar="OPTION=VALUE[,…]",
    help="Values of another option of `train`; may be given often: --grid loss=hinge,logistic --grid positive-weight=1,5.",
)
@click.option("--validation", metavar="DATA", help="Rows that every model is measured on, in any form `evaluate` takes.")
@click.option("--folds", type=click.IntRange(2), help="Cross-validate instead, with this many folds of rows drawn at random.")
@click.option("--fold-seed", type=int, default=0, show_default=True, help="Random seed of the folds.")
@click.option(
    "--choose-by", metavar="MEASURE", help="Measure of `evaluate` by which the best is chosen. Default: the task's first."
)
@click.option("--plot", metavar="FILE", help="Draw the measure over C (.svg or .png; needs streamcut[plots]).")
@options_from(TrainOptions, without=_OWN)
@options_from(CheckpointOptions)
@table_options
@force_option
@json_option
@quiet_option
def command(
    data: str,
    label: str | None,
    model_path: str,
    C: tuple[float, ...],
    gamma: tuple[float, ...] | None,
    budget: tuple[float, ...] | None,
    nu: tuple[float, ...] | None,
    others: tuple[tuple[str, list[Any]], ...],
    validation: str | None,
    folds: int | None,
    fold_seed: int,
    l1: tuple[float | str, ...],
    choose_by: str | None,
    plot: str | None,
    force: bool,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Train on DATA for every combination of --C, --l1, --gamma, --budget, --nu and --grid, and write the best model.

    DATA is what `train` takes: a store, svmlight text or, with --label, a table.

    With --validation all models are measured on those rows. With --folds they are measured on the rows of the fold that was left
    out, and the model of the best combination is trained on everything. Rows are drawn at random, wherever they stand; those of
    one qid stay together.

    Linear solvers train the models of all folds together: each pass through the data serves them all, and memory is shared out
    among them. They go from each C to the next greater one, which saves passes, and with --checkpoint --resume a run that was
    ended goes on to the same models. Kernel models are trained one after the other. Options of `train` are the same for all
    models; limits such as --max-passes are for each.

    \b
    Examples:
      streamcut tune train.zarr -o m.npz --C 0.01,0.1,1,10 --validation test.zarr
      streamcut tune train.zarr -o m.npz --C 0.1,1,10 --folds 5 --choose-by roc_auc
      streamcut tune t.zarr -o m.npz --C 1,10 --folds 5 --grid loss=hinge,logistic
      streamcut tune t.zarr -o m.npz --kernel rbf --gamma 0.01,0.1 --folds 3
      streamcut tune t.zarr -o m.npz --kernel rbf --solver sbp --nu 0.01,0.1 --folds 3
    """
    refuse_existing(model_path, "--output", force, reads=[data, validation])
    if plot is not None:
        refuse_existing(plot, "--plot", force, reads=[data, validation, model_path])
    if (validation is None) == (folds is None):
        raise click.UsageError("Give either --validation DATA or --folds NUMBER.")

    checkpoint, convert = checkpoint_of(options), taken(options)

    from streamcut.grids.search import point_text
    from streamcut.models.checkpoint_places import remove_checkpoints
    from streamcut.models.files import plain
    from streamcut.reports.drawing import needs_matplotlib
    from streamcut.tuning import tune

    if plot is not None:
        needs_matplotlib()

    def show(point: dict[str, Any], fold: int, tried: Tried) -> None:
        if as_json:
            print_json({"event": "model", "fold": None if folds is None else fold, **point, **plain(asdict(tried))})
        elif not quiet:
            where = "" if folds is None else f"fold {fold + 1}  "
            said = where + point_text(point, "  ")
            note(f"{said}  {tried.measure} {number(tried.value)}  passes {tried.passes}  {tried.seconds:.1f} s")

    def trained(point: dict[str, float], fold: int | None, model: Model) -> None:
        if as_json:
            print_json({"event": "trained", "fold": fold, **point, **plain(model.result())})
        elif not quiet:
            where = "all rows" if fold is None else f"fold {fold + 1}"
            said = model.certificates[0].briefly() if len(model.certificates) == 1 else model.in_words()
            note(f"{where}  {point_text(point, '  ')}  trained: {said}")

    asked = {"C": C, "l1": None if l1 == (0.0,) else l1, "gamma": gamma, "budget": budget, "nu": nu}
    grid: dict[str, Any] = {name: values for name, values in asked.items() if values is not None} | dict(others)
    options = {name: value for name, value in options.items() if name not in grid}
    with reserved_output(model_path, "--output", force), signals.deferred() as stop:
        how: dict[str, Any] = {"validation": validation, "folds": folds, "fold_seed": fold_seed, "measure": choose_by}
        hooks: dict[str, Any] = {"on_model": show, "on_trained": trained, "checkpoint": checkpoint, "stop": stop}
        with waits_end_by(stop):
            found = tune(data, grid, label=label, convert=convert or None, **hooks, **how, **options)
        written = save_trained(found.model, model_path, force)
        if checkpoint is not None:
            remove_checkpoints(checkpoint.directory, nested=True)
    if plot is not None:
        _draw(plot, found.cells)
    if as_json:
        for cell in found.cells:
            print_json({"event": "cell", **cell.as_dict()})
        best = {**found.best.options, found.best.measure: found.best.mean}
        print_json({"event": "result", "model": written, **best, **found.resources})
    elif not quiet:
        if len(found.cells) > 1:
            print_rows([cell.as_dict() for cell in found.cells], err=True)
        chosen = point_text(found.best.options)
        note(f"Best: {chosen}, with {found.best.measure} {number(found.best.mean)}. Model written to {written}.")
    signals.raise_received()
    expect_saved(written, model_path)


def _draw(path: str, cells: list[Cell]) -> None:
    from streamcut.reports.drawing import save
    from streamcut.reports.grids import grid_plot

    save(grid_plot(cells), path)
