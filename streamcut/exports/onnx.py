"""Export to ONNX, which runtimes for many languages and machines score."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamcut.errors import UsageError
from streamcut.exports.linear_form import LinearForm, linear_form
from streamcut.models.link import OwnLink, Sigmoid, Softmax
from streamcut.models.model import Model

_OPSET, _IR = 13, 8  # of 2020: runtimes of today and of then


def onnx_graph(model: Model, link: OwnLink | None) -> bytes:
    """A graph with the input X, float64 (n, n_features), and these outputs.

    Classifiers: `label` (n,), int64 where all are whole numbers, else float64 or text; and `probabilities`, float64 (n, K), or
    `scores`, (n,) of two classes and (n, K) of more, where there are none. Others: `answer`, float64 (n,): the numbers of a
    regression, the scores of a ranking. Raises UsageError when onnx is not installed, and for models without a linear form.
    """
    form = linear_form(model, "ONNX", link)
    try:
        import onnx
    except ImportError:
        raise UsageError("ONNX needs a package of that name: pip install 'streamcut[onnx]'") from None
    graph = _Graph(onnx)
    graph.constant("weights", np.ascontiguousarray(form.weights.T))
    graph.constant("intercepts", form.intercepts)
    all_scores = graph.node("Add", graph.node("MatMul", "X", "weights"), "intercepts")
    several = len(form.weights) > 1
    scores = all_scores if several else graph.node("Reshape", all_scores, graph.constant("flat", np.array([-1])))
    outputs = [("answer", graph.node("Exp", scores) if form.exponential else scores, np.dtype(float), 1)]
    if form.labels is not None:
        label, kind = _label(graph, form, scores, several)
        rest = ("scores", scores) if form.link is None else ("probabilities", _probabilities(graph, form.link, all_scores))
        wide = several or form.link is not None
        outputs = [("label", label, kind, 1), (*rest, np.dtype(float), 2 if wide else 1)]
    return graph.written(model.n_features, outputs)


def _label(graph: _Graph, form: LinearForm, scores: str, several: bool) -> tuple[str, np.dtype]:
    """The tensor of the labels, and its type."""
    assert form.labels is not None
    labels = form.labels
    if labels.dtype.kind == "f" and (labels == labels.astype(np.int64)).all():
        labels = labels.astype(np.int64)
    if several:
        number = graph.node("ArgMax", scores, axis=1, keepdims=0)
    else:
        positive = graph.node("Greater", scores, graph.constant("zero", np.zeros(1)))
        number = graph.node("Cast", positive, to=graph.onnx.TensorProto.INT64)
    return graph.node("Gather", graph.constant("labels", labels), number), labels.dtype


def _probabilities(graph: _Graph, link: OwnLink, scores: str) -> str:
    """What `link` makes of scores (n, K), in graphs: (n, K), of two classes (n, 2)."""
    if isinstance(link, Sigmoid):
        logit = graph.node("Add", graph.node("Mul", scores, graph.constant("A", np.array([-link.A]))),
                           graph.constant("B", np.array([-link.B])))  # fmt: skip
        return graph.node("Concat", graph.node("Sigmoid", graph.node("Neg", logit)), graph.node("Sigmoid", logit), axis=1)
    if isinstance(link, Softmax):
        scaled = graph.node("Mul", scores, graph.constant("scale", np.array([link.scale])))
        if link.offsets:
            scaled = graph.node("Add", scaled, graph.constant("offsets", np.array(link.offsets)))
        return graph.node("Softmax", scaled, axis=1)
    # parts of 1 / (1 + exp(−s)): of its logarithm, min(s, 0) − log(1 + exp(−|s|)), which does not underflow
    tail = graph.node("Exp", graph.node("Neg", graph.node("Abs", scores)))
    log_part = graph.node("Log", graph.node("Add", tail, graph.constant("one", np.ones(1))))
    low = graph.node("Min", scores, graph.constant("none", np.zeros(1)))
    return graph.node("Softmax", graph.node("Sub", low, log_part), axis=1)


class _Graph:
    """A graph that grows node by node; tensors are named by their numbers."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def constant(self, name: str, values: np.ndarray) -> str:
        self._constants.append(
            self.onnx.numpy_helper.from_array(values if values.dtype.kind != "U" else values.astype(object), name)
        )
        return name

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        name = f"t{len(self._nodes)}"
        self._nodes.append(self.onnx.helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def written(self, n_features: int, outputs: list[tuple[str, str, np.dtype, int]]) -> bytes:
        """The model with `outputs`: (name, tensor, type, number of dimensions)."""
        helper, kinds = self.onnx.helper, self.onnx.TensorProto
        types = {"f": kinds.DOUBLE, "i": kinds.INT64, "U": kinds.STRING}
        named = [helper.make_node("Identity", [tensor], [name]) for name, tensor, *_ in outputs]
        shapes = {1: ["n"], 2: ["n", "classes"]}
        told = [helper.make_tensor_value_info(name, types[kind.kind], shapes[dims]) for name, _, kind, dims in outputs]
        given = [helper.make_tensor_value_info("X", kinds.DOUBLE, ["n", n_features])]
        graph = helper.make_graph([*self._nodes, *named], "streamcut", given, told, self._constants)
        model = helper.make_model(
            graph, producer_name="streamcut", ir_version=_IR, opset_imports=[helper.make_operatorsetid("", _OPSET)]
        )
        self.onnx.checker.check_model(model)
        return model.SerializeToString()
