"""What the command line of a trainer says about the problem that its model solves: C, loss, intercept, weights of classes."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace

from streamcut.certifying.problem import FREE, Problem
from streamcut.errors import OtherProgramError
from streamcut.flags import translate
from streamcut.loss_table import HINGE_OF_CLASSES

_PROGRAMS = {"vw": "vw", "train": "liblinear", "liblinear": "liblinear", "liblinear-train": "liblinear"}
_STEADY = ("--sgd", "--bfgs")  # vw's algorithms that minimise the objective with --l2
_SAME = {"epsilon": "--epsilon", "quantile": "--quantile"}


def told(problem: Problem, command: str, rows: int, weighted: bool) -> Problem:
    """`problem` completed from the command line `command`: "train -s 2 -c 1 -B 1" or "vw --bfgs --l2 1".

    rows      of the data: vw's --l2 may be per row
    weighted  whether the rows have weights

    Raises OtherProgramError for other programs, options without a counterpart, and contradictions with the model.
    """
    program, options = _split(command)
    given = translate(program, options, rows=rows).options
    if program == "vw":
        _expect_named(options, given, weighted)
    task = given.get("--task", "binary")
    sparse = next((name for name in given if name.startswith("--l1")), None)
    together = task == "multiclass" and program == "liblinear"  # its -s 4
    if task not in ("binary", "regression", "multiclass" * together) or sparse is not None:
        other = sparse or f"task {task}"
        raise OtherProgramError(f"{command}: {other}: certify takes classes or numbers, and ½‖w‖² alone")
    loss = HINGE_OF_CLASSES if together else given.get("--loss", "hinge" if task == "binary" else "squared")
    bias = float(given.get("--bias", 1.0))
    fit = FREE if given.get("--intercept") == FREE else bias
    if problem.loss not in (None, loss):
        raise OtherProgramError(f"{command}: {problem.what} was trained with the {problem.loss} loss, not the {loss} one")
    if problem.fit not in (None, bias):
        raise OtherProgramError(f"{command}: {problem.what} has a bias feature of {problem.fit:g}, not {bias:g}")
    positive = float(given.get("--positive-weight", 1.0))
    if problem.strategy:
        task = "multiclass"
        if positive != 1.0:
            raise OtherProgramError(f"{command}: weights of several classes have no counterpart here")
    if "," in given["--C"]:
        raise OtherProgramError(f"{command}: it gives no C (vw: --l2); give it by --C")
    C = float(given["--C"])
    if (label := given.get("--positive-label")) is not None and problem.labels is not None and float(label) == problem.labels[0]:
        C, positive = C * positive, 1.0 / positive
    own = {name: float(given[option]) for name, option in _SAME.items() if option in given}
    return replace(problem, C=C, loss=loss, fit=fit, task=task, positive_weight=positive, options=problem.options | own)


def _expect_named(options: str, given: dict[str, str], weighted: bool) -> None:
    """Raise OtherProgramError unless the objective that vw minimises is known."""
    words, why = shlex.split(options), ""
    if not any(name in words for name in _STEADY):
        why = (
            "its usual steps (--adaptive, --normalized) differ by feature while --l2 shrinks all weights alike, which minimises "
            "no objective that can be named; train with --bfgs or --sgd"
        )
    elif given.get("--task") == "regression" and "--loss" not in given:
        why = (
            "its squared loss costs nothing beyond the least and the largest label of the rows, so it is another one; train with "
            "--loss_function logistic or hinge"
        )
    elif weighted and "--bfgs" not in words:
        why = "how often --l2 of --sgd counts rows that have weights is not known; train with --bfgs"
    if why:
        raise OtherProgramError(f"vw {options}: {why}, or give the problem by --C, --loss and --intercept")


def _split(command: str) -> tuple[str, str]:
    first, _, options = command.strip().partition(" ")
    program = _PROGRAMS.get(os.path.basename(first))
    if program is None:
        raise OtherProgramError(
            f"{command!r} begins with none of {', '.join(_PROGRAMS)}; others are certified as they are, or with --C and --loss"
        )
    return program, options
