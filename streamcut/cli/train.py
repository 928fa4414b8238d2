"""streamcut train"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamcut.cli import signals
from streamcut.cli.output import note, print_json, print_table, refuse_existing
from streamcut.cli.parameters import Duration, force_option, json_option, quiet_option
from streamcut.cli.progress import Progress
from streamcut.config import CheckpointOptions
from streamcut.errors import NotConvergedError
from streamcut.units import format_bytes

if TYPE_CHECKING:
    from streamcut.execution.plan import MemoryPlan


@click.command()
@click.argument("data")
@click.option("--model", "model_path", metavar="FILE", help="Where to write the model (.npz). Required, except with --dry-run.")
@click.option("--task", type=click.Choice(["auto", "binary"]), default="auto", show_default=True, help="What is learnt.")
@click.option("--C", "C", type=float, default=1.0, show_default=True, help="Weight of the loss of one row, as in LIBLINEAR.")
@click.option(
    "--solver",
    type=click.Choice(["auto", "ocas", "cpa", "bundle-dca"]),
    default="auto",
    show_default=True,
    help="The algorithm; bundle-dca needs the fewest passes.",
)
@click.option(
    "--cut",
    type=click.Choice(["predicted", "exact"]),
    default="predicted",
    show_default=True,
    help="Where OCAS takes its cuts: predicted needs one pass an iteration, exact (the paper) two.",
)
@click.option(
    "--bias", type=float, default=1.0, show_default=True, help="Value of the constant feature of every row; 0 for none."
)
@click.option("--tol", type=float, default=1e-3, show_default=True, help="Largest gap allowed, in mean loss; 0 switches it off.")
@click.option(
    "--tol-relative", type=float, default=1e-2, show_default=True, help="Largest gap allowed, as a part of the objective; 0: off."
)
@click.option("--target", type=float, help="Stop as soon as the objective is at most this.")
@click.option("--max-passes", type=int, help="Stop after so many passes over the data.")
@click.option("--max-time", type=Duration(), metavar="TIME", help="Stop after this time, for example 90s, 10m, 2h.")
@click.option("--positive-weight", type=float, default=1.0, show_default=True, help="Factor on C for rows of the positive label.")
@click.option("--positive-label", type=float, help="Which of the two labels is the positive one; the greater unless given.")
@click.option("--max-cuts", type=int, help="Cutting planes kept in memory; each takes as much as the weights.")
@click.option("--lanes", type=int, help="Parts the data is dealt to; it fixes the order of summation, so the same bits come out.")
@click.option("--workers", type=int, help="Threads, or processes of a local cluster; the number of processors unless given.")
@click.option(
    "--scheduler",
    default="threads",
    show_default=True,
    metavar="threads|sync|local-cluster|tcp://HOST:PORT",
    help="Run the lanes on threads, one after the other, on a Dask cluster of our own, or on the one of that scheduler.",
)
@click.option(
    "--deadline", type=Duration(), default="2m", show_default=True, metavar="TIME", help="How long Dask may have no workers."
)
@click.option("--memory", default="auto", show_default=True, help="Peak memory of the process: 4GB, 512MiB, 50%, auto.")
@click.option("--scratch", metavar="DIR", help="Folder for what is kept of each row when it does not fit, or on Dask.")
@click.option("--checkpoint", "folder", metavar="DIR", help="Folder for checkpoints of this run, made if need be.")
@click.option(
    "--checkpoint-every", "every", type=Duration(), default="10m", show_default=True, metavar="TIME", help="How often at least."
)
@click.option("--checkpoint-iterations", "iterations", type=click.IntRange(1), help="Also at every so many iterations.")
@click.option("--checkpoint-required", is_flag=True, help="End with an error when a checkpoint cannot be written.")
@click.option("--resume", is_flag=True, help="Go on from the newest checkpoint; the result is the same to the last bit.")
@click.option(
    "--row-cache",
    default="auto",
    show_default=True,
    help="bundle-dca: memory for the rows that matter most (2GB, 0), or as a part of the data (30%); auto: 30% if it fits.",
)
@click.option(
    "--sweeps", type=int, default=50, show_default=True, help="bundle-dca: sweeps over cached rows after a pass, at most."
)
@click.option("--require-convergence", is_flag=True, help="Exit with code 9 when the tolerance was not reached.")
@click.option("--dry-run", is_flag=True, help="Print the memory plan on stdout, read no rows and write nothing.")
@click.option("--verbose", "-v", is_flag=True, help="Show the memory plan and what goes on behind.")
@force_option
@json_option
@quiet_option
def command(
    data: str,
    model_path: str | None,
    require_convergence: bool,
    dry_run: bool,
    verbose: bool,
    force: bool,
    as_json: bool,
    quiet: bool,
    folder: str | None,
    every: float,
    iterations: int | None,
    checkpoint_required: bool,
    resume: bool,
    **options: Any,
) -> None:
    """Train a linear SVM on the store DATA and write it to the --model file.

    It minimises ½‖w‖² + C Σ u_i max(0, 1 − y_i⟨w, x_i⟩) and ends with a certificate: the objective reached, and a bound that no
    weights can beat.

    Ctrl-C or SIGTERM ends it in good order: the best model so far is written, and a checkpoint if --checkpoint was given, from
    which the same command with --resume goes on. A second one ends it at once.

    \b
    Examples:
      streamcut train train.zarr --model m.npz
      streamcut train train.zarr --model m.npz --C 0.1 --memory 4GB --max-time 2h
      streamcut train train.zarr --model m.npz --checkpoint run --checkpoint-every 30m
      streamcut train train.zarr --model m.npz --checkpoint run --resume
      streamcut train train.zarr --dry-run --memory 4GB
    """
    if model_path is not None:
        refuse_existing(model_path, "--model", force or (resume and _is_unfinished(model_path)))
    elif not dry_run:
        raise click.UsageError("Missing option '--model'.")
    if folder is None and (resume or checkpoint_required or iterations is not None):
        raise click.UsageError("--resume and the other options of checkpoints need --checkpoint DIR.")
    checkpoint = None
    if folder is not None and not dry_run:
        checkpoint = CheckpointOptions(folder, every, iterations, checkpoint_required, resume)
    if verbose:
        logging.basicConfig(format="%(message)s", level=logging.INFO)

    with signals.deferred() as stop:
        from streamcut.io.opening import open_dataset
        from streamcut.models.checkpoint import remove_checkpoints
        from streamcut.models.files import plain, save_model
        from streamcut.training import train

        dataset = open_dataset(data)
        shards = len(dataset.manifest.shards)

        def show_plan(plan: MemoryPlan) -> None:
            if as_json:
                print_json({"event": "plan", "budget": plan.budget, "needed": plan.needed, "pinned": plan.pinned_bytes})
            elif dry_run or verbose:
                print_table(dict(plan.describe(shards)), err=not dry_run)
            if dry_run:
                raise click.exceptions.Exit(0)

        try:
            with Progress.chosen(json=as_json, quiet=quiet) as progress:
                model = train(dataset, **options, on_iteration=progress, on_plan=show_plan, checkpoint=checkpoint, stop=stop)
        except KeyboardInterrupt:  # stopped before there was a model
            signals.raise_received()
            raise
        assert model_path is not None  # only a dry run goes without, and ends with its plan
        save_model(model, model_path)
        certificate = model.certificate
        if folder is not None and certificate.converged:
            remove_checkpoints(Path(folder))
    if as_json:
        fields = {name: getattr(certificate, name) for name in certificate.__slots__}
        print_json({"event": "result", "model": model_path, **plain({**fields, "gap": certificate.gap, **model.resources})})
    elif not quiet:
        note(certificate.in_words())
        note(f"Model written to {model_path}.")
    if verbose:
        used, planned, budget = (format_bytes(model.resources[name]) for name in ("peak", "planned", "budget"))
        note(f"Peak memory {used}, planned {planned}, budget {budget}.")
    signals.raise_received()
    if require_convergence and not certificate.converged:
        raise NotConvergedError(f"not converged ({certificate.stop_reason}); the model in {model_path} is the best so far")


def _is_unfinished(model_path: str) -> bool:
    """Whether the file is the model of a run that was interrupted, which --resume may replace."""
    if not Path(model_path).exists():
        return False
    from streamcut.models.certificate import StopReason
    from streamcut.models.files import load_model

    return load_model(model_path).certificate.stop_reason is StopReason.INTERRUPTED
