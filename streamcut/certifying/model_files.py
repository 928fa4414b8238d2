"""Files of linear models as problems: ours, LIBLINEAR's text, Vowpal Wabbit's, our JSON, ONNX. Nothing is unpickled."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from streamcut.certifying.estimators import problem_of_ours
from streamcut.certifying.problem import Problem
from streamcut.certifying.wabbit import wabbit
from streamcut.errors import CorruptError, UsageError
from streamcut.foundation.opened import opened_file, readable
from streamcut.io.places.remote import is_url, read_object, size_of
from streamcut.models.files import is_model, load_model

_LIBLINEAR = {
    "L2R_LR": "logistic",
    "L2R_LR_DUAL": "logistic",
    "L2R_L2LOSS_SVC": "squared-hinge",
    "L2R_L2LOSS_SVC_DUAL": "squared-hinge",
    "L2R_L1LOSS_SVC_DUAL": "hinge",
    "L2R_L2LOSS_SVR": "squared-epsilon-insensitive",
    "L2R_L2LOSS_SVR_DUAL": "squared-epsilon-insensitive",
    "L2R_L1LOSS_SVR_DUAL": "epsilon-insensitive",
}
_MOST_FEATURES = 1 << 31
_TIMES = 8  # the size of a file: what its text takes as objects


def read_problem(path: str, expect: Callable[[int], None] = lambda size: None, index_base: int | None = None) -> Problem:
    """The problem in the model file `path`; `expect` is called with the bytes that it takes before it takes them.

    index_base   the number of the first feature in the rows that Vowpal Wabbit read; None: 1

    Raises UsageError for what is none that certify reads, CorruptError for a damaged one, NotFoundError.
    """
    if is_model(path):
        return problem_of_ours(load_model(path, expect), path)
    if index_base not in (None, 0, 1):
        raise UsageError(f"index base {index_base}: features are counted from 0 or from 1")
    size = size_of(path) if is_url(path) else os.path.getsize(path)
    expect(_TIMES * (size or 0))
    if is_url(path):
        content = read_object(path)
    else:
        with opened_file(path) as file:
            content = file.read()
    with readable(path, CorruptError, "not a well-formed model"):
        if index_base is not None and not _is_wabbit(content):
            raise UsageError("an index base is for models of Vowpal Wabbit; others say where they begin")
        if content.startswith(b"solver_type "):
            return _liblinear(path, content.decode("ascii"))
        if content.lstrip()[:1] == b"{":
            return _json(path, json.loads(content), expect)
        if _is_wabbit(content):
            return wabbit(path, content.decode("ascii"), 1 if index_base is None else index_base, expect)
        if content.startswith((b"\x80", b"PK")):
            raise UsageError(f"{path} looks like a pickle, which is never opened; in Python: streamcut.certify(estimator, data)")
        return _onnx(path, content)


def _is_wabbit(content: bytes) -> bool:
    return content.startswith(b"Version ") and b"Min label" in content[:200]


def _liblinear(path: str, text: str) -> Problem:
    head, _, body = text.partition("\nw\n")
    said = {name: rest for name, _, rest in (line.partition(" ") for line in head.split("\n"))}
    solver = said["solver_type"]
    if solver not in _LIBLINEAR:
        raise UsageError(f"{path}: solver_type {solver} is not ½‖w‖² and a loss of rows; these are: {', '.join(_LIBLINEAR)}")
    labels = None
    if "label" in said:
        numbers = [float(word) for word in said["label"].split()]
        if len(numbers) != 2:
            raise UsageError(f"{path} has {len(numbers)} classes; certify takes two")
        labels = (numbers[1], numbers[0])
    bias, d = float(said["bias"]), int(said["nr_feature"])
    values = np.array(body.split(), np.float64)
    has_bias = bias >= 0.0
    if len(values) != d + has_bias or not 0 <= d < _MOST_FEATURES:
        raise CorruptError(f"{path}: {len(values):,} weights for {d:,} features{' and a bias' * has_bias}")
    intercept = float(values[d]) * bias if has_bias else 0.0
    return Problem(values[:d].copy(), intercept, path, loss=_LIBLINEAR[solver], fit=max(bias, 0.0), labels=labels)


def _json(path: str, record: Any, expect: Callable[[int], None]) -> Problem:
    """What `export --to json` writes, or the same by hand: features (from 0), weights (a list of one for each), intercepts."""
    if record.get("recipe") is not None:
        raise UsageError(f"{path} has a recipe for its features; certify the model file that it was made from")
    features = np.array(record["features"], np.int64)
    weights = np.array(record["weights"], np.float64).reshape(len(features), -1)
    d, intercepts = int(record["n_features"]), record["intercepts"]
    if len(intercepts) != 1 or weights.shape[1] not in (0, 1):
        raise UsageError(f"{path} has {len(intercepts)} scores a row; certify takes one")
    if not 0 <= d < _MOST_FEATURES or (len(features) and not 0 <= features.min() <= features.max() < d):
        raise CorruptError(f"{path}: its features are not all below n_features, {d:,}")
    expect(8 * d)
    w = np.zeros(d)
    w[features] = weights.reshape(-1)
    known = record.get("labels")
    labels = None if known is None else (float(known[0]), float(known[1]))
    return Problem(w, float(intercepts[0]), path, labels=labels)


def _onnx(path: str, content: bytes) -> Problem:
    try:
        import onnx
    except ImportError:
        raise UsageError(
            f"{path}: no model of ours, LIBLINEAR or vw, and no JSON; ONNX needs pip install 'streamcut[onnx]'"
        ) from None
    try:
        graph = onnx.load_model_from_string(content).graph
    except Exception as error:  # protobuf's own kinds
        raise UsageError(f"{path}: no linear model that certify reads ({type(error).__name__})") from None
    constants = {each.name: np.asarray(onnx.numpy_helper.to_array(each)) for each in graph.initializer}
    kinds = [node.op_type for node in graph.node]
    for node in graph.node:
        if node.op_type in ("LinearClassifier", "LinearRegressor"):
            if node.input[0] != graph.input[0].name:
                raise UsageError(f"{path}: {kinds[0]} stands before its {node.op_type}; certify the model without it")
            given = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
            return _linear_node(path, node.op_type, given)
    products = list(pairwise(graph.node))
    for product, total in products:
        if (product.op_type, total.op_type) == ("MatMul", "Add") and product.input[0] == graph.input[0].name:
            weights, intercept = constants[product.input[1]], constants[total.input[1]]
            if weights.shape[1:] != (1,) or intercept.size != 1:
                raise UsageError(f"{path} has {weights.shape[-1]} scores a row; certify takes one")
            return _with_labels(path, weights[:, 0], float(intercept.reshape(-1)[0]), constants.get("labels"))
    raise UsageError(f"{path}: no linear model that certify reads; its nodes are {', '.join(dict.fromkeys(kinds)) or 'none'}")


def _linear_node(path: str, kind: str, given: dict[str, Any]) -> Problem:
    intercepts = [float(each) for each in given.get("intercepts", ())]
    outputs = max(1, len(intercepts)) if kind == "LinearClassifier" else int(given.get("targets", 1))
    weights = np.array(given["coefficients"], np.float64).reshape(outputs, -1)
    intercepts = intercepts or [0.0] * outputs
    if outputs == 2 and kind == "LinearClassifier":
        if (weights[0] + weights[1]).any() or intercepts[0] != -intercepts[1]:
            raise UsageError(f"{path}: its two classes have scores of their own; certify takes one score")
    elif outputs != 1:
        raise UsageError(f"{path} has {outputs} scores a row; certify takes one")
    labels = given.get("classlabels_ints")
    return _with_labels(path, weights[-1], intercepts[-1], None if not labels else np.array(labels))


def _with_labels(path: str, weights: np.ndarray, intercept: float, labels: np.ndarray | None) -> Problem:
    known = None
    if labels is not None and labels.dtype.kind in "if":
        known = (float(labels[0]), float(labels[1]))
    if not math.isfinite(intercept):
        raise CorruptError(f"{path}: its intercept is not finite")
    return Problem(np.ascontiguousarray(weights, np.float64), intercept, path, labels=known)
