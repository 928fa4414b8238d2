"""streamcut predict"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from streamcut.cli.destinations import output_file, refuse_existing
from streamcut.cli.help import Command
from streamcut.cli.output import note
from streamcut.cli.parameters import (
    force_option,
    ignore_extra_option,
    memory_option,
    raw_options,
    trained_on_option,
)
from streamcut.foundation.shown import visible

if TYPE_CHECKING:
    import numpy as np

    from streamcut.data.inputs import Raw
    from streamcut.models.model import Model


@click.command(cls=Command)
@click.argument("model")
@click.argument("data")
@click.option("--scores", is_flag=True, help="Print scores instead of labels.")
@click.option("--probabilities", "--probability", is_flag=True, help="Print probabilities (of the positive label, of two).")
@click.option("--both", is_flag=True, help="Print label and score, separated by a space.")
@click.option(
    "--certified",
    is_flag=True,
    help="Print label, whether it is proved to be that of the exact optimum, and bounds on its score.",
)
@trained_on_option
@click.option("--output", "-o", "path", metavar="FILE", help="Write to FILE instead of stdout; it appears once it is complete.")
@raw_options("index_base", "format", "keep", "strict")
@ignore_extra_option
@memory_option
@force_option
def command(
    model: str,
    data: str,
    scores: bool,
    probabilities: bool,
    both: bool,
    certified: bool,
    trained_on: str | None,
    path: str | None,
    keep: str | tuple[()],
    format: str,  # noqa: A002 - the option's name
    ignore_extra_features: bool,
    index_base: int | None,
    strict: bool,
    memory: str,
    force: bool,
) -> None:
    """Print one line for each row of DATA (a store, svmlight text, a table, or - for standard input), in its order.

    Raw input is prepared by the recipe of the model: a table needs the columns that its features are made of. Labels are
    neither needed nor read; those that are words come back as words.

    Scores have 17 significant digits, so that reading them back gives the same numbers. An output that ends in .csv or
    .parquet is a table with a line of names, and so is what --keep makes; cells have their barcodes in it.

    --certified proves which labels are those of the exact optimum of the model's problem, and between which numbers its
    score (or the number that it predicts) is. What cannot be proved is labelled all the same; the smaller the gap of the
    model, the more is proved. With a free intercept, and --scale, the rows of the training are read too: --trained-on.

    \b
    Examples:
      streamcut predict m.npz test.zarr > labels.txt
      streamcut predict m.npz test.zarr --certified --trained-on train.zarr
      streamcut predict m.npz test.svm.gz --scores -o scores.txt
      streamcut predict m.npz new.parquet --keep user_id --both -o scores.parquet
      zcat test.svm.gz | streamcut predict m.npz - --both
    """
    what = _one_of(scores=scores, probabilities=probabilities, both=both, certified=certified)
    if path is not None:
        refuse_existing(path, "--output", force, reads=[model, data])

    import numpy as np

    from streamcut.data.inputs import Raw
    from streamcut.execution.ceiling import Ceiling
    from streamcut.models.files import load_model
    from streamcut.prediction import scored_chunks

    ceiling = Ceiling(memory)
    fitted = load_model(model, ceiling.expect_model)
    if what == "probabilities":
        fitted.expected_link()  # raises before any work
    certifier: Any = None
    proved = rows = 0
    if what == "certified":
        from streamcut.certified import Certifier

        certifier = Certifier(fitted, trained_on, memory)
    elif trained_on is not None:
        raise click.UsageError("--trained-on is for --certified.")
    columns = tuple(name.strip() for name in (keep or "").split(",") if name.strip())
    table = bool(columns) or _suffix(path) in (".csv", ".parquet")
    raw = Raw(index_base=index_base, labelled=False, format=format, keep=columns, strict=strict, named=table)
    with output_file(path, replace=force) as file:
        write = _writer(file, path, fitted, what, raw)
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


def _one_of(**flags: bool) -> str | None:
    """The flag that is on; those of the command line go before those of files and variables. Raises UsageError for several."""
    context, on = click.get_current_context(), [name for name, value in flags.items() if value]
    here = [name for name in on if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE]
    chosen = here or on
    if len(chosen) > 1:
        raise click.UsageError(f"--{chosen[0]} and --{chosen[1]} exclude each other; give one of them.")
    return chosen[0] if chosen else None


def _suffix(path: str | None) -> str:
    return "" if path is None else os.path.splitext(path)[1].lower()


def _writer(file: Any, path: str | None, model: Model, what: str | None, raw: Raw) -> Any:
    """The writer of (labels, scores) of rows; `close` ends it."""
    if not raw.named:
        return _Lines(file, model, what)
    from streamcut.cli.score_tables import AnswerTable

    return AnswerTable(file, "parquet" if _suffix(path) == ".parquet" else "csv", model, what, raw.kept)


class _Lines:
    """A line of space-separated numbers per row; the text of `rows` rows is in memory at once."""

    rows = 1 << 14

    def __init__(self, file: Any, model: Model, what: str | None) -> None:
        self._file, self._model, self._what = file, model, what

    def __call__(self, labels: np.ndarray, scores: np.ndarray) -> None:
        columns = [] if self._what in ("scores", "probabilities") else [_texts(self._model.in_label_words(labels))]
        if self._what == "probabilities":
            columns.append(_texts(self._model.probabilities_of(scores)))
        elif self._what is not None:
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
