"""streamcut verify"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from streamcut.cli.help import Command
from streamcut.cli.output import note, print_json, print_table
from streamcut.cli.parameters import json_option, memory_option
from streamcut.errors import CorruptError, NotConvergedError, UsageError

if TYPE_CHECKING:
    from streamcut.verification import Verification


@click.command(cls=Command)
@click.argument("model")
@click.argument("data", required=False)
@click.option("--passes", metavar="N", type=click.IntRange(1), default=100, help="At most this many passes.  [default: 100]")
@memory_option
@click.option("--force", is_flag=True, help="Go on with data other than those the model was trained on.")
@json_option
def command(model: str, data: str | None, passes: int, memory: str, force: bool, as_json: bool) -> None:
    """Prove or refute the certificate of MODEL by the rows of DATA, trusting nothing that it says.

    \b
    A pass computes the objective at the weights. Then training that starts there (of losses of single rows; else
    from 0) goes on until it ends in one of these:
      reached    a bound as good as the recorded one is proved: exit code 0
      refuted    weights are found that reach less than the recorded bound, or the record says what the rows do not: 5
      undecided  --passes are used up: 9
    It takes about the passes that training took. Of smo and sampled cuts one pass decides: the rows show their dual
    variables, which are the proof, to be feasible. Calibrated probabilities (`calibrate`) are not checked, and
    certificates of sequences cannot be.

    DATA is a store, text or a table, which the recipe of MODEL prepares. Without it: what training was given, under the same
    path.

    \b
    Examples:
      streamcut verify m.npz
      streamcut verify m.npz train.zarr --passes 300 --memory 2GB --json
    """
    from streamcut.execution.ceiling import Ceiling
    from streamcut.models.files import load_model, plain
    from streamcut.verification import Outcome, verify

    trained = load_model(model, Ceiling(memory).expect_model)
    data = data or trained.parameters.get("data")
    if data is None:
        raise UsageError(f"{model} was trained on arrays in memory; name the data to verify it on: streamcut verify MODEL DATA")
    found = verify(trained, data, passes=passes, memory=memory, force=force)
    report = _report(found)
    if as_json:
        classes = [_report(each) for each in found.classes]
        print_json(plain({**report, "certificate": asdict(found.recorded), "classes": classes}))
    else:
        print_table({name: value for name, value in report.items() if name != "problems"})
    if not found.same_data:
        note("This is not the data that the model was trained on: the certificate says nothing about it.")
    elif found.outcome is Outcome.REFUTED:
        raise CorruptError(f"{model}: the record is false: {'; '.join(found.problems)}")
    else:
        what = f"the model is at most {found.gap:.4g} above the optimum (objective {found.primal:.8g})"
        if found.outcome is Outcome.UNDECIDED:
            raise NotConvergedError(
                f"{model}: neither proved nor refuted in {found.passes:,} passes: the rows show that {what}; its record says "
                f"{found.primal - found.recorded.lower_bound:.4g}. Give it more --passes"
            )
        note(f"Proved by the rows alone: {what}, as its record says.")


def _report(found: Verification) -> dict[str, Any]:
    return {
        "rows": found.rows,
        "same_data": found.same_data,
        "outcome": found.outcome.value,
        "primal": found.primal,
        "recorded_primal": found.recorded.primal,
        "lower_bound": found.lower_bound,
        "recorded_bound": found.recorded.lower_bound,
        "gap": found.gap,
        "passes": found.passes,
        "problems": list(found.problems),
    }
