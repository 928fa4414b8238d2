"""streamcut evaluate"""

from __future__ import annotations

from typing import Any

import click

from streamcut.cli.made import raw_options
from streamcut.cli.output import note, print_json, print_rows, print_table

OPTIONS = raw_options("index_base", "missing_labels", "format", "strict")


def run(
    model: str, data: str, *, ignore_extra_features: bool = False, per_query: bool = False, label_names: str | None,
    memory: str, as_json: bool = False, **reading: Any,
) -> None:  # fmt: skip
    """
    per_query    print a line for each query instead, as CSV (with --json: columns)
    """
    from streamcut.data.inputs import Raw
    from streamcut.evaluation import evaluate, evaluate_queries
    from streamcut.models.files import plain

    raw = Raw(**reading)
    how: dict[str, Any] = {"ignore_extra_features": ignore_extra_features, "raw": raw, "memory": memory}
    if per_query and label_names is not None:
        raise click.UsageError("--per-query is for rankings, --label-names for sequences.")
    if per_query:
        columns = {name: plain(column.tolist()) for name, column in evaluate_queries(model, data, **how).items()}
        if as_json:
            print_json(columns)
            return
        click.echo(",".join(columns))
        for line in zip(*columns.values(), strict=True):
            click.echo(",".join("" if value is None else f"{value!r}" for value in line))
        return
    measures = evaluate(model, data, label_names=label_names, **how).measures()
    for name, count in sorted(raw.counters.items()):
        note(f"{name}: {count:,}")
    if as_json:
        print_json(measures)
        return
    print_table({name: value for name, value in measures.items() if not isinstance(value, list)})
    print_rows(measures.get("classes", measures.get("chunk_types", [])))
