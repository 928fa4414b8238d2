"""Validation of model files: their origin is unknown, and scoring, reports and `verify` rely on their content.

Every function raises ValueError (or KeyError for a missing array) for content that no training can have written.
"""

from __future__ import annotations

import math
import sys
from itertools import pairwise
from typing import Any, get_args, get_type_hints

import numpy as np

from streamcut.config import TASKS, TrainOptions
from streamcut.errors import UsageError
from streamcut.foundation.fields import Fields
from streamcut.foundation.rounding import CutError
from streamcut.kernels.kernel import Kernel
from streamcut.models.certificate import Certificate, StopReason, Witness
from streamcut.models.link import Link, Sigmoid, Softmax
from streamcut.solver_table import SOLVER_TABLE

KERNELS = ("linear", "rbf", "poly")
_DEGREE = 1 << 20
BEGUN = "certified"  # the parameter that names the model from which certify found this one, and its distance from the optimum
LARGEST = 1e100  # of C and similar options, as in TrainOptions
MOST_FEATURES = 1 << 40  # weights of more would not fit in memory
_LIST = 1 << 16
_NUMBERS = {"iteration", "passes", "epoch", "seconds", "rows", "nnz", "bytes_read", "bytes_computed", "evaluations", "step"}
_UNKNOWN = {"step", "primal", "lower_bound", "gap", "allowed_gap"}  # numbers that may be null: not known yet, or not finite
_NUMBERS |= {"cuts", *_UNKNOWN}


def common_from(meta: dict[str, Any]) -> dict[str, Any]:
    """`common_meta` read back from a file, as keyword arguments of the model."""
    given = Fields(meta, "model")
    solver = given.text("solver")
    if solver and solver not in SOLVER_TABLE:
        raise given.wrong("solver", "a solver")
    link = None if "link" not in given or given.is_null("link") else link_from(given.object("link"))
    return {
        "task": given.text("task", TASKS),
        "solver": solver,
        "history": [scalars(each) for each in given.objects("history")],
        "parameters": _parameters(given.object("parameters")),
        "fingerprint": given.text("fingerprint"),
        "resources": _resources(given.object("resources")) if "resources" in given else {},
        "link": link,
    }


def scalars(given: Fields) -> dict[str, Any]:
    """Numbers, texts, and null; fields that must be numbers are, so that they can be plotted."""
    for name in given.names():
        value = given.any(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            given.number(name)
        elif not isinstance(value, str | bool | None) or (name in _NUMBERS and not (value is None and name in _UNKNOWN)):
            raise given.wrong(name, "a number")
    return given.plain()


def _parameters(given: Fields) -> dict[str, Any]:
    """Options of training by name, with their types in training, and `data`, a path."""
    kinds = get_type_hints(TrainOptions) | {"data": str}
    for name in given.names():
        value, kind = given.any(name), kinds.get(name)
        wanted = (kind, *get_args(kind))
        if isinstance(value, bool | str) or value is None:
            fits = kind in (None, Any) or type(value) in wanted or value in get_args(kind)
        elif isinstance(value, int | float):
            fits = math.isfinite(given.number(name)) and (kind in (None, Any) or float in wanted or type(value) in wanted)
        else:
            fits = kind is None and isinstance(value, list | dict) and len(value) < _LIST
        if not fits:
            raise given.wrong(name, "a value of this option")
    return given.plain()


def _resources(given: Fields) -> dict[str, Any]:
    """Bytes, the plan, and readings."""
    found: dict[str, Any] = {name: given.integer(name) for name in given.names() if name not in ("plan", "readings")}
    if "readings" in given:
        found["readings"] = given.number("readings", 0.0)
    if found and not {"budget", "planned", "peak"} <= found.keys():
        raise ValueError(f"{given.where} lacks budget, planned or peak")
    if "plan" in given:
        lines = [pair if isinstance(pair, list) and len(pair) == 2 else [None, None] for pair in given.list("plan")]
        plan = [Fields({"what": what, "bytes": size}, f"{given.where}, plan") for what, size in lines]
        found["plan"] = [[line.text("what"), line.integer("bytes")] for line in plan]
    return found


def certificate_from(given: Fields) -> Certificate:
    """The certificate that asdict turned into JSON. ValueError for impossible numbers."""
    reason = given.text("stop_reason", list(StopReason))
    tolerances = {name: None if given.is_null(name) else given.number(name, 0.0) for name in ("tol", "tol_relative")}
    return Certificate(
        primal=given.number("primal"),
        lower_bound=given.number("lower_bound"),
        c_bar=given.number("c_bar", sys.float_info.min),
        tol=tolerances["tol"],
        tol_relative=tolerances["tol_relative"],
        converged=given.flag("converged"),
        stop_reason=StopReason(reason),
        unit=given.number("unit", sys.float_info.min) if "unit" in given else 1.0,  # older files have neither
        raised=given.number("raised", 0.0) if "raised" in given else 0.0,
        detail=given.text("detail") if "detail" in given else "",
        equal=given.flag("equal") if "equal" in given else False,
    )


def witness_from(a: np.ndarray, given: Fields) -> Witness:
    """The witness of slope `a` whose `stated` turned into JSON."""
    slope, offset = given.numbers("error", 2)
    return Witness(a, given.number("b"), CutError(slope, offset))


def class_labels(given: Fields) -> tuple[float, ...]:
    """K labels, increasing: they are searched by bisection."""
    labels = given.numbers("labels")
    if any(b <= a for a, b in pairwise(labels)):
        raise given.wrong("labels", "increasing numbers")
    return labels


def kernel_from(given: Fields) -> Kernel:
    """The kernel that Kernel.as_dict turned into JSON."""
    name = given.text("name", KERNELS)
    numbers = {key: given.number(key) for key in ("gamma", "coef0") if key in given}
    degree = {"degree": given.integer("degree", 1, _DEGREE)} if "degree" in given else {}
    given.expect_only(["name", *numbers, *degree])
    try:
        return Kernel(name, **numbers, **degree)  # type: ignore[arg-type]
    except UsageError as error:
        raise ValueError(f"{given.where}: {error}") from None


def link_from(given: Fields) -> Link:
    """The link that asdict turned into JSON."""
    if "A" in given:
        return Sigmoid(given.number("A"), given.number("B"), given.integer("rows"))
    return Softmax(given.number("scale"), given.numbers("offsets", 0), given.integer("rows"))


def checked(arrays: dict[str, np.ndarray], name: str, *shape: int) -> np.ndarray:
    """The array `name` of a model file: finite float64 of this shape, or ValueError."""
    array = arrays[name]
    if array.dtype != np.float64 or array.shape != shape or not np.isfinite(array).all():
        expected = " × ".join(f"{size:,}" for size in shape)
        raise ValueError(f"{name} is {array.dtype} {array.shape}, expected {expected} finite float64")
    return array
