"""Losses: what a row, a pair of rows, a sequence or a whole labelling costs. They see scores and targets, never features.

A loss of single rows is one file here (hinge.py is the shortest example) and one line in streamcut.loss_table:

1. A class with the methods of streamcut.losses.loss.Loss: value, share −ℓ′, conjugate, coordinate step, bounds of shares and the
queries of the ascent. Derive it from MarginLoss (labels) or ResidualLoss (numbers), from UnitShares (shares in [0, 1])
   or FloatShares of streamcut.losses.loss (any others), and from a NamedTuple of its parameters. A parameter has the name of
   the option of `train` that gives it.
2. The line: its name, location, kind of targets, and options.

Nothing else changes: solvers, line search, `verify`, `evaluate`, command line and tests use the class. Its methods are compiled
into kernels (streamcut.compiled.loss), so they may use only numbers, `math`, each other and helpers decorated with
streamcut.compiler.jit.inlined. tests/inside/losses/test_losses.py checks each loss of the table against its definition.

A loss of all classes together is a file, too (crammer_singer.py): a class with the methods of streamcut.losses.joint.JointLoss,
and a line in the table. tests/inside/losses/test_joint_losses.py checks them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from streamcut.errors import UsageError
from streamcut.loss_table import JOINT_LOSSES, ROW_LOSSES

if TYPE_CHECKING:
    from streamcut.losses.joint import JointLoss
    from streamcut.losses.loss import Loss


def row_loss(name: str, options: Mapping[str, Any], positive: float = 1.0) -> Loss:
    """The loss of this name with its parameters from `options` (those of `train`), and the positive label.

    Raises UsageError for a name that is not a loss of single rows.
    """
    if name not in ROW_LOSSES:
        raise UsageError(f"loss: {name!r} is not a loss of single rows; those are {', '.join(ROW_LOSSES)}")
    record = ROW_LOSSES[name]
    module, kind = record.home.split(".")
    parameters = {option: float(options[option]) for option in record.options}
    if record.targets == "labels":
        parameters["positive"] = float(positive)
    return resolve_name(f"streamcut.losses.{module}:{kind}")(**parameters)


def joint_loss(name: str) -> Callable[[int], JointLoss]:
    """The loss of all classes together of this name in JOINT_LOSSES, made of the number of classes."""
    module, kind = JOINT_LOSSES[name].home.split(".")
    return resolve_name(f"streamcut.losses.{module}:{kind}")
