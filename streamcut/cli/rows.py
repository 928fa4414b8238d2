"""streamcut predict, explain and evaluate: what a model says of rows."""

from __future__ import annotations

import io
import json
import os
import sys
from collections import deque
from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import click

from streamcut import api
from streamcut.cli.made import has, raw_of, raw_options
from streamcut.cli.output import csv_line, note, note_counts, output_file, print_json, print_rows, print_table
from streamcut.errors import UsageError
from streamcut.foundation.shown import visible, word

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv as pcsv
    import pyarrow.parquet as pq
    from _typeshed import ReadableBuffer

    from streamcut.foundation.files import Sink
    from streamcut.models.model import Model
    from streamcut.reports.weights import Explanation
    from streamcut.weight_errors import StandardErrors

_EXPLAINED = ("row", "class", "score", "feature", "name", "value", "contribution")
_WEIGHTS = ("class", "feature", "name", "weight")


@has(*raw_options("index_base", "format", "keep", "strict"))
def predict(
    model: str, data: str, *, answer: Literal["labels", "scores", "probabilities", "both", "certified"] = "labels",
    trained_on: str | None, output: str | None = None, force: bool = False, memory: str, ignore_extra_features: bool = False,
    **asked: Any,
) -> None:  # fmt: skip
    """
    answer   what to print: labels, scores, probabilities (of the positive label, of two), labels and scores (both), or labels,
             whether they are proved to be those of the exact optimum, and bounds on their scores (certified)
    trained_on   with --answer certified, for a free intercept and scaled features: the training rows
    output   write to FILE instead of stdout; it appears once it is complete
    """
    from streamcut.execution.ceiling import Ceiling
    from streamcut.models.files import load_model
    from streamcut.prediction import ANSWERS, answered, scored_chunks

    ceiling = Ceiling(memory)
    fitted = load_model(model, ceiling.expect_model)
    if answer == "probabilities":
        fitted.expected_link()  # raises before any work
    certifier = None
    if answer == "certified":
        from streamcut.certified import Certifier

        certifier = Certifier(fitted, trained_on, memory)
    elif trained_on is not None:
        raise click.UsageError("--trained-on is for --answer certified.")
    names = {**ANSWERS, "both": ("label", "score")}[answer]
    kept = tuple(name.strip() for name in (asked.pop("keep") or "").split(",") if name.strip())
    ending = os.path.splitext(output or "")[1].lower()
    raw = raw_of(asked, labelled=False, keep=kept, named=bool(kept) or ending in (".csv", ".parquet"))
    proved = rows = 0
    with output_file(output, replace=force) as file:
        write: _Table | _Lines = _Table(file, ending == ".parquet", raw.kept) if raw.named else _Lines(file)
        ceiling.reserve(f"lines of {write.rows:,} rows", write.rows * (200 + 150 * fitted.scores_per_row))
        try:
            chunks = scored_chunks(fitted, data, ignore_extra_features=ignore_extra_features, raw=raw, ceiling=ceiling)
            for batch in answered(fitted, chunks, names, certifier):
                rows, proved = rows + len(batch[0]), proved + (int(batch[1].sum()) if "proved" in names else 0)
                for start in range(0, len(batch[0]), write.rows):
                    write(_columns(fitted, names, [column[start : start + write.rows] for column in batch]))
            write.end(whole=True)
            ceiling.keep()
        except BaseException:
            write.end(whole=False)
            raise
    note_counts(raw.counters)
    if answer == "certified":
        more = "" if 2 * proved >= rows else "; a smaller gap (--tol-relative of training) proves more"
        note(f"{proved:,} of {rows:,} labels are proved to be those of the optimum{more}.")


def _columns(model: Model, names: tuple[str, ...], arrays: list[np.ndarray]) -> dict[str, np.ndarray]:
    """The columns of an answer by their names: labels as words, and one of each class."""
    import numpy as np

    columns = {}
    for name, column in zip(names, arrays, strict=True):
        if name == "label":
            columns[name] = np.asarray(model.in_label_words(column))
        elif column.ndim == 1:
            columns[name] = column
        else:
            classes = model.in_label_words(np.array(model.labels)).tolist()
            columns |= {f"{name}_{word(label)}": part for label, part in zip(classes, column.T, strict=True)}
    return columns


class _Lines:
    """A line of words and numbers, separated by spaces, per row; the text of `rows` rows is in memory at once."""

    rows = 1 << 14

    def __init__(self, file: Sink | BinaryIO) -> None:
        self._file = file

    def __call__(self, columns: dict[str, np.ndarray]) -> None:
        texts = [
            [visible(value) if isinstance(value, str) else f"{value:.17g}" for value in column.tolist()]
            for column in columns.values()
        ]
        self._file.write("".join([f"{' '.join(line)}\n" for line in zip(*texts, strict=True)]).encode())

    def end(self, whole: bool) -> None:
        """Nothing to do: all is written."""


class _Table(io.RawIOBase):
    """CSV or Parquet: the columns `kept` of the input (batches in row order), then those of the answer; and the file that Arrow
    writes it to. Files and pipes get columns unchanged. On a terminal escape codes are made visible."""

    rows = 1 << 17

    def __init__(self, file: Sink | BinaryIO, parquet: bool, kept: deque[pa.RecordBatch]) -> None:
        self._file, self._parquet, self._kept = file, parquet, kept
        self._writer: pq.ParquetWriter | pcsv.CSVWriter | None = None
        self._terminal = file is sys.stdout.buffer and sys.stdout.isatty()

    def __call__(self, columns: dict[str, np.ndarray]) -> None:
        import pyarrow as pa

        table: dict[str, object] = {}
        if self._kept:
            kept = _first(self._kept, len(next(iter(columns.values()))))
            table = dict(zip(kept.schema.names, kept.columns, strict=True))
        for name, values in columns.items():
            table[name if name not in table else f"{name}_"] = pa.array(values)
        batch = pa.record_batch(table)
        if self._writer is None:
            self._writer = self._made(batch.schema)
        self._writer.write_batch(batch.cast(self._writer.schema) if self._parquet else batch)

    def end(self, whole: bool) -> None:
        """Write the rest, unless something failed: Arrow would finish its file when the writer is collected. Without rows nothing
        is written."""
        if not whole:
            self._file = io.BytesIO()
        elif self._writer is not None:
            self._writer.close()

    def _made(self, schema: pa.Schema) -> pq.ParquetWriter | pcsv.CSVWriter:
        import pyarrow as pa

        if self._parquet:
            import pyarrow.parquet as pq

            plain = [field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field for field in schema]
            return pq.ParquetWriter(pa.PythonFile(self, mode="w"), pa.schema(plain))
        import pyarrow.csv as pcsv

        return pcsv.CSVWriter(pa.PythonFile(self, mode="w"), schema)

    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer) -> int:
        content = bytes(data)
        if self._terminal:
            content = "\n".join(map(visible, content.decode("utf-8", "surrogateescape").split("\n"))).encode()
        self._file.write(content)
        return len(content)


def _first(batches: deque[pa.RecordBatch], rows: int) -> pa.RecordBatch:
    """The first `rows` rows of `batches`, which are removed."""
    import pyarrow as pa

    parts = []
    while rows:
        batch = batches.popleft()
        if batch.num_rows > rows:
            batches.appendleft(batch.slice(rows))
            batch = batch.slice(0, rows)
        parts.append(batch)
        rows -= batch.num_rows
    return pa.Table.from_batches(parts).combine_chunks().to_batches()[0]


@has(*raw_options("index_base", "format", "strict"))
def explain(
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
    intercept comes first. --standard-errors adds the standard error, z, p and the ends of the 95 % interval.
    """
    if not standard_errors and (trained_on is not None or robust or cluster is not None):
        raise click.UsageError("--trained-on, --robust and --cluster are for --standard-errors.")
    from streamcut.execution.ceiling import Ceiling

    raw, ceiling = raw_of(asked, labelled=False), Ceiling(memory)
    if data is None:
        if against is not None:
            raise click.UsageError("--against is for rows; give DATA to explain.")
        from streamcut.models.files import as_model

        fitted = as_model(model, ceiling.expect_model)
        errors = _errors(fitted, trained_on, robust, cluster, memory) if standard_errors else None
        lines = _weights(fitted, errors, as_json, top=top, sort=sort, label=label)
    else:
        from streamcut.reports.weights import TOP, explained

        if standard_errors or sort != "magnitude":
            raise click.UsageError("--standard-errors and --sort are for weights; leave DATA out, and name it with --trained-on.")
        rows = explained(
            model, data, top=TOP if top is None else top, label=label, against=against, raw=raw,
            ignore_extra_features=ignore_extra_features, ceiling=ceiling,
        )  # fmt: skip
        lines = map(_as_json, rows) if as_json else chain([csv_line(_EXPLAINED)], map(_as_csv, rows))
    first = list(islice(lines, 2))  # what is wrong with the model or the data is said before anything is written
    with output_file(output, replace=force) as file:
        for line in chain(first, lines):
            file.write(line)
    note_counts(raw.counters)


def _errors(model: Model, trained_on: str | None, robust: bool, cluster: str | None, memory: str) -> StandardErrors:
    if trained_on is None:
        raise click.UsageError("--standard-errors need --trained-on DATA, the training rows.")
    if robust and cluster is not None:
        raise click.UsageError("--cluster is robust, too: give one of --robust and --cluster.")
    from streamcut.foundation.opened import read_lines

    clusters = cluster if cluster in (None, "qid") else read_lines(cluster, "clusters")
    return api.standard_errors(model, trained_on, robust=robust, clusters=clusters, memory=memory)


def _weights(model: Model, errors: StandardErrors | None, as_json: bool, **which: Any) -> Iterator[bytes]:
    """The weights of a model, with their standard errors if there are any, as lines."""
    from streamcut.models.files import plain

    names = (*_WEIGHTS, *(() if errors is None else errors._fields))
    lines = []
    for of, j, name, weight in api.weights(model, **which):
        more = () if errors is None else [float(error[-1 if j is None else j]) for error in errors]
        lines.append((of, j, name, weight, *more))
    if as_json:
        yield json.dumps(plain([dict(zip(names, line, strict=True)) for line in lines]), allow_nan=False).encode() + b"\n"
        return
    yield csv_line(names)
    yield from (csv_line([word(of), *line]) for of, *line in lines)


def _as_csv(row: Explanation) -> bytes:
    begin = [row.row, word(row.label), row.score]
    parts = [csv_line([*begin, part.feature, part.name, part.value, part.contribution]) for part in row.parts]
    base, others = ("", "(base)", "", row.base), ("", "(others)", "", row.others)
    return b"".join([csv_line([*begin, *base]), *parts, csv_line([*begin, *others])])


def _as_json(row: Explanation) -> bytes:
    record = {
        "row": row.row, "class": row.label, "score": row.score, "base": row.base,
        "contributions": [part._asdict() for part in row.parts], "others": row.others,
    }  # fmt: skip
    return json.dumps(record, allow_nan=False).encode() + b"\n"


@has(*raw_options("index_base", "missing_labels", "format", "strict"))
def evaluate(model: str, data: str, *, per_query: bool = False, as_json: bool = False, **asked: Any) -> None:
    """
    per_query    print a line for each query instead, as CSV (with --json: columns)
    """
    from streamcut.evaluation import collect
    from streamcut.execution.ceiling import Ceiling
    from streamcut.measures.ranking import RankingMeasures
    from streamcut.models.files import as_model

    raw = raw_of(asked)
    if per_query:
        if asked.pop("label_names") is not None:
            raise click.UsageError("--per-query is for rankings, --label-names for sequences.")
        fitted = as_model(model, (ceiling := Ceiling(asked.pop("memory"))).expect_model)
        if fitted.task != "ranking":
            raise UsageError(f"only models of task ranking are measured per query, not one of task {fitted.task}")
        collect(fitted, data, raw=raw, into=(queries := RankingMeasures(fitted)), ceiling=ceiling, **asked)
        measured = queries.per_query()
        columns = {name: [value if value == value else None for value in column.tolist()] for name, column in measured.items()}
        if as_json:
            print_json(columns)
        else:
            click.echo(b"".join(map(csv_line, [[*columns], *zip(*columns.values(), strict=True)])), nl=False)
        return
    measures = api.evaluate(model, data, raw=raw, **asked).measures()
    note_counts(raw.counters)
    if as_json:
        print_json(measures)
        return
    print_table({name: value for name, value in measures.items() if not isinstance(value, list)})
    print_rows(measures.get("classes", measures.get("chunk_types", [])))
