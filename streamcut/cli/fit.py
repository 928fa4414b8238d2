"""streamcut fit"""

from __future__ import annotations

from typing import Any

import click

from streamcut.cli import signals
from streamcut.cli.destinations import expect_saved, refuse_existing, reserved_output, save_trained
from streamcut.cli.help import Command
from streamcut.cli.output import note, print_json
from streamcut.cli.parameters import TABLE, Several, checkpoint_of, force_option, json_option, options_from, quiet_option, taken
from streamcut.config import CheckpointOptions, TrainOptions
from streamcut.foundation.interrupts import waits_end_by
from streamcut.io.conversion.options import ConvertOptions

_TRAIN = ("task", "loss", "positive_label", "memory", "workers", "seed", "max_time", "scratch")


@click.command(cls=Command)
@click.argument("data")
@click.option("--label", metavar="COLUMN", help="Tables: the column with the labels, or a comparison ('delay>15').")
@click.option("--output", "-o", required=True, metavar="MODEL", help="Where to write the model (.npz).")
@click.option(
    "--validation", default="20%", show_default=True, metavar="PART", help="Share of the rows held out while C is chosen."
)
@click.option(
    "--group-column", metavar="COLUMN", help="Hold out rows with the same value of this column together; it makes no feature."
)
@click.option("--time-column", metavar="COLUMN", help="Hold out the latest rows by this column instead of random ones.")
@click.option("--C", "C", type=Several(float), metavar="NUMBER[,…]", help="Values to try.  [default: 0.01,0.1,1 and further]")
@click.option(
    "--measure", metavar="MEASURE", help="Measure of `evaluate` to choose by.  [default: log loss, or the task's first]"
)
@click.option("--store", metavar="PATH", help="Keep the store made of DATA here.")
@options_from(ConvertOptions, only=TABLE)
@options_from(TrainOptions, only=_TRAIN)
@options_from(CheckpointOptions)
@force_option
@json_option
@quiet_option
def command(
    data: str,
    label: str | None,
    output: str,
    validation: str,
    group_column: str | None,
    time_column: str | None,
    C: tuple[float, ...] | None,
    measure: str | None,
    store: str | None,
    force: bool,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Make features of the table DATA, choose C on rows held out, train on all rows, and say how good the model is.

    DATA is CSV, Parquet, JSON lines, Arrow or svmlight, a folder or glob of them, or a store. Numbers are standardised, texts
    have tf-idf weights, columns that look like identifiers are left out; two labels get the logistic loss, several the softmax.
    What is said: labels, measures next to those without any feature, the certificate, the largest weights, what may be a mistake.

    \b
    Examples:
      streamcut fit clicks.csv --label click -o m.npz
      streamcut fit flights.parquet --label 'delay>15' --time-column date -o m.npz
      streamcut fit visits.csv --label bought --group-column customer -o m.npz
    """
    refuse_existing(output, "--output", force, reads=[data])
    checkpoint = checkpoint_of(options)
    if checkpoint is not None and store is None:
        raise click.UsageError("--checkpoint needs --store PATH: a run can resume only with the same rows.")
    convert = taken(options, TABLE)

    from streamcut.fitting.fit import fit
    from streamcut.models.checkpoint_places import remove_checkpoints
    from streamcut.models.files import plain

    def tell(sentence: str) -> None:
        if not (quiet or as_json):
            note(sentence)

    with reserved_output(output, "--output", force), signals.deferred() as stop:
        how: dict[str, Any] = {"validation": validation, "group": group_column, "time": time_column, "store": store}
        hooks: dict[str, Any] = {"on_told": tell, "checkpoint": checkpoint, "stop": stop}
        with waits_end_by(stop):
            found = fit(data, label, **how, C=C, measure=measure, convert=convert, **hooks, **options)
        written = save_trained(found.model, output, force)
        if checkpoint is not None and found.model.converged:
            remove_checkpoints(checkpoint.directory, nested=True)
    if as_json:
        shares = {str(label): share for label, share in found.shares.items()}
        print_json(plain({
            "event": "result", "model": written, "C": found.C, "measure": found.measure, "tried": list(found.tried.items()),
            "measures": found.measures, "baseline": found.baseline, "shares": shares, "rows": list(found.rows),
            "largest": [list(each) for each in found.largest], "remarks": found.remarks, "store": found.store,
            "seconds": found.seconds, **found.model.result(),
        }))  # fmt: skip
    elif not quiet:
        click.echo(found.in_words())
        note(f"Model written to {written}; continue with `streamcut predict {written} DATA` or `streamcut report {written}`.")
    signals.raise_received()
    expect_saved(written, output)
