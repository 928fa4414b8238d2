"""streamcut calibrate"""

from __future__ import annotations

from streamcut.cli.destinations import refuse_existing
from streamcut.cli.output import note, print_json


def run(
    model: str, data: str, *, output: str | None = None, memory: str, force: bool = False, as_json: bool = False,
    quiet: bool = False,
) -> None:  # fmt: skip
    """
    output   write the model there instead of replacing MODEL
    """
    if output is not None:
        refuse_existing(output, "--output", force, reads=[data])

    from dataclasses import asdict

    from streamcut.calibration import calibrate
    from streamcut.models.files import save_model
    from streamcut.models.link import Sigmoid

    fitted = calibrate(model, data, memory=memory)
    save_model(fitted, output or model, replace=force or output is None)
    link = fitted.link
    assert link is not None
    if as_json:
        print_json({"model": output or model, **asdict(link)})
    elif not quiet:
        said = f"A {link.A:.4g}, B {link.B:.4g}" if isinstance(link, Sigmoid) else f"scale {link.scale:.4g} and offsets"
        note(f"Probabilities from {link.rows:,} rows: {said}. Model written to {output or model}.")
