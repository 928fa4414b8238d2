"""streamcut report"""

from __future__ import annotations

from pathlib import Path

import click

from streamcut.cli.destinations import refuse_existing
from streamcut.cli.output import note
from streamcut.cli.parameters import force_option, quiet_option


@click.command()
@click.argument("model")
@click.option("--output", "-o", "path", metavar="FILE", help="The page (.html).")
@click.option("--plots", metavar="DIR", help="Folder for the plots, each as SVG and PNG; made if need be.")
@click.option("--data", metavar="DATA", help="What the model is measured on: a store, or a table or text with labels.")
@click.option("--vocabulary", metavar="FILE", help="Names of the features, one a line, instead of those of the data.")
@force_option
@quiet_option
def command(
    model: str, path: str | None, plots: str | None, data: str | None, vocabulary: str | None, force: bool, quiet: bool
) -> None:
    """Write one HTML page about MODEL: its certificate, how training went, memory, the greatest weights, and with --data its
    measures and curves. The page needs no other file and no network; the numbers are in it as JSON, too.

    Needs matplotlib: pip install 'streamcut[plots]'.

    \b
    Examples:
      streamcut report m.npz -o m.html
      streamcut report m.npz -o m.html --data test.zarr --vocabulary words.txt
      streamcut report m.npz --plots figures
    """
    if path is None and plots is None:
        raise click.UsageError("Give --output FILE for a page, --plots DIR for plots, or both.")
    if path is not None:
        refuse_existing(path, "--output", force, reads=[model, data, vocabulary])
    if plots is not None and Path(plots).exists() and not force and (not Path(plots).is_dir() or any(Path(plots).iterdir())):
        raise click.UsageError(f"--plots: {plots} is not an empty folder; choose another, or replace its plots with --force.")

    from streamcut.models.files import load_model
    from streamcut.reports.page import Report

    found = Report(load_model(model), data=data, vocabulary=vocabulary, path=model)
    if path is not None:
        found.write(path, replace=force)
        if not quiet:
            note(f"Report written to {path}.")
    if plots is not None:
        written = found.write_plots(plots)
        if not quiet:
            note(f"{len(written)} plots written to {plots}.")
