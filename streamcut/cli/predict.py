"""streamcut predict"""

from __future__ import annotations

import io
import os
import sys
from collections import deque
from typing import TYPE_CHECKING, Any, Literal

import click

from streamcut.cli.destinations import output_file, refuse_existing
from streamcut.cli.made import has, raw_of, raw_options
from streamcut.cli.output import note
from streamcut.foundation.shown import visible

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from streamcut.models.model import Model


@has(*raw_options("index_base", "format", "keep", "strict"))
def run(
    model: str, data: str, *, answer: Literal["labels", "scores", "probabilities", "both", "certified"] = "labels",
    trained_on: str | None, output: str | None = None, force: bool = False, memory: str, **asked: Any,
) -> None:  # fmt: skip
    """
    answer   what to print: labels, scores, probabilities (of the positive label, of two), labels and scores (both), or labels,
             whether they are proved to be those of the exact optimum, and bounds on their scores (certified)
    trained_on   with --answer certified, for a free intercept and scaled features: the training rows
    output   write to FILE instead of stdout; it appears once it is complete
    """
    path = output
    if path is not None:
        refuse_existing(path, "--output", force, reads=[model, data])

    import numpy as np

    from streamcut.execution.ceiling import Ceiling
    from streamcut.models.files import load_model
    from streamcut.prediction import scored_chunks

    ceiling = Ceiling(memory)
    fitted = load_model(model, ceiling.expect_model)
    if answer == "probabilities":
        fitted.expected_link()  # raises before any work
    certifier: Any = None
    proved = rows = 0
    if answer == "certified":
        from streamcut.certified import Certifier

        certifier = Certifier(fitted, trained_on, memory)
    elif trained_on is not None:
        raise click.UsageError("--trained-on is for --answer certified.")
    columns = tuple(name.strip() for name in (asked.pop("keep") or "").split(",") if name.strip())
    table = bool(columns) or _suffix(path) in (".csv", ".parquet")
    raw = raw_of(asked, labelled=False, keep=columns, named=table)
    with output_file(path, replace=force) as file:
        write: Any = _Table(file, _suffix(path) == ".parquet", raw.kept) if raw.named else _Lines(file)
        ceiling.beside(f"lines of {write.rows:,} rows", write.rows * (200 + 150 * fitted.scores_per_row))
        try:
            for chunk, values in scored_chunks(fitted, data, raw=raw, ceiling=ceiling, **asked):
                labels = fitted.labels_of_chunk(chunk, values)
                if certifier is not None:  # instead of scores
                    values = np.column_stack(certifier.answers(chunk, values))
                    proved += int(np.count_nonzero(values[:, 0]))
                    rows += len(values)
                for start in range(0, len(values), write.rows):
                    part = slice(start, start + write.rows)
                    write(_columns(fitted, answer, labels[part], values[part]))
            write.end(whole=True)
            ceiling.keep()
        except BaseException:
            write.end(whole=False)
            raise
    for name, count in sorted(raw.counters.items()):
        note(f"{name}: {count:,}")
    if certifier is not None:
        more = "" if 2 * proved >= rows else "; a smaller gap (--tol-relative of training) proves more"
        note(f"{proved:,} of {rows:,} labels are proved to be those of the optimum{more}.")


def _suffix(path: str | None) -> str:
    return "" if path is None else os.path.splitext(path)[1].lower()


def _columns(model: Model, answer: str, labels: np.ndarray, values: np.ndarray) -> dict[str, np.ndarray]:
    """The columns of an answer: label, score or probability (of each class), or what is proved, for rows with these labels (n,)
    and scores (n,) or (n, classes)."""
    import numpy as np

    columns = {} if answer in ("scores", "probabilities") else {"label": model.in_label_words(labels)}
    if answer == "certified":
        return {**columns, **dict(zip(("proved", "low", "high"), values.T, strict=True))}
    if answer == "labels":
        return columns
    name = "probability" if answer == "probabilities" else "score"
    values = model.probabilities_of(values) if answer == "probabilities" else values
    if values.ndim == 1:
        return {**columns, name: values}
    classes = model.in_label_words(np.array(model.labels)).tolist()  # type: ignore[attr-defined]
    spelled = [word if isinstance(word, str) else f"{word:g}" for word in classes]
    return {**columns, **{f"{name}_{word}": column for word, column in zip(spelled, values.T, strict=True)}}


class _Lines:
    """A line of words and numbers, separated by spaces, per row; the text of `rows` rows is in memory at once."""

    rows = 1 << 14

    def __init__(self, file: Any) -> None:
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

    def __init__(self, file: Any, parquet: bool, kept: deque[pa.RecordBatch]) -> None:
        self._file, self._parquet, self._kept = file, parquet, kept
        self._writer: Any = None
        self._terminal = file is sys.stdout.buffer and sys.stdout.isatty()

    def __call__(self, columns: dict[str, np.ndarray]) -> None:
        import pyarrow as pa

        table: dict[str, Any] = {}
        if self._kept:
            kept = _taken(self._kept, len(next(iter(columns.values()))))
            table = dict(zip(kept.schema.names, kept.columns, strict=True))
        for name, values in columns.items():
            table[name if name not in table else f"{name}_"] = pa.array(values > 0.0 if name == "proved" else values)
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

    def _made(self, schema: pa.Schema) -> Any:
        import pyarrow as pa

        if self._parquet:
            import pyarrow.parquet as pq

            plain = [field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field for field in schema]
            return pq.ParquetWriter(pa.PythonFile(self, mode="w"), pa.schema(plain))
        import pyarrow.csv as pcsv

        return pcsv.CSVWriter(pa.PythonFile(self, mode="w"), schema)

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        content = bytes(data)
        if self._terminal:
            content = "\n".join(map(visible, content.decode("utf-8", "surrogateescape").split("\n"))).encode()
        self._file.write(content)
        return len(data)


def _taken(batches: deque[pa.RecordBatch], rows: int) -> pa.RecordBatch:
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
