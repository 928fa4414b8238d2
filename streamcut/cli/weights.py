"""streamcut weights"""

from __future__ import annotations

import csv
import sys

import click

from streamcut.cli.help import Command
from streamcut.cli.output import print_json
from streamcut.cli.parameters import Choice, Errors, errors_options, json_option, memory_option
from streamcut.foundation.shown import visible


@click.command(cls=Command)
@click.argument("model")
@click.option("--top", type=click.IntRange(min=0), metavar="N", help="Only the N largest in magnitude of each class.")
@click.option(
    "--sort",
    type=Choice(["magnitude", "weight", "feature"]),
    default="magnitude",
    show_default=True,
    help="Order: largest magnitude first, from positive to negative, or by feature number.",
)
@click.option("--class", "label", metavar="LABEL", help="Only this class.")
@errors_options
@memory_option
@json_option
def command(
    model: str,
    top: int | None,
    sort: str,
    label: str | None,
    errors: Errors | None,
    memory: str,
    as_json: bool,
) -> None:
    """Print the weights of MODEL that are not 0, as CSV: class, feature, name, weight.

    Two classes have one weight a feature: what a unit of its value adds to the score of the positive class. Features are
    numbered from 0. Names are those of the training data: of columns and their categories, of genes, of --feature-names;
    hashed features have none. The intercept comes first. Control characters in names are escaped; --json has them as they are.

    --standard-errors adds the standard error, z, p and the ends of the 95 % interval of each weight.

    \b
    Examples:
      streamcut weights m.npz --top 50
      streamcut weights cells.npz --class 'B cell' --top 20 --sort weight
      streamcut weights m.npz --standard-errors --trained-on t.zarr --cluster ids
      streamcut weights m.npz --json > weights.json
    """
    from streamcut.execution.ceiling import Ceiling
    from streamcut.models.files import as_model, plain
    from streamcut.reports.named_weights import weights

    read = as_model(model, Ceiling(memory).expect_model)
    known = None if errors is None else errors.of(read, memory)
    names = ["class", "feature", "name", "weight", *(() if known is None else known._fields)]
    lines = []
    for of, j, name, weight in weights(read, top=top, sort=sort, label=label):
        own = () if known is None else [float(each[-1 if j is None else j]) for each in known]
        lines.append((of, j, name, weight, *own))
    if as_json:
        print_json(plain([dict(zip(names, line, strict=True)) for line in lines]))
        return
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(names)
    for of, j, name, weight, *own in lines:
        spelled = "" if of is None else visible(of) if isinstance(of, str) else f"{of:g}"
        out.writerow([spelled, "" if j is None else j, name and visible(name), repr(weight), *map(repr, own)])
