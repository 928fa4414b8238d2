"""streamcut evaluate"""

from __future__ import annotations

from typing import Any

import click

from streamcut.cli.help import Command
from streamcut.cli.output import note, print_json, print_rows, print_table
from streamcut.cli.parameters import (
    ignore_extra_option,
    json_option,
    memory_option,
    raw_options,
)


@click.command(cls=Command)
@click.argument("model")
@click.argument("data")
@raw_options("index_base", "missing_labels", "format", "strict")
@ignore_extra_option
@click.option("--per-query", is_flag=True, help="Print a line for each query instead, as CSV (with --json: columns).")
@click.option("--label-names", metavar="FILE", help="Sequences: also chunks; lines like `1 B-NP`, every label and its name.")
@memory_option
@json_option
def command(
    model: str,
    data: str,
    format: str,  # noqa: A002 - the option's name
    missing_labels: str,
    ignore_extra_features: bool,
    index_base: int | None,
    strict: bool,
    per_query: bool,
    label_names: str | None,
    memory: str,
    as_json: bool,
) -> None:
    """Print how well MODEL does on DATA (a store, svmlight text, a table, or - for standard input).

    Raw input is prepared by the recipe of the model, and needs the labels that it was trained on.

    Accuracy, balanced accuracy, ROC AUC (exact), average precision, precision, recall, F1, the four counts and the mean hinge
    loss. Row weights of a store are honoured. A measure that is not defined on this data is a dash (JSON: null).

    A model with probabilities (logistic, or calibrated) also has log loss, Brier score and calibration error; --json adds the
    reliability bins.

    Several classes have macro and micro F1 and the mean loss instead, then precision, recall and F1 of each class; --json adds
    the confusion matrix.

    Rankings have swapped pairs (ties half), mean average precision and NDCG at 1, 5 and 10 instead, models of task roc-area the
    ROC AUC and average precision.

    Sequences have the share of rows and of whole sequences that are labelled right and, with --label-names, F1, precision and
    recall of chunks in the IOB scheme, of all and of each type.

    \b
    Examples:
      streamcut evaluate m.npz test.zarr
      streamcut evaluate m.npz test.svm --json
      streamcut evaluate m.npz later.parquet --missing-labels skip
      streamcut evaluate ranking.npz test.svm --per-query > queries.csv
      streamcut evaluate chunker.npz test.zarr --label-names tags.txt
    """
    from streamcut.data.inputs import Raw
    from streamcut.evaluation import evaluate, evaluate_queries
    from streamcut.models.files import plain

    raw = Raw(index_base=index_base, missing_labels=missing_labels, format=format, strict=strict)
    reading: dict[str, Any] = {"ignore_extra_features": ignore_extra_features, "raw": raw, "memory": memory}
    if per_query and label_names is not None:
        raise click.UsageError("--per-query is for rankings, --label-names for sequences.")
    if per_query:
        columns = {name: plain(column.tolist()) for name, column in evaluate_queries(model, data, **reading).items()}
        if as_json:
            print_json(columns)
            return
        click.echo(",".join(columns))
        for line in zip(*columns.values(), strict=True):
            click.echo(",".join("" if value is None else f"{value!r}" for value in line))
        return
    measures = evaluate(model, data, label_names=label_names, **reading).measures()
    for name, count in sorted(raw.counters.items()):
        note(f"{name}: {count:,}")
    if as_json:
        print_json(measures)
        return
    print_table({name: value for name, value in measures.items() if not isinstance(value, list)})
    print_rows(measures.get("classes", measures.get("chunk_types", [])))
