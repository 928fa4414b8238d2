"""streamcut weights"""

from __future__ import annotations

import csv
import sys

import click

from streamcut.cli.output import print_json
from streamcut.cli.parameters import Choice, json_option, url_options
from streamcut.foundation.shown import visible


@click.command()
@click.argument("model")
@click.option("--top", type=click.IntRange(min=0), metavar="N", help="Only the N largest in magnitude of each class.")
@click.option(
    "--sort",
    type=Choice(["magnitude", "weight", "feature"]),
    default="magnitude",
    show_default=True,
    help="The largest first, from positive to negative, or by the number of the feature.",
)
@click.option("--class", "label", metavar="LABEL", help="Of this class only.")
@url_options
@json_option
def command(model: str, top: int | None, sort: str, label: str | None, as_json: bool) -> None:
    """Print the weights of MODEL that are not 0, as CSV: class, feature, name, weight.

    Two classes have one weight a feature: what a unit of its value adds to the score of the positive class. Features are
    numbered from 0. Names are those of the training data: of columns and their categories, of genes, of --feature-names;
    hashed features have none. The intercept comes first. Control characters in names are escaped; --json has them as they are.

    \b
    Examples:
      streamcut weights m.npz --top 50
      streamcut weights cells.npz --class 'B cell' --top 20 --sort weight
      streamcut weights m.npz --json > weights.json
    """
    from streamcut.reports.named_weights import weights

    found = weights(model, top=top, sort=sort, label=label)
    if as_json:
        print_json([{"class": of, "feature": j, "name": name, "weight": weight} for of, j, name, weight in found])
        return
    lines = csv.writer(sys.stdout, lineterminator="\n")
    lines.writerow(["class", "feature", "name", "weight"])
    for of, j, name, weight in found:
        spelled = "" if of is None else visible(of) if isinstance(of, str) else f"{of:g}"
        lines.writerow([spelled, "" if j is None else j, name and visible(name), repr(weight)])
