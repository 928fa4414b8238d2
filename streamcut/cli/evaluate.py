"""streamcut evaluate"""

from __future__ import annotations

import click

from streamcut.cli.output import print_json, print_table
from streamcut.cli.parameters import ignore_extra_option, index_base_option, json_option


@click.command()
@click.argument("model")
@click.argument("data")
@ignore_extra_option
@index_base_option
@json_option
def command(model: str, data: str, ignore_extra_features: bool, index_base: int, as_json: bool) -> None:
    """Print how well MODEL does on DATA (a store, an svmlight file, or - for svmlight on stdin).

    Accuracy, balanced accuracy, ROC AUC (exact), average precision, precision, recall, F1, the four counts and the mean hinge
    loss. Row weights of a store are honoured. A measure that is not defined on this data is a dash (JSON: null).

    \b
    Examples:
      streamcut evaluate m.npz test.zarr
      streamcut evaluate m.npz test.svm --json
    """
    from streamcut.evaluation import evaluate

    measures = evaluate(model, data, ignore_extra_features=ignore_extra_features, index_base=index_base).measures()
    print_json(measures) if as_json else print_table(measures)
