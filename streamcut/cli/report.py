"""streamcut report"""

from __future__ import annotations

from pathlib import Path

import click

from streamcut.cli.destinations import refuse_existing
from streamcut.cli.output import note


def run(
    model: str, *, output: str | None = None, data: str | None, plots: str | None, feature_names: str | None,
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

    from streamcut.models.files import load_model
    from streamcut.reports.page import Report

    page = Report(load_model(model), data=data, vocabulary=feature_names, path=model)
    if output is not None:
        page.write(output, replace=force)
        if not quiet:
            note(f"Report written to {output}.")
    if plots is not None:
        written = page.write_plots(plots)
        if not quiet:
            note(f"{len(written)} plots written to {plots}.")
