"""streamcut predict"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from streamcut.cli.destinations import output_file, refuse_existing
from streamcut.cli.parameters import force_option, ignore_extra_option, index_base_option

if TYPE_CHECKING:
    import numpy as np

ROWS_PER_WRITE = 1 << 14  # text of so many rows is in memory at once


@click.command()
@click.argument("model")
@click.argument("data")
@click.option("--scores", "what", flag_value="scores", help="Print scores instead of labels.")
@click.option("--probability", "what", flag_value="probability", help="Print probabilities of the positive label (`calibrate`).")
@click.option("--both", "what", flag_value="both", help="Print label and score, separated by a blank.")
@click.option(
    "--output", "-o", "path", metavar="FILE", help="Write there instead of stdout; the file appears when it is complete."
)
@ignore_extra_option
@index_base_option
@force_option
def command(
    model: str, data: str, what: str | None, path: str | None, ignore_extra_features: bool, index_base: int, force: bool
) -> None:
    """Print one line for each row of DATA (a store, an svmlight file, or - for svmlight on stdin), in its order.

    Scores have 17 significant digits, so that reading them back gives the same numbers.

    \b
    Examples:
      streamcut predict m.npz test.zarr > labels.txt
      streamcut predict m.npz test.svm.gz --scores -o scores.txt
      zcat test.svm.gz | streamcut predict m.npz - --both
    """
    if path is not None:
        refuse_existing(path, "--output", force, reads=[model, data])

    import numpy as np

    from streamcut.models.files import load_model
    from streamcut.prediction import scored_chunks

    fitted = load_model(model)
    if what == "probability":
        fitted.probabilities_of(np.empty(0))  # complains before any work
    with output_file(path, replace=force) as file:
        for chunk, scores in scored_chunks(fitted, data, ignore_extra_features=ignore_extra_features, index_base=index_base):
            labels = fitted.labels_of_chunk(chunk, scores)
            for start in range(0, len(scores), ROWS_PER_WRITE):
                part = slice(start, start + ROWS_PER_WRITE)
                columns = [] if what in ("scores", "probability") else [_texts(labels[part])]
                if what == "probability":
                    columns.append(_texts(fitted.probabilities_of(scores[part])))
                elif what is not None:
                    columns.append(_texts(scores[part]))
                lines = columns[0] if len(columns) == 1 else [f"{label} {score}" for label, score in zip(*columns, strict=True)]
                file.write("".join([f"{line}\n" for line in lines]).encode())


def _texts(numbers: np.ndarray) -> list[str]:
    """Each row's number, or its numbers with blanks between them."""
    if numbers.ndim == 2:
        return [" ".join([f"{number:.17g}" for number in row]) for row in numbers.tolist()]
    return [f"{number:.17g}" for number in numbers.tolist()]
