"""streamcut predict"""

from __future__ import annotations

import click

from streamcut.cli.output import output_file, refuse_existing
from streamcut.cli.parameters import force_option, ignore_extra_option, index_base_option

ROWS_PER_WRITE = 1 << 14  # text of so many rows is in memory at once


@click.command()
@click.argument("model")
@click.argument("data")
@click.option("--scores", "what", flag_value="scores", help="Print scores instead of labels.")
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
        refuse_existing(path, "--output", force)

    from streamcut.models.files import load_model
    from streamcut.prediction import scored_chunks

    fitted = load_model(model)
    names = [f"{label:.17g}\n" for label in fitted.labels]
    with output_file(path) as file:
        for _, scores in scored_chunks(fitted, data, ignore_extra_features=ignore_extra_features, index_base=index_base):
            for start in range(0, len(scores), ROWS_PER_WRITE):
                part = scores[start : start + ROWS_PER_WRITE].tolist()
                if what == "scores":
                    text = "".join([f"{score:.17g}\n" for score in part])
                elif what == "both":
                    text = "".join([f"{names[score > 0][:-1]} {score:.17g}\n" for score in part])
                else:
                    text = "".join([names[score > 0] for score in part])
                file.write(text.encode())
