"""streamcut export"""

from __future__ import annotations

import click

from streamcut.cli.destinations import refuse_existing
from streamcut.cli.parameters import Choice, force_option

TARGETS = ("liblinear", "sklearn", "onnx", "compact", "json")


@click.command()
@click.argument("model")
@click.argument("output", metavar="FILE")
@click.option("--to", "target", type=Choice(TARGETS), help="Which program.  [default: what the ending of FILE says]")
@force_option
def command(model: str, output: str, target: str | None, force: bool) -> None:
    """Write MODEL to FILE for another program, which then gives the same labels and scores.

    \b
    liblinear   LIBLINEAR's text model              (any other ending)
    sklearn     a fitted scikit-learn estimator     (.joblib, .pkl; a pickle: load only files that you trust)
    onnx        a graph for ONNX runtimes           (.onnx; needs skl2onnx)
    compact     our own, small: float32, no proof   (.npz)
    json        weights by feature                  (.json)

    \b
    Examples:
      streamcut export m.npz m.liblinear
      streamcut export m.npz m.onnx
    """
    refuse_existing(output, "FILE", force, reads=[model])

    from streamcut.exports.export import export

    export(model, output, to=target, replace=force)
