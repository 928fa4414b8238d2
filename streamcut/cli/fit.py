"""streamcut fit"""

from __future__ import annotations

from typing import Any

import click

from streamcut import api
from streamcut.cli import signals
from streamcut.cli.destinations import refuse_existing, reserved_output, save_trained
from streamcut.cli.made import TABLE, checkpoint_of, has, options_from, taken
from streamcut.cli.output import note, print_json
from streamcut.config import CheckpointOptions, TrainOptions
from streamcut.foundation.interrupts import waits_end_by
from streamcut.io.conversion.options import ConvertOptions

_TRAIN = ("task", "loss", "positive_label", "memory", "workers", "seed", "max_time", "scratch")
_C = {"metavar": "NUMBER[,…]", "help": "Values to try.  [default: 0.01,0.1,1 and further]", "default": None, "group": ""}


@has(
    *options_from(ConvertOptions, only=TABLE),
    *options_from(TrainOptions, only=_TRAIN),
    *options_from(CheckpointOptions),
    *options_from(TrainOptions, only=["C"], several=["C"], C=_C),
)
def run(
    data: str, *, label: str | None, output: str, validation: str, group_column: str | None, time_column: str | None,
    measure: str | None, store: str | None, force: bool = False, as_json: bool = False, quiet: bool = False, **options: Any,
) -> None:  # fmt: skip
    """
    output    where to write the model (.npz); required

    In a shell:
      streamcut fit clicks.csv --label click -o m.npz
      streamcut fit flights.parquet --label 'delay>15' --time-column date -o m.npz
      streamcut fit visits.csv --label bought --group-column customer -o m.npz
    """
    C = options.pop("C")
    refuse_existing(output, "--output", force, reads=[data])
    checkpoint = checkpoint_of(options)
    if checkpoint is not None and store is None:
        raise click.UsageError("--checkpoint needs --store PATH: a run can resume only with the same rows.")
    convert = taken(options, TABLE)

    from streamcut.models.checkpoint import remove_checkpoints
    from streamcut.models.files import plain

    with reserved_output(output, "--output", force), signals.deferred() as stop:
        how: dict[str, Any] = {"validation": validation, "group_column": group_column, "time_column": time_column, "store": store}
        hooks: dict[str, Any] = {"on_told": None if quiet or as_json else note, "checkpoint": checkpoint, "stop": stop}
        with waits_end_by(stop):
            found = api.fit(data, label, **how, C=C, measure=measure, convert=convert, **hooks, **options)
        written, late = save_trained(found.model, output, force)
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
    if late is not None:
        raise late
