"""streamcut calibrate, verify, export, report and example: what each has besides its verb, and how its result is printed."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamcut import api
from streamcut.cli.output import note, print_json, print_rows, print_table, refuse_existing
from streamcut.errors import CorruptError, NotConvergedError, UsageError
from streamcut.foundation.shown import unknown

if TYPE_CHECKING:
    from streamcut.certification import Certified
    from streamcut.verification import Verification


def calibrate(
    model: str, data: str, *, output: str | None = None, force: bool = False, as_json: bool = False, quiet: bool = False,
    memory: str,
) -> None:  # fmt: skip
    """
    output   write the model there instead of replacing MODEL
    """
    from streamcut.models.files import save_model
    from streamcut.models.link import Sigmoid

    fitted = api.calibrate(model, data, memory=memory)
    save_model(fitted, output or model, replace=force or output is None)
    link = fitted.link
    assert link is not None
    if as_json:
        print_json({"model": output or model, **asdict(link)})
    elif not quiet:
        said = f"A {link.A:.4g}, B {link.B:.4g}" if isinstance(link, Sigmoid) else f"scale {link.scale:.4g} and offsets"
        note(f"Probabilities from {link.rows:,} rows: {said}. Model written to {output or model}.")


def verify(
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
    from streamcut.execution.ceiling import Ceiling
    from streamcut.models.files import load_model
    from streamcut.verification import PASSES, Outcome

    trained = load_model(model, Ceiling(memory).expect_model) if _is_ours(model) else None
    if trained is None or any(value is not None for value in (path, C, loss, intercept, epsilon)):
        if data is None:
            raise click.UsageError("Missing argument 'DATA'.")
        certified = api.certify(model, data, passes or 3, C=C, loss=loss, intercept=intercept, epsilon=epsilon, memory=memory)
        _show_certified(certified, path, as_json, force)
        return
    data = data or trained.parameters.get("data")
    if data is None:
        raise UsageError(f"{model} was trained on arrays in memory; name the data to verify it on: streamcut verify MODEL DATA")
    verdict = api.verify(trained, data, max_passes=passes or PASSES, memory=memory, force=force)
    report = _report(verdict)
    if as_json:
        classes = [_report(part) for part in verdict.classes]
        print_json({**report, "certificate": asdict(verdict.recorded), "classes": classes})
    else:
        print_table({name: value for name, value in report.items() if name != "problems"})
    if not verdict.same_data:
        note("This is not the data that the model was trained on: the certificate says nothing about it.")
    elif verdict.outcome is Outcome.REFUTED:
        raise CorruptError(f"{model}: the record is false: {'; '.join(verdict.problems)}")
    else:
        what = f"the model is at most {verdict.gap:.4g} above the optimum (objective {verdict.primal:.8g})"
        if verdict.outcome is Outcome.UNDECIDED:
            raise NotConvergedError(
                f"{model}: neither proved nor refuted in {verdict.passes:,} passes: the rows show that {what}; its record says "
                f"{verdict.primal - verdict.recorded.lower_bound:.4g}. Give it more --max-passes"
            )
        note(f"Proved by the rows alone: {what}, as its record says.")


def _is_ours(path: str) -> bool:
    """Whether the file has, or ought to have, a model of this package."""
    from streamcut.models.files import is_model

    return path.endswith(".npz") or os.path.isdir(path) or is_model(path)


def _show_certified(certified: Certified, path: str | None, as_json: bool, force: bool) -> None:
    from streamcut.models.files import plain, save_model

    if path is not None:
        save_model(certified.better, path, replace=force)
    report = plain(certified.report())
    if as_json:
        print_json(report)
        return
    click.echo(certified.in_words())
    classes = report.pop("classes")
    if isinstance(intercepts := report["better_intercept"], list):
        classes = classes or [{"label": label} for label in certified.better.labels or ()]
        classes = [line | {"better_intercept": b} for line, b in zip(classes, intercepts, strict=True)]
        del report["better_intercept"]
    print_table({name: value for name, value in report.items() if name != "passes"})
    print_rows(classes)


def _report(verdict: Verification) -> dict[str, object]:
    return {
        "rows": verdict.rows,
        "same_data": verdict.same_data,
        "outcome": verdict.outcome.value,
        "primal": verdict.primal,
        "recorded_primal": verdict.recorded.primal,
        "lower_bound": verdict.lower_bound,
        "recorded_bound": verdict.recorded.lower_bound,
        "gap": verdict.gap,
        "passes": verdict.passes,
        "problems": list(verdict.problems),
    }


def example(name: str, file: str | None = None, *, force: bool = False, quiet: bool = False) -> None:
    """Write the example data NAME to FILE, to try things on; without FILE, under its own name in this folder.

    \b
    clicks        4,000 views of advertisements by time (CSV, made up)
    posts         1,500 posts on three topics (CSV, made up)
    cells         900 cells of three types (.h5ad, made up; needs anndata)
    tumours       426 breast tumours, 1 benign, -1 malignant (svmlight, real)
    tumours-test  143 more of them
    digits        1,797 images of digits (svmlight, real)

    In a shell:
      streamcut example clicks
      streamcut example tumours train.svm
    """
    from streamcut.example import EXAMPLES

    if name not in EXAMPLES:
        raise UsageError(f"NAME: {unknown(name, EXAMPLES)}")
    write, usual = EXAMPLES[name]
    path = file or usual
    refuse_existing(path, "FILE", force)
    write(path)
    if not quiet:
        note(f"Written to {path}.")


def export(
    model: str, file: str, *, force: bool = False, to: str | None, without_recipe: bool, without_probabilities: bool
) -> None:
    api.export(model, file, to=to, replace=force, without_recipe=without_recipe, without_probabilities=without_probabilities)


def report(
    model: str, *, output: str | None = None, force: bool = False, quiet: bool = False, plots: str | None, data: str | None,
    feature_names: str | None,
) -> None:  # fmt: skip
    """
    output   the page (.html) to write
    """
    if output is None and plots is None:
        raise click.UsageError("Give --output FILE for a page, --plots DIR for plots, or both.")
    if plots is not None and Path(plots).exists() and not force and (not Path(plots).is_dir() or any(Path(plots).iterdir())):
        raise click.UsageError(f"--plots: {plots} is not an empty folder; choose another, or replace its plots with --force.")
    api.report(model, output, data=data, feature_names=feature_names, plots=plots, force=force)
    for what, path in (("Report", output), ("All plots", plots)):
        if path is not None and not quiet:
            note(f"{what} written to {path}.")
