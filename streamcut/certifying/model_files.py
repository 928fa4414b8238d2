"""Files of linear models as problems: ours, LIBLINEAR's text, Vowpal Wabbit's, our JSON, ONNX. Nothing is unpickled."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from streamcut.certifying.problem import Problem
from streamcut.certifying.wabbit import wabbit
from streamcut.errors import CorruptError, UsageError
from streamcut.foundation.opened import opened_file, readable
from streamcut.io.places.remote import is_url, read_object, size_of
from streamcut.loss_table import JOINT_LOSSES
from streamcut.models.multiclass import ONE_VS_REST

_LIBLINEAR = {
    "L2R_LR": "logistic",
    "L2R_LR_DUAL": "logistic",
    "L2R_L2LOSS_SVC": "squared-hinge",
    "L2R_L2LOSS_SVC_DUAL": "squared-hinge",
    "L2R_L1LOSS_SVC_DUAL": "hinge",
    **{record.liblinear: name for name, record in JOINT_LOSSES.items() if record.liblinear},
    "L2R_L2LOSS_SVR": "squared-epsilon-insensitive",
    "L2R_L2LOSS_SVR_DUAL": "squared-epsilon-insensitive",
    "L2R_L1LOSS_SVR_DUAL": "epsilon-insensitive",
}
_MOST_FEATURES = 1 << 31
_TIMES = 8  # the size of a file: memory of its text as objects


def read_problem(path: str, expect: Callable[[int], None] = lambda size: None, index_base: int | None = None) -> Problem:
    """The problem in the file `path` of another program; `expect` is called with the bytes needed before they are allocated.

    index_base   the number of the first feature in the rows that Vowpal Wabbit read; None: 1

    Raises UsageError for files that certify does not read, CorruptError for a damaged one, NotFoundError.
    """
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
    loss, numbers = _LIBLINEAR[solver], [float(word) for word in said.get("label", "").split()]
    bias, d = float(said["bias"]), int(said["nr_feature"])
    joint, has_bias = loss in JOINT_LOSSES, bias >= 0.0
    scores = len(numbers) if len(numbers) > 2 or joint else 1
    values = np.array(body.split(), np.float64)
    if len(values) != (d + has_bias) * scores or not 0 <= d < _MOST_FEATURES:
        each = f" of {scores} classes" if scores > 1 else ""
        raise CorruptError(f"{path}: {len(values):,} weights for {d:,} features{' and a bias' * has_bias}{each}")
    W = values.reshape(-1, scores)
    intercepts = W[d] * bias if has_bias else np.zeros(scores)
    given: dict[str, Any] = {"loss": loss, "fit": max(bias, 0.0)}
    if scores == 1 and not joint:
        given["labels"] = (numbers[1], numbers[0]) if numbers else None
        return Problem(W[:d, 0].copy(), float(intercepts[0]), path, **given)
    order = np.argsort(numbers)
    given |= {"labels": tuple(sorted(numbers)), "strategy": loss if joint else ONE_VS_REST}
    return Problem(np.ascontiguousarray(W[:d, order]), intercepts[order], path, **given)


def _json(path: str, record: Any, expect: Callable[[int], None]) -> Problem:
    """What `export --to json` writes, or the same by hand: features (from 0), weights (a list of one for each), intercepts."""
    if record.get("recipe") is not None:
        raise UsageError(f"{path} has a recipe for its features; certify the model file that it was made from")
    features = np.array(record["features"], np.int64)
    d, intercepts = int(record["n_features"]), [float(each) for each in record["intercepts"]]
    K = len(intercepts)
    weights = np.array(record["weights"], np.float64).reshape(len(features), K)
    if not 0 <= d < _MOST_FEATURES or (len(features) and not 0 <= features.min() <= features.max() < d):
        raise CorruptError(f"{path}: its features are not all below n_features, {d:,}")
    expect(8 * d * K)
    w = np.zeros((d, K))
    w[features] = weights
    known = record.get("labels")
    return _with_labels(path, w, np.array(intercepts), None if known is None else np.array(known, np.float64))


def _onnx(path: str, content: bytes) -> Problem:
    try:
        import onnx
    except ImportError:
        raise UsageError(
            f"{path}: not a model of streamcut, LIBLINEAR or vw, nor JSON; ONNX needs pip install 'streamcut[onnx]'"
        ) from None
    try:
        graph = onnx.load_model_from_string(content).graph
    except Exception as error:  # protobuf's own kinds
        raise UsageError(f"{path}: not a linear model that certify reads ({type(error).__name__})") from None
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
            weights, intercepts = constants[product.input[1]], constants[total.input[1]].reshape(-1)
            if weights.ndim != 2 or weights.shape[1] != len(intercepts):
                raise UsageError(f"{path} adds {len(intercepts)} intercepts to {weights.shape[-1]} scores a row")
            return _with_labels(path, weights, intercepts, constants.get("labels"))
    raise UsageError(f"{path}: not a linear model that certify reads; its nodes are {', '.join(dict.fromkeys(kinds)) or 'none'}")


def _linear_node(path: str, kind: str, given: dict[str, Any]) -> Problem:
    intercepts = [float(each) for each in given.get("intercepts", ())]
    outputs = max(1, len(intercepts)) if kind == "LinearClassifier" else int(given.get("targets", 1))
    weights = np.array(given["coefficients"], np.float64).reshape(outputs, -1)
    intercepts = intercepts or [0.0] * outputs
    if outputs == 2 and kind == "LinearClassifier":
        if (weights[0] + weights[1]).any() or intercepts[0] != -intercepts[1]:
            raise UsageError(f"{path}: its two classes have scores of their own; certify takes one score")
        weights, intercepts = weights[1:], intercepts[1:]
    elif outputs > 1 and kind != "LinearClassifier":
        raise UsageError(f"{path} has {outputs} numbers a row; certify takes one, or classes")
    labels = given.get("classlabels_ints")
    return _with_labels(path, weights.T, np.array(intercepts), None if not labels else np.array(labels))


def _with_labels(path: str, weights: np.ndarray, intercepts: np.ndarray, labels: np.ndarray | None) -> Problem:
    """The problem with weights (d, 1) and one intercept, or one of each per class, in any order of classes."""
    if not np.isfinite(intercepts).all():
        raise CorruptError(f"{path}: its intercept is not finite")
    known = labels.astype(float) if labels is not None and labels.dtype.kind in "if" else None
    if len(intercepts) == 1:
        two = None if known is None else (float(known[0]), float(known[1]))
        return Problem(np.array(weights[:, 0], np.float64), float(intercepts[0]), path, labels=two)
    if known is None or len(known) != len(intercepts):
        raise UsageError(f"{path} has {len(intercepts)} scores per row, but no numbers as their labels")
    order = np.argsort(known)
    W = np.array(weights[:, order], np.float64, order="C")
    return Problem(W, np.array(intercepts[order], np.float64), path, labels=tuple(known[order].tolist()), strategy=ONE_VS_REST)
