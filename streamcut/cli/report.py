"""streamcut report"""

from __future__ import annotations

from pathlib import Path

import click

from streamcut.cli.destinations import refuse_existing
from streamcut.cli.output import note


def run(
    model: str, *, output: str | None = None, data: str | None, plots: str | None, feature_names: str | None, memory: str,
    force: bool = False, quiet: bool = False,
) -> None:  # fmt: skip
    """
    output   the page (.html) to write
    """
    if output is None and plots is None:
        raise click.UsageError("Give --output FILE for a page, --plots DIR for plots, or both.")
    if output is not None:
        refuse_existing(output, "--output", force, reads=[model, data, feature_names])
    if plots is not None and Path(plots).exists() and not force and (not Path(plots).is_dir() or any(Path(plots).iterdir())):
        raise click.UsageError(f"--plots: {plots} is not an empty folder; choose another, or replace its plots with --force.")

    from streamcut.reports.page import report

    page = report(model, output, data=data, feature_names=feature_names, plots=plots, memory=memory, force=force)
    if output is not None and not quiet:
        note(f"Report written to {output}.")
    if plots is not None and not quiet:
        note(f"{len(page.plots)} plots written to {plots}.")
