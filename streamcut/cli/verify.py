"""streamcut verify"""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from streamcut.cli.destinations import refuse_existing
from streamcut.cli.output import note, print_json, print_rows, print_table
from streamcut.errors import CorruptError, NotConvergedError, UsageError

if TYPE_CHECKING:
    from streamcut.verification import Verification


def run(
    model: str, data: str | None = None, *, max_passes: int | None = None, C: float | None = None,
    loss: str | None = None, intercept: str | None = None, epsilon: float | None = None, output: str | None = None, memory: str,
    force: bool, as_json: bool = False,
) -> None:  # fmt: skip
    """
    max_passes   at most this many passes: 100 unless given, 3 where there is no record
    C         weight of the losses next to ½‖w‖², if MODEL does not say
    loss      loss of a row, if MODEL does not say
    intercept  free (not regularised), none, or the value of a bias feature, whose weight is regularised, if MODEL does not say
    epsilon   the ε of the epsilon-insensitive losses, if MODEL does not say
    output    bound MODEL anew, and write the best model found (.npz); `train --warm-start` continues from it
    force     go on with data other than those of training; replace the output file

    A model without a record, LIBLINEAR's text or the JSON of `export`, gets a certificate instead: how far it is above the
    optimum of its problem F = ½‖w‖² + C Σ u_i ℓ_i, at most and at least. What its file does not say has to be given. So does one
    of ours with --output. Estimators of scikit-learn are certified in Python, by
    streamcut.certify: pickles are never opened. Without DATA: what training was given, under the same path.

    Exits with code 5 when the record is refuted, with 9 when it is neither proved nor refuted in --max-passes.
    """
    passes, path = max_passes, output
    given = {"C": C, "loss": loss, "intercept": intercept, "epsilon": epsilon}
    problem = {name: value for name, value in given.items() if value is not None}
    if path is not None:
        refuse_existing(path, "--output", force, reads=[model, data])
    from streamcut.execution.ceiling import Ceiling
    from streamcut.models.files import load_model, plain
    from streamcut.verification import PASSES, Outcome, verify

    trained = load_model(model, Ceiling(memory).expect_model) if _is_ours(model) else None
    if path is not None or problem or trained is None:
        if data is None:
            raise click.UsageError("Missing argument 'DATA'.")
        _certify(model, data, path, as_json, force, passes=passes or 3, memory=memory, **problem)
        return
    data = data or trained.parameters.get("data")
    if data is None:
        raise UsageError(f"{model} was trained on arrays in memory; name the data to verify it on: streamcut verify MODEL DATA")
    found = verify(trained, data, max_passes=passes or PASSES, memory=memory, force=force)
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
    print_table({name: value for name, value in report.items() if name != "passes"})
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
