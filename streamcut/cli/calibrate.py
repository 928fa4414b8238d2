"""streamcut calibrate"""

from __future__ import annotations

import click

from streamcut.cli.destinations import refuse_existing
from streamcut.cli.output import note, print_json
from streamcut.cli.parameters import force_option, json_option, quiet_option


@click.command()
@click.argument("model")
@click.argument("data")
@click.option("--output", "-o", "path", metavar="FILE", help="Write the model there instead of replacing MODEL.")
@force_option
@json_option
@quiet_option
def command(model: str, data: str, path: str | None, force: bool, as_json: bool, quiet: bool) -> None:
    """Fit probabilities for MODEL, of two classes, on the store or svmlight file DATA, and keep them in the model file.

    They are 1 / (1 + exp(A·score + B)) for the positive label (Platt scaling). DATA should not be what the model was trained on.

    \b
    Examples:
      streamcut calibrate m.npz validation.zarr
      streamcut predict m.npz test.zarr --probability
    """
    if path is not None:
        refuse_existing(path, "--output", force, reads=[data])

    from streamcut.calibration import calibrate
    from streamcut.models.files import save_model

    fitted = calibrate(model, data)
    save_model(fitted, path or model, replace=force or path is None)
    sigmoid = fitted.sigmoid
    assert sigmoid is not None
    if as_json:
        print_json({"model": path or model, "A": sigmoid.A, "B": sigmoid.B, "rows": sigmoid.rows})
    elif not quiet:
        note(f"Probabilities from {sigmoid.rows:,} rows: A {sigmoid.A:.6g}, B {sigmoid.B:.6g}. Model written to {path or model}.")
