"""Export to ONNX, for runtimes on many languages and machines."""

from __future__ import annotations

import numpy as np

from streamcut.errors import UsageError
from streamcut.exports.linear_form import LinearForm, linear_form
from streamcut.exports.onnx_columns import Graph, scores_of_columns
from streamcut.exports.raw_form import raw_form
from streamcut.models.link import OwnLink, Sigmoid, Softmax
from streamcut.models.model import Model


def onnx_graph(model: Model, link: OwnLink | None) -> bytes:
    """A graph with the input X, float64 (n, n_features), or with one for each column of a table (`scores_of_columns`).

    Outputs of classifiers: `label` (n,), int64 where all are whole numbers, else float64 or text; and `probabilities`, float64
    (n, K), or `scores`, (n,) for two classes and (n, K) for more, if there are none. For others: `answer`, float64 (n,), the
    numbers of a regression, the scores of a ranking. Raises UsageError when onnx is not installed, for models without a linear
    form, and, naming it, for a column that it cannot take.
    """
    form = linear_form(model, "ONNX", link)
    try:
        import onnx
    except ImportError:
        raise UsageError("ONNX needs a package of that name: pip install 'streamcut[onnx]'") from None
    raw = raw_form(model, form, "onnx")
    graph = Graph(onnx)
    intercepts = graph.constant(form.intercepts)
    if raw is None:
        graph.take("X", np.dtype(float), model.n_features)
        all_scores = graph.node("Add", graph.node("MatMul", "X", graph.constant(form.weights.T)), intercepts)
    else:
        all_scores = graph.node("Add", scores_of_columns(graph, raw), intercepts)
    several = len(form.weights) > 1
    scores = all_scores if several else graph.node("Reshape", all_scores, graph.constant(np.array([-1])))
    outputs = [("answer", graph.node("Exp", scores) if form.exponential else scores, np.dtype(float), 1)]
    if form.labels is not None:
        label, kind = _label(graph, form, scores, several)
        rest = ("scores", scores) if form.link is None else ("probabilities", _probabilities(graph, form.link, all_scores))
        wide = several or form.link is not None
        outputs = [("label", label, kind, 1), (*rest, np.dtype(float), 2 if wide else 1)]
    return graph.written(outputs)


def _label(graph: Graph, form: LinearForm, scores: str, several: bool) -> tuple[str, np.dtype]:
    """The tensor of the labels, and its type."""
    assert form.labels is not None
    labels = form.labels
    if labels.dtype.kind == "f" and (labels == labels.astype(np.int64)).all():
        labels = labels.astype(np.int64)
    if several:
        number = graph.node("ArgMax", scores, axis=1, keepdims=0)
    else:
        positive = graph.node("Greater", scores, graph.constant(np.zeros(1)))
        number = graph.node("Cast", positive, to=graph.onnx.TensorProto.INT64)
    return graph.node("Gather", graph.constant(labels), number), labels.dtype


def _probabilities(graph: Graph, link: OwnLink, scores: str) -> str:
    """The nodes that apply `link` to scores (n, K): (n, K), for two classes (n, 2)."""
    if isinstance(link, Sigmoid):
        logit = graph.node("Add", graph.node("Mul", scores, graph.constant(np.array([-link.A]))),
                           graph.constant(np.array([-link.B])))  # fmt: skip
        return graph.node("Concat", graph.node("Sigmoid", graph.node("Neg", logit)), graph.node("Sigmoid", logit), axis=1)
    if isinstance(link, Softmax):
        scaled = graph.node("Mul", scores, graph.constant(np.array([link.scale])))
        if link.offsets:
            scaled = graph.node("Add", scaled, graph.constant(np.array(link.offsets)))
        return graph.node("Softmax", scaled, axis=1)
    # parts of 1 / (1 + exp(−s)): of its logarithm, min(s, 0) − log(1 + exp(−|s|)), which does not underflow
    tail = graph.node("Exp", graph.node("Neg", graph.node("Abs", scores)))
    log_part = graph.node("Log", graph.node("Add", tail, graph.constant(np.ones(1))))
    low = graph.node("Min", scores, graph.constant(np.zeros(1)))
    return graph.node("Softmax", graph.node("Sub", low, log_part), axis=1)
