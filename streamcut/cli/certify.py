"""streamcut certify"""

from __future__ import annotations

import click

from streamcut.cli.destinations import refuse_existing
from streamcut.cli.help import Command
from streamcut.cli.output import print_json, print_rows, print_table
from streamcut.cli.parameters import Choice, force_option, json_option, memory_option
from streamcut.loss_table import JOINT_LOSSES, ROW_LOSSES


@click.command(cls=Command)
@click.argument("model")
@click.argument("data")
@click.option("--C", "C", metavar="X", type=float, help="Weight of the losses next to ½‖w‖², if MODEL does not say.")
@click.option(
    "--loss",
    type=Choice((*ROW_LOSSES, *reversed(JOINT_LOSSES))),
    help="Loss of a row, if MODEL does not say; of several classes it may be one of all of them.",
)
@click.option(
    "--intercept",
    metavar="WHAT",
    help="free (not regularised), none, or the value of a bias feature, whose weight is regularised like any other.",
)
@click.option("--epsilon", metavar="X", type=float, help="ε of the epsilon-insensitive losses, if MODEL does not say.")
@click.option("--passes", metavar="N", type=click.IntRange(1, 30), default=3, show_default=True, help="Passes over the rows.")
@click.option(
    "--output",
    "-o",
    "--state",
    "out",
    metavar="FILE",
    help="Write the best model found (.npz); `train --warm-start` continues from its weights and bound.",
)
@memory_option
@force_option
@json_option
def command(
    model: str,
    data: str,
    C: float | None,
    loss: str | None,
    intercept: str | None,
    epsilon: float | None,
    passes: int,
    out: str | None,
    memory: str,
    force: bool,
    as_json: bool,
) -> None:
    """Prove how far MODEL is above the optimum of its problem on the rows of DATA, at most and at least.

    MODEL is a linear model for classes or numbers: ours, a text model of LIBLINEAR, or the JSON of `export`. Of several
    classes, each against the rest, it is the sum of their problems that is certified, in the same passes.
    Its problem is F = ½‖w‖² + C Σ u_i ℓ_i; what the file does not say has to be given. Estimators of scikit-learn are
    certified in Python, by streamcut.certify: pickles are never opened.

    The first pass computes F and a bound that no weights can beat; further ones raise the bound, and look for better weights.
    Rows in DATA have to be those, in features and scale, that MODEL was fitted to.

    \b
    Examples:
      streamcut certify liblinear.model train.zarr --C 1
      streamcut certify weights.json train.zarr --C 1 --loss logistic --passes 6
      streamcut certify m.npz train.zarr -o better.npz --memory 2GB --json
    """
    from streamcut.certifying.certify import certify
    from streamcut.models.files import plain, save_model

    if out is not None:
        refuse_existing(out, "--output", force, reads=[model, data])
    found = certify(model, data, passes, C=C, loss=loss, intercept=intercept, epsilon=epsilon, memory=memory)
    if out is not None:
        save_model(found.better, out)
    report = plain(found.report())
    if as_json:
        print_json(report)
        return
    click.echo(found.in_words())
    classes = report.pop("classes")
    if isinstance(intercepts := report["better_intercept"], list):
        classes = classes or [{"label": label} for label in found.better.labels or ()]
        classes = [each | {"better_intercept": b} for each, b in zip(classes, intercepts, strict=True)]
        del report["better_intercept"]
    print_table({name: value for name, value in report.items() if name != "passes"})
    print_rows(classes)
