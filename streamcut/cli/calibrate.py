"""streamcut calibrate"""

from __future__ import annotations

import click

from streamcut.cli.destinations import refuse_existing
from streamcut.cli.help import Command
from streamcut.cli.output import note, print_json
from streamcut.cli.parameters import force_option, json_option, memory_option, quiet_option


@click.command(cls=Command)
@click.argument("model")
@click.argument("data")
@click.option("--output", "-o", "path", metavar="FILE", help="Write the model there instead of replacing MODEL.")
@memory_option
@force_option
@json_option
@quiet_option
def command(model: str, data: str, path: str | None, memory: str, force: bool, as_json: bool, quiet: bool) -> None:
    """Fit probabilities for MODEL, of two or several classes, on labelled rows (a store, text, a table), kept in its file.

    Two classes: 1 / (1 + exp(A·score + B)) for the positive label (Platt scaling). Several: proportional to
    exp(scale·score + offset) with an offset for each class. DATA should not be what the model was trained on.

    \b
    Examples:
      streamcut calibrate m.npz validation.zarr
      streamcut predict m.npz test.zarr --answer probabilities
    """
    if path is not None:
        refuse_existing(path, "--output", force, reads=[data])

    from dataclasses import asdict

    from streamcut.calibration import calibrate
    from streamcut.models.files import save_model
    from streamcut.models.link import Sigmoid

    fitted = calibrate(model, data, memory=memory)
    save_model(fitted, path or model, replace=force or path is None)
    link = fitted.link
    assert link is not None
    if as_json:
        print_json({"model": path or model, **asdict(link)})
    elif not quiet:
        said = f"A {link.A:.4g}, B {link.B:.4g}" if isinstance(link, Sigmoid) else f"scale {link.scale:.4g} and offsets"
        note(f"Probabilities from {link.rows:,} rows: {said}. Model written to {path or model}.")
