"""streamcut explain"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, Literal

import click

from streamcut import api
from streamcut.cli.destinations import output_file, refuse_existing
from streamcut.cli.made import has, raw_of, raw_options
from streamcut.cli.output import note
from streamcut.foundation.shown import visible

_NAMES = ("row", "class", "score", "feature", "name", "value", "contribution")
_WEIGHTS = ("class", "feature", "name", "weight")


@has(*raw_options("index_base", "format", "strict"))
def run(
    model: str, data: str | None = None, *, top: int | None = None, label: str | None, against: str | None,
    sort: Literal["magnitude", "weight", "feature"] = "magnitude", standard_errors: bool = False, trained_on: str | None = None,
    robust: bool = False, cluster: str | None = None, output: str | None = None, ignore_extra_features: bool = False,
    memory: str = "auto", as_json: bool = False, force: bool = False, **asked: Any,
) -> None:  # fmt: skip
    """
    against   compare rows with the mean of these, for example the training rows; else with a row of zeros
    top       features to list: 10 of each row unless given; all weights
    label     the class whose scores are explained, or whose weights are listed; else the predicted one, or all
    sort      order of weights: largest magnitude first, from positive to negative, or by feature number
    standard_errors   weights with standard errors, z, p-values and 95 % intervals
    trained_on   with --standard-errors: the training rows; takes a pass
    robust    with --standard-errors: the sandwich estimator, valid even if the model is misspecified
    cluster   with --standard-errors: rows of one cluster may depend on each other; a file with a cluster on each line, or qid
    output    write to FILE instead of stdout; it appears once it is complete

    Prints CSV: row (from 0), class, score, feature, name, value, contribution. The first line of a row is (base), the score of
    the row that it is compared with; then come the features that add most, and (others) together. The contributions of a row add
    up to its score. --json makes an object of each row.

    Without DATA, prints the weights that are not 0: class, feature, name, weight. A weight is what a unit of its feature's value
    adds to the score. Features are numbered from 0; names are those of the training data, which hashed features lack. The
    intercept comes first. --standard-errors adds the standard error, z, p and the ends of the 95 % interval of each.
    """
    if output is not None:
        refuse_existing(output, "--output", force, reads=[model, data, against])
    if not standard_errors and (trained_on is not None or robust or cluster is not None):
        raise click.UsageError("--trained-on, --robust and --cluster are for --standard-errors.")
    counters = dict[str, int]()
    if data is None:
        if against is not None:
            raise click.UsageError("--against is for rows; give DATA to explain.")
        from streamcut.execution.ceiling import Ceiling
        from streamcut.models.files import as_model

        fitted = as_model(model, Ceiling(memory).expect_model)
        errors = _errors(fitted, trained_on, robust, cluster, memory) if standard_errors else None
        lines = _weights(fitted, errors, as_json, top=top, sort=sort, label=label)
    else:
        from streamcut.execution.ceiling import Ceiling
        from streamcut.reports.explained import TOP, explained

        if standard_errors or sort != "magnitude":
            raise click.UsageError("--standard-errors and --sort are for weights; leave DATA out, and name it with --trained-on.")
        raw = raw_of(asked, labelled=False)
        rows = explained(
            model, data, top=TOP if top is None else top, label=label, against=against, raw=raw,
            ignore_extra_features=ignore_extra_features, ceiling=Ceiling(memory),
        )  # fmt: skip
        lines = map(_as_json, rows) if as_json else chain([_line(_NAMES)], map(_as_csv, rows))
        counters = raw.counters
    first = list(islice(lines, 2))  # what is wrong with the model or the data is said before anything is written
    with output_file(output, replace=force) as file:
        for line in chain(first, lines):
            file.write(line)
    for name, count in sorted(counters.items()):
        note(f"{name}: {count:,}")


def _errors(model: Any, trained_on: str | None, robust: bool, cluster: str | None, memory: str) -> Any:
    if trained_on is None:
        raise click.UsageError("--standard-errors need --trained-on DATA, the training rows.")
    if robust and cluster is not None:
        raise click.UsageError("--cluster is robust, too: give one of --robust and --cluster.")
    from streamcut.foundation.opened import read_lines

    clusters = cluster if cluster in (None, "qid") else read_lines(cluster, "clusters")
    return api.standard_errors(model, trained_on, robust=robust, clusters=clusters, memory=memory)


def _weights(model: Any, errors: Any, as_json: bool, **which: Any) -> Iterator[bytes]:
    """The weights of a model, with their standard errors if there are any, as lines."""
    from streamcut.models.files import plain

    names = (*_WEIGHTS, *(() if errors is None else errors._fields))
    lines = []
    for of, j, name, weight in api.weights(model, **which):
        more = () if errors is None else [float(each[-1 if j is None else j]) for each in errors]
        lines.append((of, j, name, weight, *more))
    if as_json:
        yield json.dumps(plain([dict(zip(names, line, strict=True)) for line in lines]), allow_nan=False).encode() + b"\n"
        return
    yield _line(names)
    for of, j, name, *numbers in lines:
        yield _line([_label(of), "" if j is None else j, name and visible(name), *map(repr, numbers)])


def _label(label: str | float | None) -> str:
    return "" if label is None else visible(label) if isinstance(label, str) else f"{label:g}"


def _as_csv(row: Any) -> bytes:
    begin = [row.row, _label(row.label), repr(row.score)]
    lines = [_line([*begin, "", "(base)", "", repr(row.base)])]
    for part in row.parts:
        lines.append(_line([*begin, part.feature, visible(part.name), repr(part.value), repr(part.contribution)]))
    return b"".join([*lines, _line([*begin, "", "(others)", "", repr(row.others)])])


def _line(values: Any) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue().encode()


def _as_json(row: Any) -> bytes:
    record = {"row": row.row, "class": row.label, "score": row.score, "base": row.base}
    record |= {"contributions": [part._asdict() for part in row.parts], "others": row.others}
    return json.dumps(record, allow_nan=False).encode() + b"\n"
