"""streamcut explain"""

from __future__ import annotations

import csv
import io
import json
from itertools import chain, islice
from typing import Any

import click

from streamcut.cli.destinations import output_file, refuse_existing
from streamcut.cli.help import Command
from streamcut.cli.output import note
from streamcut.cli.parameters import (
    force_option,
    ignore_extra_option,
    json_option,
    memory_option,
    raw_options,
)
from streamcut.foundation.shown import visible

_NAMES = ("row", "class", "score", "feature", "name", "value", "contribution")


@click.command(cls=Command)
@click.argument("model")
@click.argument("data")
@click.option(
    "--top", type=click.IntRange(min=0), metavar="N", default=10, show_default=True, help="Features to list for each row."
)
@click.option("--class", "label", metavar="LABEL", help="The class whose score is explained.  [default: the predicted one]")
@click.option("--against", metavar="DATA", help="Compare with the mean of these rows, for example the training rows.")
@click.option("--output", "-o", "path", metavar="FILE", help="Write to FILE instead of stdout; it appears once it is complete.")
@raw_options("index_base", "format", "strict")
@ignore_extra_option
@memory_option
@json_option
@force_option
def command(
    model: str,
    data: str,
    top: int,
    label: str | None,
    against: str | None,
    path: str | None,
    index_base: int | None,
    format: str,  # noqa: A002 - the option's name
    strict: bool,
    ignore_extra_features: bool,
    memory: str,
    as_json: bool,
    force: bool,
) -> None:
    """Explain the score that a linear MODEL gives each row of DATA (a store, svmlight text, a table), feature by feature.

    Prints CSV: row (from 0), class, score, feature, name, value, contribution. The first line of a row is (base), the score of
    the row that it is compared with; then come the features that add most, and (others) together. The contributions of a row add
    up to its score. --json makes an object of each row.

    Without --against rows are compared with one of zeros, in which numbers that the recipe standardises have their mean, and
    there are no categories and no words. Of two classes the score is that of the positive one.

    \b
    Examples:
      streamcut explain m.npz new.csv --top 5
      streamcut explain m.npz new.parquet --against train.zarr --json > why.jsonl
      streamcut explain cells.npz cells.h5ad --class 'B cell'
    """
    if path is not None:
        refuse_existing(path, "--output", force, reads=[model, data, *([] if against is None else [against])])

    from streamcut.data.inputs import Raw
    from streamcut.execution.ceiling import Ceiling
    from streamcut.reports.explained import explained

    raw = Raw(index_base=index_base, labelled=False, format=format, strict=strict)
    reading: dict[str, Any] = {"raw": raw, "ceiling": Ceiling(memory), "ignore_extra_features": ignore_extra_features}
    rows = explained(model, data, top=top, label=label, against=against, **reading)
    first = list(islice(rows, 1))  # what is wrong with the model or the data is said before anything is written
    with output_file(path, replace=force) as file:
        if not as_json:
            file.write(_line(_NAMES))
        for each in chain(first, rows):
            file.write(_as_json(each) if as_json else _as_csv(each))
    for name, count in sorted(raw.counters.items()):
        note(f"{name}: {count:,}")


def _as_csv(each: Any) -> bytes:
    of = "" if each.label is None else visible(each.label) if isinstance(each.label, str) else f"{each.label:g}"
    begin = [each.row, of, repr(each.score)]
    lines = [_line([*begin, "", "(base)", "", repr(each.base)])]
    for part in each.parts:
        lines.append(_line([*begin, part.feature, visible(part.name), repr(part.value), repr(part.contribution)]))
    return b"".join([*lines, _line([*begin, "", "(others)", "", repr(each.others)])])


def _line(values: Any) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue().encode()


def _as_json(each: Any) -> bytes:
    record = {"row": each.row, "class": each.label, "score": each.score, "base": each.base}
    record |= {"contributions": [part._asdict() for part in each.parts], "others": each.others}
    return json.dumps(record, allow_nan=False).encode() + b"\n"
