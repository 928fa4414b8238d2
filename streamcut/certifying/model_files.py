"""Files of linear models as problems: ours, LIBLINEAR's text, our JSON. Nothing is unpickled."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from streamcut.certifying.foreign import Foreign, intercept_of
from streamcut.errors import CorruptError, UsageError
from streamcut.foundation.opened import read_file, readable
from streamcut.io.places.remote import is_url, read_object, size_of
from streamcut.loss_table import JOINT_LOSSES

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


def read_foreign(path: str, expect: Callable[[int], None] = lambda size: None) -> Foreign:
    """What is said in the file `path` of another program; `expect` is called with the bytes needed before they are allocated.

    Raises UsageError for files that certify does not read, CorruptError for a damaged one, NotFoundError.
    """
    size = size_of(path) if is_url(path) else os.path.getsize(path)
    expect(_TIMES * (size or 0))
    content = read_object(path) if is_url(path) else read_file(path)
    with readable(path, CorruptError, "not a well-formed model"):
        if content.startswith(b"solver_type "):
            return _liblinear(path, content.decode("ascii"))
        if content.lstrip()[:1] == b"{":
            return _json(path, json.loads(content), expect)
    raise UsageError(
        f"{path} is not a linear model that certify reads: a model of streamcut, LIBLINEAR's text, or the JSON of `export`; "
        "an estimator of scikit-learn is certified in Python, by streamcut.certify(estimator, data)"
    )


def _liblinear(path: str, text: str) -> Foreign:
    head, _, body = text.partition("\nw\n")
    header = {name: rest for name, _, rest in (line.partition(" ") for line in head.split("\n"))}
    solver = header["solver_type"]
    if solver not in _LIBLINEAR:
        raise UsageError(f"{path}: solver_type {solver} is not ½‖w‖² and a loss of rows; these are: {', '.join(_LIBLINEAR)}")
    loss, numbers = _LIBLINEAR[solver], [float(word) for word in header.get("label", "").split()]
    bias, d = float(header["bias"]), int(header["nr_feature"])
    joint, has_bias = loss in JOINT_LOSSES, bias >= 0.0
    scores = len(numbers) if len(numbers) > 2 or joint else 1
    values = np.array(body.split(), np.float64)
    if len(values) != (d + has_bias) * scores or not 0 <= d < _MOST_FEATURES:
        each = f" of {scores} classes" if scores > 1 else ""
        raise CorruptError(f"{path}: {len(values):,} weights for {d:,} features{' and a bias' * has_bias}{each}")
    W = values.reshape(-1, scores)
    intercepts = W[d] * bias if has_bias else np.zeros(scores)
    said: dict[str, Any] = {"loss": loss, **intercept_of(max(bias, 0.0))}
    return _made(path, W[:d], intercepts, numbers[::-1] if scores == 1 else numbers, said)


def _json(path: str, record: Any, expect: Callable[[int], None]) -> Foreign:
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
    labels = np.array(record.get("labels") or [], np.float64)
    if K > 1 and len(labels) != K:
        raise UsageError(f"{path} has {K} scores per row, but no numbers as their labels")
    return _made(path, w, np.array(intercepts), labels.tolist(), {})


def _made(path: str, W: np.ndarray, intercepts: np.ndarray, labels: list[float], said: dict[str, Any]) -> Foreign:
    """The model of weights (d, K); labels (negative, positive) of one score, or one for each."""
    if len(intercepts) == 1:
        if len(labels) not in (0, 2):
            raise CorruptError(f"{path}: one score per row, but {len(labels)} labels; two classes have two, numbers none")
        return Foreign(path, W[:, 0].copy(), float(intercepts[0]), said | {"labels": tuple(labels) or None})
    order = np.argsort(labels)
    return Foreign(path, np.ascontiguousarray(W[:, order]), intercepts[order], said | {"labels": tuple(sorted(labels))})
