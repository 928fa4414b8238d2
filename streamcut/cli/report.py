"""streamcut report"""

from __future__ import annotations

from pathlib import Path

import click

from streamcut.cli.destinations import refuse_existing
from streamcut.cli.help import Command
from streamcut.cli.output import note
from streamcut.cli.parameters import force_option, memory_option, quiet_option


@click.command(cls=Command)
@click.argument("model")
@click.option("--output", "-o", "path", metavar="FILE", help="The page (.html).")
@click.option("--plots", metavar="DIR", help="Folder for the plots, each as SVG and PNG; created if needed.")
@click.option("--data", metavar="DATA", help="Labelled rows to measure the model on: a store, a table or text.")
@click.option("--feature-names", "vocabulary", metavar="FILE", help="Names for features, one a line.")
@memory_option
@force_option
@quiet_option
def command(
    model: str,
    path: str | None,
    plots: str | None,
    data: str | None,
    vocabulary: str | None,
    memory: str,
    force: bool,
    quiet: bool,
) -> None:
    """Write one HTML page about MODEL: how good it is on --data (measures, curves, calibration, confusions, residuals), its
    certificate over passes, the greatest weights, the command that trains it again and its memory. The page needs no other
    file and no network; the numbers are in it as JSON, too.

    Needs matplotlib: pip install 'streamcut[plots]'.

    \b
    Examples:
      streamcut report m.npz -o m.html
      streamcut report m.npz -o m.html --data test.zarr --feature-names words.txt
      streamcut report m.npz --plots figures
    """
    if path is None and plots is None:
        raise click.UsageError("Give --output FILE for a page, --plots DIR for plots, or both.")
    if path is not None:
        refuse_existing(path, "--output", force, reads=[model, data, vocabulary])
    if plots is not None and Path(plots).exists() and not force and (not Path(plots).is_dir() or any(Path(plots).iterdir())):
        raise click.UsageError(f"--plots: {plots} is not an empty folder; choose another, or replace its plots with --force.")

    from streamcut.execution.ceiling import Ceiling
    from streamcut.models.files import load_model
    from streamcut.reports.page import Report

    ceiling = Ceiling(memory)
    fitted = load_model(model, ceiling.expect_model)
    page = Report(fitted, data=data, vocabulary=vocabulary, path=model, memory=memory)
    if path is not None:
        page.write(path, replace=force)
        if not quiet:
            note(f"Report written to {path}.")
    if plots is not None:
        written = page.write_plots(plots)
        if not quiet:
            note(f"{len(written)} plots written to {plots}.")
    ceiling.keep()
