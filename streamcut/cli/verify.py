"""streamcut verify"""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from streamcut.cli.destinations import refuse_existing
from streamcut.cli.help import Command
from streamcut.cli.output import note, print_json, print_rows, print_table
from streamcut.cli.parameters import Choice, json_option, memory_option
from streamcut.errors import CorruptError, NotConvergedError, UsageError
from streamcut.loss_table import JOINT_LOSSES, ROW_LOSSES

if TYPE_CHECKING:
    from streamcut.verification import Verification


@click.command(cls=Command)
@click.argument("model")
@click.argument("data", required=False)
@click.option("--C", "C", metavar="X", type=float, help="Weight of the losses next to ½‖w‖², if MODEL does not say.")
@click.option("--loss", type=Choice((*ROW_LOSSES, *reversed(JOINT_LOSSES))), help="Loss of a row, if MODEL does not say.")
@click.option(
    "--intercept",
    metavar="WHAT",
    help="free (not regularised), none, or the value of a bias feature, whose weight is regularised, if MODEL does not say.",
)
@click.option("--epsilon", metavar="X", type=float, help="ε of the epsilon-insensitive losses, if MODEL does not say.")
@click.option(
    "--max-passes",
    "passes",
    metavar="N",
    type=click.IntRange(1),
    help="At most this many.  [default: 100; 3 without a record]",
)
@click.option(
    "--output",
    "-o",
    "path",
    metavar="FILE",
    help="Bound MODEL anew, and write the best model found (.npz); `train --warm-start` continues from it.",
)
@memory_option
@click.option("--force", is_flag=True, help="Go on with data other than those of training; replace the --output file.")
@json_option
def command(
    model: str,
    data: str | None,
    passes: int | None,
    path: str | None,
    memory: str,
    force: bool,
    as_json: bool,
    **problem: Any,
) -> None:
    """Prove or refute the certificate of MODEL by the rows of DATA, trusting nothing that it says.

    A model without a record, LIBLINEAR's text or the JSON of `export`, gets a certificate instead: how far it is above the
    optimum of its problem F = ½‖w‖² + C Σ u_i ℓ_i, at most and at least. What its file does not say has to be given. So does one
    of ours with --C, --loss, --intercept, --epsilon or --output. Estimators of scikit-learn are certified in Python, by
    streamcut.certify: pickles are never opened.

    \b
    A pass computes the objective at the weights. Then training that starts there (of losses of single rows; else
    from 0) goes on until it ends in one of these:
      reached    a bound as good as the recorded one is proved: exit code 0
      refuted    weights are found that reach less than the recorded bound, or the record says what the rows do not: 5
      undecided  --max-passes are used up: 9
    It takes about the passes that training took. Of smo and sampled cuts one pass decides: the rows show their dual
    variables, which are the proof, to be feasible. Calibrated probabilities (`calibrate`) are not checked, and
    certificates of sequences cannot be.

    DATA is a store, text or a table, which the recipe of MODEL prepares. Without it: what training was given, under the same
    path.

    \b
    Examples:
      streamcut verify m.npz
      streamcut verify m.npz train.zarr --max-passes 300 --memory 2GB --json
      streamcut verify liblinear.model train.zarr --C 1
      streamcut verify weights.json train.zarr --C 1 --loss logistic --max-passes 6
    """
    problem = {name: value for name, value in problem.items() if value is not None}
    if path is not None:
        refuse_existing(path, "--output", force, reads=[model, data])
    from streamcut.execution.ceiling import Ceiling
    from streamcut.models.files import load_model, plain
    from streamcut.verification import Outcome, verify

    trained = load_model(model, Ceiling(memory).expect_model) if _is_ours(model) else None
    if path is not None or problem or trained is None or "bias" not in trained.parameters:  # it has no record of its training
        if data is None:
            raise click.UsageError("Missing argument 'DATA'.")
        _certify(model, data, path, as_json, force, passes=passes or 3, memory=memory, **problem)
        return
    data = data or trained.parameters.get("data")
    if data is None:
        raise UsageError(f"{model} was trained on arrays in memory; name the data to verify it on: streamcut verify MODEL DATA")
    found = verify(trained, data, passes=passes or 100, memory=memory, force=force)
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
                f"{found.primal - found.recorded.lower_bound:.4g}. Give it more --max-passes"
            )
        note(f"Proved by the rows alone: {what}, as its record says.")


def _is_ours(path: str) -> bool:
    """Whether the file has, or ought to have, a model of this package."""
    from streamcut.models.files import is_model

    return path.endswith(".npz") or os.path.isdir(path) or is_model(path)


def _certify(model: str, data: str, path: str | None, as_json: bool, force: bool, **options: Any) -> None:
    from streamcut.certifying.certify import certify
    from streamcut.models.files import plain, save_model

    found = certify(model, data, **options)
    if path is not None:
        save_model(found.better, path, replace=force)
    report = plain(found.report())
    if as_json:
        print_json(report)
        return
    click.echo(found.in_words())
    classes = report.pop("classes")
    if isinstance(intercepts := report["better_intercept"], list):
        classes = classes or [{"label": label} for label in found.better.labels or ()]
        classes = [each | {"better_intercept": b} for each, b in zip(classes, intercepts, strict=True)]
        del report["better_intercept"]
    print_table({name: value for name, value in report.items() if name not in ("passes", "intercept_within")})
    print_rows(classes)


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
