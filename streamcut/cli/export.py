"""streamcut export"""

from __future__ import annotations

import click

from streamcut.cli.destinations import refuse_existing
from streamcut.cli.parameters import force_option


@click.command()
@click.argument("model")
@click.argument("output", metavar="FILE")
@click.option("--to", "target", type=click.Choice(["liblinear"]), default="liblinear", show_default=True, help="Which program.")
@force_option
def command(model: str, output: str, target: str, force: bool) -> None:
    """Write MODEL to FILE as a LIBLINEAR text model: its own `predict` gives the same labels and scores.

    \b
    Example:
      streamcut export m.npz m.liblinear
    """
    refuse_existing(output, "FILE", force, reads=[model])

    from streamcut.models.files import load_model
    from streamcut.models.liblinear import save_liblinear

    save_liblinear(load_model(model), output, replace=force)
