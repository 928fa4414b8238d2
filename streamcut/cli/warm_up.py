"""streamcut warm-up"""

from __future__ import annotations

import sys

import click

from streamcut.cli.help import Command
from streamcut.cli.output import note
from streamcut.cli.parameters import Choice, quiet_option
from streamcut.config import SOLVERS, TASKS


@click.command("warm-up", cls=Command)
@click.option("--task", "tasks", multiple=True, type=Choice(TASKS[1:]), help="Only for this task; may be repeated.")
@click.option("--solver", "solvers", multiple=True, type=Choice(SOLVERS), help="For this solver; may be repeated.")
@click.option(
    "--values",
    multiple=True,
    type=Choice(("ones", "int8", "float32", "float64")),
    help="Type of the values in the data, `info` shows it; may be repeated.  [default: ones, float32]",
)
@click.option("--all", "everything", is_flag=True, help="All solvers, losses and types of values, and rows with weights.")
@click.option(
    "--into",
    metavar="DIR",
    help="Write them to this folder, for all processors of this machine's kind (x86-64: with AVX2). Commands read it, and never "
    "write to it, where STREAMCUT_KERNELS names it.",
)
@click.option("--workers", type=click.IntRange(1), help="Processes that compile.  [default: one per processor]")
@quiet_option
def command(
    tasks: tuple[str, ...],
    solvers: tuple[str, ...],
    values: tuple[str, ...],
    everything: bool,
    into: str | None,
    workers: int | None,
    quiet: bool,
) -> None:
    """Compile ahead of time what commands would otherwise compile on first use.

    Without options: `convert`, and the default solver of every task, on all processors. The kernels stay in Numba's cache
    (NUMBA_CACHE_DIR) and serve this type of processor. For an image or a package that is to run on others, see --into.

    \b
    Examples:
      streamcut warm-up
      streamcut warm-up --task binary --values float32
      streamcut warm-up --all
      streamcut warm-up --into /opt/streamcut-kernels
    """
    from streamcut.warming import USUAL_VALUES, warm_up

    last = 0

    def show(done: int, of: int) -> None:
        nonlocal last
        if sys.stderr.isatty():
            click.echo(f"\rcompiling kernels  {done} of {of}\x1b[K", nl=done == of, err=True)
        elif 10 * done // of > last:
            last = 10 * done // of
            note(f"compiling kernels  {done} of {of}")

    found = warm_up(
        tasks,
        solvers,
        values or USUAL_VALUES,
        everything=everything,
        into=into,
        workers=workers,
        on_progress=(lambda *_: None) if quiet else show,
    )
    if not quiet:
        note(f"{found} kernels are in {into or 'the cache'}.")
