"""What each solver requires and provides, in one table. Configuration, jobs, estimators and models use it; none compares names.

A new solver is a module in streamcut.solvers, an entry here and, unless an existing oracle suffices, a job
(streamcut.jobs). The command line, `train` and the estimators then offer it, with the options that streamcut.options gives
to its family, its kinds or its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pkgutil import resolve_name
from typing import Any, Literal

from streamcut.loss_table import HINGE_OF_CLASSES, JOINT_LOSSES, ROW_LOSSES
from streamcut.options.option import options_of
from streamcut.options.training import TrainDeclarations


@dataclass(frozen=True, slots=True)
class SolverRecord:
    """What one algorithm requires and provides.

    family     the kind of model it produces, and so which jobs run it
    trains     {kind of problem: its algorithm: a module of streamcut.solvers, or of streamcut by `papers.`, or a name in one};
               kinds are "binary", "regression", "one-class", "labelling", "ranking", "one-vs-rest", "sequence", JOINT_LOSSES
    kinds      other groups that options are declared for: "cutting-planes", "stochastic"
    options    its options of `train` that not every solver has, in the order of declaration
    limits     options that end it and change nothing before: a run may resume from a checkpoint with others
    margins    each row keeps its scores at the last w and at the best one (sampled cuts: by each cut)
    dual       dual ascent: each row keeps a dual variable, and there is a cache of rows; unless it is of sequences, as columns
    curved     it sums the curvature of the loss: for few features (streamcut.strategy)
    columns    it keeps the columns of relevant features in memory
    max_cuts   size of the bundle unless given; None: from the length of the weights
    vectors    number of dense vectors, each as long as the weights, that each worker keeps
    losses     row losses that it trains; None: all, or those of its job
    intercept  `bias` switches an unregularised intercept on and off
    """

    family: Literal["linear", "budgeted", "exact-kernel", "sampled"]
    trains: Mapping[str, str]
    kinds: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    margins: bool = False
    dual: bool = False
    curved: bool = False
    columns: bool = False
    max_cuts: int | None = None
    vectors: int = 1
    losses: tuple[str, ...] | None = None
    intercept: bool = False

    @property
    def strategy(self) -> str:
        """How it trains several classes, where that is fixed."""
        return HINGE_OF_CLASSES if HINGE_OF_CLASSES in self.trains else "one-vs-rest"

    def algorithm(self, problem: str) -> Any:
        """The module, or what it names, that solves `problem`."""
        home = self.trains[problem]
        *path, name = (f"streamcut.{home}" if home.startswith("papers.") else f"streamcut.solvers.{home}").split(".")
        if name[0].isupper():
            return resolve_name(f"{'.'.join(path)}:{name}")
        return import_module(".".join([*path, name]))


_BOXES = tuple(name for name, loss in ROW_LOSSES.items() if loss.kinks)
_CURVED = tuple(name for name, loss in ROW_LOSSES.items() if not loss.kinks)
_ROUND_LIMITS = ("epochs",)

_RECORDS: dict[str, SolverRecord] = {
    "bundle-dca": SolverRecord(
        family="linear",
        trains={
            **dict.fromkeys(("binary", "regression", "one-vs-rest", *JOINT_LOSSES), "columns"),
            "sequence": "sequence_dca",
        },
        margins=True,
        dual=True,
    ),
    "newton": SolverRecord(
        family="linear",
        trains={"binary": "newton", "regression": "newton", "one-vs-rest": "newton", "ranking": "newton_pairs"},
        margins=True,
        curved=True,
        max_cuts=8,
        vectors=4,
    ),
    "working-set": SolverRecord(
        family="linear",
        trains=dict.fromkeys(("binary", "regression"), "working_set"),
        margins=True,
        columns=True,
        max_cuts=2,
        vectors=6,  # w, the sums of a pass with counts; positions, slopes
        losses=_CURVED,
    ),
    "ocas": SolverRecord(
        family="linear",
        trains={
            **dict.fromkeys(("binary", "regression", "labelling", "ranking", "sequence"), "ocas"),
            "one-class": "one_class",
        },
        kinds=("cutting-planes",),
        margins=True,
    ),
    "cpa": SolverRecord(
        family="linear",
        trains=dict.fromkeys(("binary", "regression", "labelling", "ranking", "sequence"), "cpa"),
        kinds=("cutting-planes",),
    ),
    "bsca": SolverRecord(
        family="budgeted",
        trains=dict.fromkeys(("binary", "regression", "one-vs-rest"), "bsca.BSCA"),
        losses=_BOXES,
    ),
    "bsgd": SolverRecord(
        family="budgeted",
        trains=dict.fromkeys(("binary", "regression", "one-vs-rest"), "papers.bsgd.BSGD"),
        losses=_BOXES,
    ),
    "smo": SolverRecord(
        family="exact-kernel",
        trains={"binary": "smo"},
        intercept=True,
    ),
    "sbp": SolverRecord(
        family="exact-kernel",
        trains={"binary": "papers.sbp.StochasticBatchPerceptron"},
        kinds=("stochastic",),
        limits=_ROUND_LIMITS,
        intercept=True,
    ),
    "sdca": SolverRecord(
        family="exact-kernel",
        trains={"binary": "papers.rivals.KernelSDCA"},
        kinds=("stochastic",),
        limits=_ROUND_LIMITS,
    ),
    "pegasos": SolverRecord(
        family="exact-kernel",
        trains={"binary": "papers.rivals.KernelPegasos"},
        kinds=("stochastic",),
        limits=_ROUND_LIMITS,
    ),
    "perceptron": SolverRecord(
        family="exact-kernel",
        trains={"binary": "papers.rivals.KernelPerceptron"},
        kinds=("stochastic",),
        limits=_ROUND_LIMITS,
    ),
    "sampled-constant": SolverRecord(
        family="sampled",
        trains=dict.fromkeys(("binary", HINGE_OF_CLASSES, "sequence"), "papers.sampled"),
    ),
    "sampled-linear": SolverRecord(
        family="sampled",
        trains=dict.fromkeys(("binary", HINGE_OF_CLASSES, "sequence"), "papers.sampled"),
        margins=True,
    ),
}


def _options(name: str, record: SolverRecord) -> tuple[str, ...]:
    declared = options_of(TrainDeclarations).items()
    return tuple(option for option, field in declared if field.solvers and field.of_solver(name, record.family, *record.kinds))


SOLVER_TABLE = {name: replace(record, options=_options(name, record)) for name, record in _RECORDS.items()}


def solvers(*families: str) -> tuple[str, ...]:
    """The names of the solvers of these families."""
    return tuple(name for name, record in SOLVER_TABLE.items() if record.family in families)


def solvers_of(*problems: str) -> tuple[str, ...]:
    """The names of the solvers that train any of these problems."""
    return tuple(name for name, record in SOLVER_TABLE.items() if not record.trains.keys().isdisjoint(problems))
