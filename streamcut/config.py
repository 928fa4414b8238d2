"""What a training run was asked for, checked once at the border."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from streamcut.errors import UsageError

SOLVERS = ("ocas", "cpa", "bundle-dca")
CUTS = ("predicted", "exact")
SCHEDULERS = ("threads", "sync", "local-cluster")  # or the address of a Dask scheduler
TASKS = ("auto", "binary")


@dataclass(frozen=True, slots=True)
class CheckpointOptions:
    """Where checkpoints go and how often: `every` so many seconds, and every `iterations`-th iteration.

    required  a checkpoint that cannot be written ends training; otherwise it is a warning
    resume    go on from the newest one in the folder
    """

    directory: str
    every: float = 600.0
    iterations: int | None = None
    required: bool = False
    resume: bool = False

    def __post_init__(self) -> None:
        if not self.every >= 0.0:
            raise UsageError(f"checkpoint_every: {self.every!r} is not a number of seconds")
        if self.iterations is not None and self.iterations < 1:
            raise UsageError(f"checkpoint_iterations: {self.iterations!r} is not a whole number, 1 or above")


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """Options of `train` for a linear SVM; None means "the default" or "off" as `streamcut.train` documents them.

    Raises UsageError, naming the option, for a value that makes no sense.
    """

    task: str = "auto"
    C: float = 1.0
    solver: str = "auto"
    cut: Literal["predicted", "exact"] = "predicted"
    bias: float = 1.0
    tol: float | None = 1e-3
    tol_relative: float | None = 1e-2
    target: float | None = None
    max_passes: int | None = None
    max_time: float | None = None
    positive_weight: float = 1.0
    positive_label: float | None = None
    max_cuts: int | None = None
    lanes: int | None = None
    workers: int | None = None
    scheduler: str = "threads"
    memory: str = "auto"
    scratch: str | None = None
    row_cache: str = "auto"
    sweeps: int = 50
    deadline: float = 120.0

    @property
    def distributed(self) -> bool:
        """Whether passes run on a Dask cluster."""
        return self.scheduler not in ("threads", "sync")

    def __post_init__(self) -> None:
        if self.cut != "predicted" and self.solver not in ("auto", "ocas"):
            raise UsageError(f"cut: {self.cut!r} is a choice of ocas; {self.solver} takes its cuts in one way only")
        for name, allowed in (("task", TASKS), ("solver", ("auto", *SOLVERS)), ("cut", CUTS)):
            if getattr(self, name) not in allowed:
                raise UsageError(f"{name}: {getattr(self, name)!r} is unknown; use one of {', '.join(allowed)}")
        if not isinstance(self.scheduler, str) or (self.scheduler not in SCHEDULERS and "://" not in self.scheduler):
            raise UsageError(f"scheduler: {self.scheduler!r} is unknown; use one of {', '.join(SCHEDULERS)}, tcp://HOST:PORT")
        if self.distributed and self.row_cache not in ("auto", "0"):
            raise UsageError(f"row_cache: {self.row_cache!r} is of no use on Dask, where no rows are cached; leave it out")
        for name in ("C", "positive_weight"):
            self._check(name, "a number above 0", lambda value: 0.0 < value < math.inf)
        self._check("bias", "a number that is 0 or above", lambda value: 0.0 <= value < math.inf)
        for name in ("tol", "tol_relative"):
            self._check(name, "a number that is 0 or above", lambda value: 0.0 <= value < math.inf)
            if getattr(self, name) == 0.0:
                object.__setattr__(self, name, None)
        self._check("target", "a finite number", math.isfinite)
        for name in ("max_time", "deadline"):
            self._check(name, "seconds above 0", lambda value: value > 0.0)
        self._check("max_cuts", "a whole number, 2 or above", lambda value: value >= 2 and value == int(value))
        for name in ("max_passes", "lanes", "workers"):
            self._check(name, "a whole number, 1 or above", lambda value: value >= 1 and value == int(value))
        self._check("sweeps", "a whole number, 0 or above", lambda value: value >= 0 and value == int(value))
        if self.solver == "bundle-dca" and self.max_cuts is not None and self.max_cuts < 4:
            raise UsageError(f"max_cuts: bundle-dca adds two cuts a pass and needs room for 4, not {self.max_cuts}")
        if self.tol is None and self.tol_relative is None and not (self.target or self.max_passes or self.max_time):
            raise UsageError("tol and tol_relative are both off: give target, max_passes or max_time, or training never ends")

    def _check(self, name: str, what: str, good) -> None:
        value = getattr(self, name)
        if value is None:
            return
        if isinstance(value, bool) or not isinstance(value, int | float) or not good(value):
            raise UsageError(f"{name}: {value!r} is not {what}")

    def as_dict(self) -> dict[str, Any]:
        """JSON types only."""
        return asdict(self)
