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
    from streamcut.proofs.claims import Verification

_ONLY_PROVING = "--max-passes needs --prove"


def run(
    model: str, data: str | None = None, *, prove: bool, max_passes: int | None = None, C: float | None = None,
    loss: str | None = None, intercept: str | None = None, epsilon: float | None = None, output: str | None = None, memory: str,
    force: bool, as_json: bool = False,
) -> None:  # fmt: skip
    """
    max_passes   at most this many passes: 100 with --prove unless given, 3 where there is no record
    C         weight of the losses next to ½‖w‖², if MODEL does not say
    loss      loss of a row, if MODEL does not say
    intercept  free (not regularised), none, or the value of a bias feature, whose weight is regularised, if MODEL does not say
    epsilon   the ε of the epsilon-insensitive losses, if MODEL does not say
    output    bound MODEL anew, and write the best model found (.npz); `train --warm-start` continues from it
    force     go on with data other than those of training; replace the output file

    A model without a record, LIBLINEAR's text or the JSON of `export`, gets a certificate instead: how far it is above the
    optimum of its problem F = ½‖w‖² + C Σ u_i ℓ_i, at most and at least. What its file does not say has to be given. So does one
    of ours with --C, --loss, --intercept, --epsilon or --output. Estimators of scikit-learn are certified in Python, by
    streamcut.certify: pickles are never opened. Without DATA: what training was given, under the same path.

    Exits with code 5 when anything is refuted, with 9 when --prove could neither prove nor refute the recorded bound.
    """
    passes, path = max_passes, output
    given = {"C": C, "loss": loss, "intercept": intercept, "epsilon": epsilon}
    problem = {name: value for name, value in given.items() if value is not None}
    if path is not None:
        refuse_existing(path, "--output", force, reads=[model, data])
    from streamcut.execution.ceiling import Ceiling
    from streamcut.models.files import load_model, plain
    from streamcut.verification import verify

    trained = load_model(model, Ceiling(memory).expect_model) if _is_ours(model) else None
    if path is not None or problem or trained is None or "bias" not in trained.parameters:  # it has no record of its training
        if data is None or prove:
            raise click.UsageError("--prove is for models with a record." if prove else "Missing argument 'DATA'.")
        _certify(model, data, path, as_json, force, passes=passes or 3, memory=memory, **problem)
        return
    if not prove and passes is not None:
        raise UsageError(_ONLY_PROVING)
    data = data or trained.parameters.get("data")
    if data is None:
        raise UsageError(f"{model} was trained on arrays in memory; name the data to verify it on: streamcut verify MODEL DATA")
    found = verify(trained, data, prove=prove, max_passes=passes or 100, memory=memory, force=force)
    report = _report(found)
    if as_json:
        certificate = None if found.recorded is None else asdict(found.recorded)
        classes = [_report(each) for each in found.classes]
        print_json(plain({**report, "certificate": certificate, "classes": classes}))
    else:
        print_table(
            {name: value for name, value in report.items() if name != "problems" and (prove or not name.startswith("prov"))}
        )
    if not found.same_data:
        note("This is not the data that the model was trained on: the certificate says nothing about it.")
    elif found.problems:
        raise CorruptError(f"{model}: the record is false: {'; '.join(found.problems)}")
    elif found.recorded is None:
        note("The model has no certificate with which to compare its objective.")
    else:
        _conclude(model, found, prove)


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
    recorded, proof = found.recorded, found.proof
    return {
        "rows": found.rows,
        "same_data": found.same_data,
        "primal": found.primal,
        "recorded_primal": None if recorded is None else recorded.primal,
        "primal_agrees": found.primal_agrees,
        "recorded_bound": None if recorded is None else recorded.lower_bound,
        "witness_bound": found.witness_bound,
        "bound_agrees": found.bound_agrees,
        "gap": None if recorded is None else found.primal - recorded.lower_bound,
        "mean_loss": found.mean_loss,
        "proved": found.proved,
        "proved_bound": None if proof is None else proof.lower_bound,
        "proved_gap": found.proved_gap,
        "proving_passes": None if proof is None else proof.passes,
        "consistent": found.consistent,
        "problems": list(found.problems),
    }


def _conclude(model: str, found: Verification, prove: bool) -> None:
    """Report what holds and what was not checked. Raises NotConvergedError for a bound not settled within the passes."""
    assert found.recorded is not None
    if found.overstated:
        note(f"{found.recorded.raised:.3g} of the recorded objective is for rounding, far more than these rows explain.")
    if not prove:
        if found.bound_agrees is None:
            note("The lower bound was not checked: the model holds no proof of it. --prove computes one independently.")
        elif found.trusted:
            note(f"The record fits these rows. Taken on trust from training: {found.trusted}.")
        return
    assert found.proof is not None
    what = f"the model is at most {found.proved_gap:.4g} above the optimum (objective {found.primal:.8g})"
    if found.proved:
        note(f"Proved by the rows alone: {what}, as its record says.")
        return
    converged = ", which is within the requested tolerance" if found.convergence_proved else ""
    raise NotConvergedError(
        f"{model}: neither proved nor refuted in {found.proof.passes:,} passes: the rows alone show that {what}{converged}; its "
        f"record says {found.primal - found.recorded.lower_bound:.4g}. Give it more --max-passes"
    )
