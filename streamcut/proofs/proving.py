"""A lower bound of min F from the rows and a model's weights alone: training that ignores its certificate.

Given     a linear model, its rows, and what a fresh pass found for each of its problems.
Returns   for each problem a bound, and the least objective found on the way.
Stops     once every recorded bound is proved or refuted, or the passes are used up.

The bound of a bundle of cuts holds wherever its points come from, so training is the proof: for losses of single rows it starts
at the model's weights as its best point, whose cut is the first; else it starts with none. The recorded problem (loss, C, λ,
bias, ν, k) is the one claimed to be solved; the fresh pass uses the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from streamcut.errors import UsageError
from streamcut.loss_table import LABELLING_LOSSES
from streamcut.models.certificate import Certificate
from streamcut.models.kernel import KernelModel
from streamcut.models.multiclass import MulticlassModel
from streamcut.models.sequence import KernelSequenceModel
from streamcut.proofs.claims import Proof, Verification
from streamcut.training import train

# The options that define the problem for training.
_PROBLEM = ["loss", "epsilon", "delta", "quantile", "k", "strategy", "normalisation", "nu", "bias", "intercept"]
_WITH_LOSS = ("binary", "regression", "multiclass")
_PART = 1e-3  # of the recorded gap: training continues to this if nothing is decided earlier
_PART_OF_CLASS = 0.05  # if each class continues on its own
_LEAST = 1e-12  # of the objective: below, float64 has no gap


def expect_provable(model: Any) -> None:
    """Raise UsageError for a model whose bound cannot be proved from the rows, and say why."""
    if isinstance(model, KernelSequenceModel):
        raise UsageError(
            "prove: of sequences with a kernel the rows do not show that the transitions are those of the labellings behind the "
            "dual variables; only training proves that bound (train again, with the same seed)"
        )
    if isinstance(model, KernelModel) and model.certificate is None:
        raise UsageError(f"prove: a model by {model.solver} claims no bound; of kernel solvers smo and sampled cuts do")


def proofs(model: Any, data: Any, found: Sequence[Verification], *, passes: int, memory: str) -> tuple[Proof, ...]:
    """What training on `data` proves about each problem of `model`, in the order of `found`. Raises what `train` raises."""
    decided = _Decided(found)
    one_by_one = len(found) > 1
    part = _PART_OF_CLASS if one_by_one else _PART
    tightest = min((each.primal - _bound_of(each)) / each.primal if each.primal > 0.0 else 0.0 for each in found)
    limits: dict[str, Any] = {"tol": None, "tol_relative": max(part * tightest, _LEAST), "max_passes": passes, "memory": memory}
    watch: dict[str, Any] = {} if one_by_one else {"on_iteration": decided.see, "stop": decided}
    trained: Any = train(data, **_problem(model, data), **limits, **watch)
    reached: tuple[Certificate, ...] = trained.certificates if isinstance(trained, MulticlassModel) else (trained.certificate,)
    used = trained.history[-1]["passes"]
    return tuple(Proof(c.lower_bound, min(c.primal, each.primal), used) for c, each in zip(reached, found, strict=True))


def _bound_of(found: Verification) -> float:
    return 0.0 if found.recorded is None else found.recorded.lower_bound


def _problem(model: Any, data: Any) -> dict[str, Any]:
    """The options of `train` for the problem that `model` claims to solve."""
    given: dict[str, Any] = {"loss": "auto"} | {name: model.parameters[name] for name in _PROBLEM if name in model.parameters}
    given["task"] = model.task
    if model.task not in _WITH_LOSS:
        del given["loss"]  # there is only one
    if model.task != "one-class":
        given["C"] = model.C
    else:  # it finds C itself, as the solver does
        given["solver"] = model.solver
    if getattr(model, "l1", 0.0):
        given["l1_only" if getattr(model, "alone", False) else "l1"] = model.l1
    if model.task == "binary":
        given |= {"positive_label": model.labels[1], "positive_weight": model.positive_weight}
    if model.task in _WITH_LOSS and given["loss"] not in LABELLING_LOSSES:  # of single rows
        given["warm_start"] = replace(model.without_proof(), recipe=data.recipe)
    return given


class _Decided:
    """Whether passes so far have proved or refuted the recorded bound of the one problem."""

    def __init__(self, found: Sequence[Verification]) -> None:
        self._bound, self._slack, self._now = _bound_of(found[0]), found[0].slack, False

    def see(self, iteration: Any) -> None:
        proved = iteration.lower_bound >= self._bound
        self._now = proved or iteration.primal < self._bound - self._slack

    def __call__(self) -> bool:
        return self._now
