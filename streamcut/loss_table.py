"""The losses by name, and what options and models need to know about them before any is loaded.

A new loss of single rows, or of all classes together, is a file in streamcut.losses and an entry here; the command line, `train`
and the estimators then offer it, with its options.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class RowLoss:
    """A loss of single rows: module and class in streamcut.losses, the kind of its targets, its own options.

    log_odds  scores are log(P(positive) / P(negative)), so models have probabilities
    kinks     it is piecewise linear; its dual is quadratic with only box constraints
    """

    home: str
    targets: Literal["labels", "numbers"]
    options: tuple[str, ...] = ()
    log_odds: bool = False
    kinks: bool = False


ROW_LOSSES = {
    "hinge": RowLoss("hinge.Hinge", "labels", kinks=True),
    "squared-hinge": RowLoss("squared_hinge.SquaredHinge", "labels"),
    "smoothed-hinge": RowLoss("smoothed_hinge.SmoothedHinge", "labels"),
    "logistic": RowLoss("logistic.Logistic", "labels", log_odds=True),
    "squared": RowLoss("squared.Squared", "numbers"),
    "huber": RowLoss("huber.Huber", "numbers", ("delta",)),
    "epsilon-insensitive": RowLoss("epsilon_insensitive.EpsilonInsensitive", "numbers", ("epsilon",), kinks=True),
    "squared-epsilon-insensitive": RowLoss("squared_epsilon_insensitive.SquaredEpsilonInsensitive", "numbers", ("epsilon",)),
    "quantile": RowLoss("quantile.Quantile", "numbers", ("quantile",), kinks=True),
    "poisson": RowLoss("poisson.Poisson", "numbers"),
}


@dataclass(frozen=True, slots=True)
class JointLossRecord:
    """A loss of all classes together: module and class in streamcut.losses.

    apart      the loss of one class against the rest that is nearest to it
    log_odds   the softmax of scores is P(class)
    liblinear  the solver type of LIBLINEAR's models that have it
    """

    home: str
    apart: str
    log_odds: bool = False
    liblinear: str | None = None


HINGE_OF_CLASSES = "crammer-singer"  # what the hinge becomes for several classes
JOINT_LOSSES = {
    HINGE_OF_CLASSES: JointLossRecord("crammer_singer.CrammerSinger", "hinge", liblinear="MCSVM_CS"),
    "softmax": JointLossRecord("softmax.Softmax", "logistic", log_odds=True),
}
CLASSES_LOSSES = tuple(name for name in JOINT_LOSSES if name != HINGE_OF_CLASSES)  # as `train --loss` names them
LOG_ODDS = {name for losses in (ROW_LOSSES, JOINT_LOSSES) for name, loss in losses.items() if loss.log_odds}
LABELLING_LOSSES = ("f1", "prbep", "prec@k", "rec@k", "error")
