"""streamcut predict"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

import click

from streamcut.cli.destinations import output_file, refuse_existing
from streamcut.cli.output import note
from streamcut.cli.parameters import raw_options
from streamcut.foundation.shown import visible

if TYPE_CHECKING:
    import numpy as np

    from streamcut.data.inputs import Raw
    from streamcut.models.model import Model

OPTIONS = raw_options("index_base", "format", "keep", "strict")


def run(
    model: str, data: str, *, answer: Literal["labels", "scores", "probabilities", "both", "certified"] = "labels",
    trained_on: str | None, output: str | None = None, ignore_extra_features: bool = False, memory: str, force: bool = False,
    **reading: Any,
) -> None:  # fmt: skip
    """
    answer   what to print: labels, scores, probabilities (of the positive label, of two), labels and scores (both), or labels,
             whether they are proved to be those of the exact optimum, and bounds on their scores (certified)
    trained_on   with --answer certified, for a free intercept and scaled features: the training rows
    output   write to FILE instead of stdout; it appears once it is complete
    """
    path, keep = output, reading.pop("keep")
    if path is not None:
        refuse_existing(path, "--output", force, reads=[model, data])

    import numpy as np

    from streamcut.data.inputs import Raw
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
    columns = tuple(name.strip() for name in (keep or "").split(",") if name.strip())
    table = bool(columns) or _suffix(path) in (".csv", ".parquet")
    raw = Raw(labelled=False, keep=columns, named=table, **reading)
    with output_file(path, replace=force) as file:
        write = _writer(file, path, fitted, answer, raw)
        ceiling.beside(f"lines of {write.rows:,} rows", write.rows * (200 + 150 * fitted.scores_per_row))
        try:
            for chunk, values in scored_chunks(
                fitted, data, ignore_extra_features=ignore_extra_features, raw=raw, ceiling=ceiling
            ):
                labels = fitted.labels_of_chunk(chunk, values)
                if certifier is not None:  # instead of scores
                    values = np.column_stack(certifier.answers(chunk, values))
                    proved += int(np.count_nonzero(values[:, 0]))
                    rows += len(values)
                for start in range(0, len(values), write.rows):
                    part = slice(start, start + write.rows)
                    write(labels[part], values[part])
            write.close()
            ceiling.keep()
        except BaseException:
            write.abandon()
            raise
    for name, count in sorted(raw.counters.items()):
        note(f"{name}: {count:,}")
    if certifier is not None:
        more = "" if 2 * proved >= rows else "; a smaller gap (--tol-relative of training) proves more"
        note(f"{proved:,} of {rows:,} labels are proved to be those of the optimum{more}.")


def _suffix(path: str | None) -> str:
    return "" if path is None else os.path.splitext(path)[1].lower()


def _writer(file: Any, path: str | None, model: Model, answer: str, raw: Raw) -> Any:
    """The writer of (labels, scores) of rows; `close` ends it."""
    if not raw.named:
        return _Lines(file, model, answer)
    from streamcut.cli.score_tables import AnswerTable

    return AnswerTable(file, "parquet" if _suffix(path) == ".parquet" else "csv", model, answer, raw.kept)


class _Lines:
    """A line of space-separated numbers per row; the text of `rows` rows is in memory at once."""

    rows = 1 << 14

    def __init__(self, file: Any, model: Model, answer: str) -> None:
        self._file, self._model, self._answer = file, model, answer

    def __call__(self, labels: np.ndarray, scores: np.ndarray) -> None:
        columns = [] if self._answer in ("scores", "probabilities") else [_texts(self._model.in_label_words(labels))]
        if self._answer == "probabilities":
            columns.append(_texts(self._model.probabilities_of(scores)))
        elif self._answer != "labels":
            columns.append(_texts(scores))
        lines = columns[0] if len(columns) == 1 else [f"{label} {score}" for label, score in zip(*columns, strict=True)]
        self._file.write("".join([f"{line}\n" for line in lines]).encode())

    def abandon(self) -> None:
        """Nothing to do: nothing is buffered."""

    def close(self) -> None:
        """Nothing to do: all is written."""


def _texts(values: np.ndarray) -> list[str]:
    """Each row's number or word, or its numbers separated by spaces."""
    if values.ndim == 2:
        return [" ".join([f"{number:.17g}" for number in row]) for row in values.tolist()]
    return [visible(value) if isinstance(value, str) else f"{value:.17g}" for value in values.tolist()]
