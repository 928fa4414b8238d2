"""The options of a training run, validated once at the border."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, replace
from functools import partial
from typing import Any

from streamcut.errors import UsageError
from streamcut.foundation.redaction import path_of
from streamcut.foundation.shown import unknown
from streamcut.foundation.units import part_of
from streamcut.loss_table import CLASSES_LOSSES, HINGE_OF_CLASSES, JOINT_LOSSES, LABELLING_LOSSES, ROW_LOSSES
from streamcut.options.option import Check, changed, default_of, expect_valid, having, option, options_of
from streamcut.options.training import TASKS, TrainDeclarations
from streamcut.problem import FREE, NONE, REGULARISED, Problem, options_of_problem
from streamcut.solver_table import SOLVER_TABLE, SolverRecord, solvers, solvers_of

LINEAR = solvers("linear")
EXACT_KERNEL = solvers("exact-kernel")
SOLVERS = tuple(SOLVER_TABLE)
SCHEDULERS = ("threads", "sync", "local-cluster")  # or the address of a Dask scheduler, or its scheduler file
IN_MEMORY = "a model in memory"  # recorded as the warm start; of validation data:
ROWS_IN_MEMORY = "rows in memory"
_OFF = {"bias": 0.0, "tol": None, "tol_relative": None}  # values that mean "off" for a solver without the option
_checkpoint = partial(option, group="Checkpoints")


@dataclass(frozen=True, slots=True)
class CheckpointOptions:
    """Where checkpoints go and how often: every `every` seconds, 0: after each iteration.

    resume    continue from the newest one in the folder
    """

    directory: str = _checkpoint(
        MISSING, "Folder or URL for checkpoints of this run; created if needed.", flag="checkpoint", metavar="DIR"
    )
    every: float = _checkpoint(
        600.0,
        "Longest time between two checkpoints; 0: one after each iteration.",
        flag="checkpoint-every",
        metavar="TIME",
        kind="seconds",
        check=Check("is not a number of seconds", lambda value: value >= 0.0),
    )
    resume: bool = _checkpoint(False, "Go on from the newest checkpoint; the result is the same to the last bit.")

    def __post_init__(self) -> None:
        expect_valid(self)

    @classmethod
    def of(cls, checkpoint: CheckpointOptions | str | None) -> CheckpointOptions | None:
        """What functions take: options, or a folder."""
        return cls(checkpoint) if isinstance(checkpoint, str) else checkpoint


@dataclass(frozen=True, slots=True)
class TrainOptions(TrainDeclarations):
    """Options of `train`; None means "the default" or "off" as `streamcut.train` documents them.

    Raises UsageError, naming the option, for an invalid value and for an option that the task or solver does not have.
    """

    solver: str = changed(TrainDeclarations, "solver", choices=("auto", *SOLVERS))

    @property
    def maps(self) -> bool:
        """Whether the kernel is approximated by features of the rows, which are drawn at random."""
        return self.nystroem is not None or self.fourier is not None

    @property
    def distributed(self) -> bool:
        """Whether passes run on a Dask cluster."""
        return self.scheduler not in ("threads", "sync")

    @property
    def chosen_loss(self) -> str:
        """`loss`, or what "auto" stands for."""
        if self.loss != "auto":
            return self.loss
        if self.task != "regression":
            return "hinge"
        return "squared" if "squared" in (self.record.losses or ("squared",)) else "epsilon-insensitive"

    @property
    def chosen_task(self) -> str:
        """`task`, or what "auto" stands for as far as the options tell."""
        if self.task != "auto":
            return self.task
        if self.loss in CLASSES_LOSSES or self.strategy == "one-vs-rest":
            return "multiclass"
        return "regression" if self.loss in ROW_LOSSES and ROW_LOSSES[self.loss].targets == "numbers" else "binary"

    @property
    def chosen_solver(self) -> str:
        """`solver`, or what "auto" stands for."""
        if self.solver != "auto":
            return self.solver
        if self.kernel != "linear" and not self.maps:
            return "bsca"
        if self.l1_only:
            return "working-set"
        if (task := self.chosen_task) == "multiclass":
            return "bundle-dca"
        parts = task in ("binary", "regression", "sequence") and self.loss in ("auto", *ROW_LOSSES)
        return "bundle-dca" if parts and self.cut == "predicted" else "ocas"

    @property
    def chosen_maintenance(self) -> str:
        """`maintenance`, or what "auto" stands for: only vectors of the Gaussian kernel can be merged."""
        if self.maintenance != "auto" or self.record.family != "budgeted":
            return self.maintenance
        return "merge" if self.kernel == "rbf" else "project"

    @property
    def record(self) -> SolverRecord:
        """The record of the chosen solver."""
        return SOLVER_TABLE[self.chosen_solver]

    @property
    def kind(self) -> str:
        """The kind of problem: the task or, where a task has several, its loss or strategy (solver_table)."""
        task = self.chosen_task
        if task == "binary":
            return "labelling" if self.chosen_loss in LABELLING_LOSSES else "binary"
        if task != "multiclass":
            return "ranking" if task == "roc-area" else task
        if self.loss in CLASSES_LOSSES:
            return self.loss
        return self.strategy if "strategy" in self.record.options else self.record.strategy

    def problem(self, **decided: Any) -> Problem:
        """The problem that is posed; `decided`: the fields that follow from the data, or differ from run to run of a path."""
        record, task = self.record, decided.get("task", self.chosen_task)
        loss = self.kind if self.kind in JOINT_LOSSES else self.chosen_loss
        intercept = self.intercept if self.intercept in (FREE, NONE) else REGULARISED
        posed = Problem(
            task=task,
            loss=loss,
            options=tuple((name, self.value(name)) for name in options_of_problem(task, loss)),
            C=float(self.C),
            intercept=FREE if record.intercept else intercept,
            bias=float(self.bias) if self.has("bias") else 0.0,
            scale=self.scale,
            positive_weight=float(self.positive_weight),
            l1_only=bool(self.l1_only),
        )
        posed = replace(posed, **decided)
        return posed if posed.bias and posed.intercept != NONE else replace(posed, bias=0.0, intercept=NONE)

    def deciding(self) -> dict[str, Any]:
        """All options except those that never change the bits of the result."""
        never = (*RESOURCES, *LIMITS, *WATCHERS, *self.record.limits)
        return {name: value for name, value in self.as_dict().items() if name not in never} | {"solver": self.chosen_solver}

    def __post_init__(self) -> None:
        expect_valid(self)
        for name in ("tol", "tol_relative"):
            if self.value(name) == 0.0:
                object.__setattr__(self, name, None)
        if isinstance(self.k, int | float) and not isinstance(self.k, bool):
            object.__setattr__(self, "k", str(int(self.k) if self.k % 1 == 0 else self.k))
        if self.row_cache in (None, "none"):
            object.__setattr__(self, "row_cache", "0")
        if self.task == "one-class" and self.nu is not None and self.nu > 1.0:
            raise UsageError(f"nu: {self.nu!r} is not a number above 0 and at most 1")
        valid = isinstance(self.scheduler, str) and (
            self.scheduler in SCHEDULERS or "://" in self.scheduler or self.scheduler.endswith(".json")
        )
        if not valid:
            raise UsageError(f"scheduler: {unknown(self.scheduler, SCHEDULERS)}, tcp://HOST:PORT, a scheduler file FILE.json")
        self._check_fit()
        if self.intercept in ("free", "none"):
            self._check_intercept()
        if self.tol is None and self.tol_relative is None and not (self.target or self.max_passes or self.max_time):
            raise UsageError("tol and tol_relative are both off: give target, max_passes or max_time, else training never ends")

    @property
    def free(self) -> bool:
        """Whether there is an unregularised intercept."""
        return self.intercept == "free"

    @property
    def in_columns(self) -> bool:
        """Whether the problem, or one for each class, is trained as columns of the weights (streamcut.solvers.columns)."""
        return self.record.dual and self.kind != "sequence"

    def _check_intercept(self) -> None:
        """What an unregularised intercept can be combined with; without an intercept `bias` is 0."""
        if self.bias != _default("bias") and not (self.bias == 0.0 and self.intercept == "none"):
            raise UsageError(f"bias: it is the feature of a regularised intercept, which intercept {self.intercept} is not")
        if self.chosen_loss in LABELLING_LOSSES:
            raise UsageError(f"intercept: only losses of single rows have one, not loss {self.loss}")
        if self.free and self.chosen_task == "multiclass" and self.kind != "one-vs-rest":
            raise UsageError(
                f"intercept: {self.kind} has one free intercept per class, and nothing bounds them jointly; "
                "take strategy one-vs-rest, or a large bias: with bias 10 intercepts cost a hundredth"
            )
        if self.free and self.l1_only and not self.record.columns:
            raise UsageError(f"l1_only: {self.chosen_solver} has no free intercept with it; solver working-set has")
        if self.free and self.l1 and not (self.record.dual or self.record.curved):
            raise UsageError(f"l1: {self.chosen_solver} has no free intercept with it; solvers bundle-dca and newton have")
        if self.free and self.l1 and self.chosen_loss == "poisson":
            raise UsageError(
                "l1: loss poisson has no free intercept with it; leave one of them out, or take intercept regularised"
            )
        if self.free and part_of(self.l1) is not None:
            raise UsageError("l1: λmax is known for regularised intercepts only; with a free one give λ as a number")
        if self.intercept == "none":
            object.__setattr__(self, "bias", 0.0)

    def value(self, name: str) -> Any:
        """The value of option `name`."""
        return getattr(self, name)

    def has(self, name: str) -> bool:
        """Whether option `name` applies to the solver and the task."""
        return self._solver_has(name) and self._task_has(name)

    def _solver_has(self, name: str) -> bool:
        if name == "nu" and (self.chosen_task == "one-class") != (self.record.family == "linear"):
            return False  # with kernels it takes the place of C
        drawn = name == "seed" and self.maps
        return name in COMMON or name in self.record.options or drawn

    def _task_has(self, name: str) -> bool:
        tasks = OPTIONS[name].tasks
        return tasks is None or self.chosen_task in tasks

    def _intercept_stays(self, name: str) -> bool:
        """Whether the model has an intercept even with `bias` 0."""
        return name == "bias" and (self.kind == "one-class" or (self.record.family == "budgeted" and self.task == "regression"))

    def _changed(self) -> list[str]:
        """The options that are not at their defaults, and do not mean "off"."""
        names = []
        for name, declared in self.__dataclass_fields__.items():
            if (value := self.value(name)) is declared.default or value == declared.default:
                continue
            if name not in _OFF or value != _OFF[name] or self._intercept_stays(name):
                names.append(name)
        return names

    def _check_fit(self) -> None:
        """Every option given must apply to the task and the solver."""
        solver, task, changed = self.chosen_solver, self.chosen_task, self._changed()
        for name in changed:
            if not self._task_has(name):
                tasks = ", ".join(OPTIONS[name].tasks or TASKS)
                raise UsageError(f"{name}: {self.value(name)!r} is an option of task {tasks}, not of task {task}")
        if self.l1 and self.l1_only:
            raise UsageError("l1_only: it replaces ½‖w‖², l1 is added to it; leave one of them out")
        if self.kind not in self.record.trains:
            what, those = f"task {self.task}", solvers_of(self.kind)
            if self.kind == "labelling":
                what = f"loss {self.loss}"
            elif task == "multiclass":
                linear = self.record.family == "linear"
                what = f"task multiclass, {self.strategy}," if linear else "task multiclass"
                those = solvers_of(self.kind) if linear else solvers_of(HINGE_OF_CLASSES, "one-vs-rest")
            raise UsageError(f"solver: {what} is trained by {', '.join(those)}, not by {solver}")
        for name in changed:
            if not self._solver_has(name):
                value, having = self.value(name), [other for other, record in SOLVER_TABLE.items() if name in record.options]
                raise UsageError(f"{name}: {value!r} is an option of {', '.join(having)}; {solver} does not have it")
        self._check_loss(task)
        if self.cut == "exact" and self.kind == "labelling":
            raise UsageError(f"cut: {self.cut!r} is a choice for losses of single rows; loss {self.loss} has none")
        if self.record.intercept and self.bias not in (0.0, 1.0):
            raise UsageError(f"bias: {solver} does not regularise its intercept: write 1 for an intercept, 0 for none")
        if self.budget is not None and self.maintenance == "none":
            raise UsageError("budget: maintenance none keeps all vectors; leave one of them out")
        if self.sweeps not in (0, _default("sweeps")) and self.row_cache == "0":
            raise UsageError("sweeps: they visit cached rows, and row_cache 0 caches none; leave one of them out")
        if self.nu is not None and self.C != 1.0:
            raise UsageError("nu: it replaces C; give one of them")
        if (self.loss in ("prec@k", "rec@k")) != (self.k is not None):
            raise UsageError("k: required by losses prec@k and rec@k, and taken by no other (a number of rows, or a part: 10%)")
        if self.warm_start is not None and (self.chosen_loss in LABELLING_LOSSES or self.maps):
            raise UsageError("warm_start: only losses of single rows without nystroem and fourier can start from a model")
        for name in ("l1", "scale"):
            if self.value(name) != _default(name) and self.chosen_loss in LABELLING_LOSSES:
                raise UsageError(f"{name}: only losses of single rows have it, not loss {self.loss}")
        if self.scale != "none" and self.maps:
            raise UsageError("scale: kernel features are not scaled; scale the data beforehand")
        if self.scale != "none" and self.warm_start is not None:
            raise UsageError("scale: the warm-start model has weights of unscaled features; leave one of them out")
        if self.nystroem is not None and self.fourier is not None:
            raise UsageError("fourier: nystroem is given too; give one approximation of the kernel")
        for name in changed:
            if name in of_other_kernels(self.kernel):
                kernels = " or ".join((OPTIONS[name].kernels or "").split())
                raise UsageError(f"{name}: the {self.kernel} kernel has none; choose kernel {kernels}")
        if self.kernel != "linear" and self.record.family == "linear" and not self.maps:
            others = ", ".join(solvers("budgeted", "exact-kernel", "sampled"))
            raise UsageError(
                f"kernel: {solver} trains linear models; for {self.kernel} take solver {others}, or nystroem or fourier to "
                "approximate the kernel by a number of features"
            )

    def _check_loss(self, task: str) -> None:
        """The loss must fit the task and its targets, and take the options that are set."""
        loss, labels = self.chosen_loss, tuple(name for name, record in ROW_LOSSES.items() if record.targets == "labels")
        solver, trained, smooth = self.chosen_solver, self.record.losses, SOLVER_TABLE["working-set"].losses or ()
        if self.l1_only and loss not in smooth:
            raise UsageError(f"l1_only: {loss!r} is not one of its losses, which are {', '.join(smooth)}")
        if self.record.columns and not self.l1_only:
            raise UsageError(f"solver: {solver} is for l1_only, a penalty λ‖w‖₁ without ½‖w‖²; give its λ")
        if trained is not None and loss not in trained and self.kind != "ranking":
            raise UsageError(f"loss: {loss!r} is not trained by {solver}, which trains {', '.join(trained)}")
        if task == "binary" and loss in CLASSES_LOSSES:
            raise UsageError(f"loss: {loss} is for task multiclass; for two classes use logistic")
        fitting = {
            "binary": (*labels, *LABELLING_LOSSES),
            "regression": tuple(name for name in ROW_LOSSES if name not in labels),
            "multiclass": labels if self.strategy == "one-vs-rest" else ("hinge", *CLASSES_LOSSES),
        }.get(task, ("hinge",))
        if task == "multiclass" and loss in CLASSES_LOSSES and self.strategy != _default("strategy"):
            raise UsageError(f"strategy: loss {loss} trains all classes together; leave it out, or take loss logistic")
        if task == "multiclass" and loss in labels and loss not in fitting:
            raise UsageError(
                f"loss: {loss} for several classes needs strategy one-vs-rest; all classes together: {', '.join(fitting)}"
            )
        if loss not in fitting:
            raise UsageError(f"loss: {loss!r} is not one of task {task}, which has {', '.join(fitting)}")
        allowed = ROW_LOSSES[loss].options if loss in ROW_LOSSES else ()
        for name in sorted({name for record in ROW_LOSSES.values() for name in record.options} - set(allowed)):
            if self.value(name) != _default(name):
                raise UsageError(f"{name}: loss {loss!r} does not have it")

    def as_dict(self) -> dict[str, Any]:
        """The options in JSON types; a warm-start model or validation rows without a path are recorded as just that."""
        values = {name: self.value(name) for name in self.__dataclass_fields__}
        for name, otherwise in (("warm_start", IN_MEMORY), ("validation", ROWS_IN_MEMORY)):
            if values[name] is not None:
                values[name] = path_of(values[name]) or otherwise
        return {**values, "loss": self.chosen_loss, "maintenance": self.chosen_maintenance}


OPTIONS = options_of(TrainOptions)
CHOICES = {name: option.choices for name, option in OPTIONS.items() if option.choices}
SCALES = CHOICES["scale"]
COMMON = tuple(name for name, option in OPTIONS.items() if option.solvers is None)  # every solver has them
# Options that never change the bits of the result, so a run may resume with other values: where and how fast it runs,
RESOURCES = having(TrainOptions, lambda option: option.role == "resource")
LIMITS = having(TrainOptions, lambda option: option.role == "limit")  # how long; a solver's own are in its record;
WATCHERS = having(TrainOptions, lambda option: option.role == "watcher")  # and what is measured meanwhile.
SETTINGS = having(TrainOptions, lambda option: option.setting)
# Those that may have several values, of which the best is chosen.
GRID = tuple(name for name in OPTIONS if name not in {*RESOURCES, *LIMITS, *WATCHERS, "task", "warm_start"})


def of_other_kernels(kernel: str) -> list[str]:
    """The options that `kernel` does not use."""
    return [name for name, option in OPTIONS.items() if option.kernels is not None and kernel not in option.kernels.split()]


def _default(name: str) -> Any:
    return default_of(TrainOptions, name)
