"""Export to ONNX, for runtimes on many languages and machines."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamcut.errors import UsageError
from streamcut.exports.linear_form import LinearForm, linear_form
from streamcut.models.link import OwnLink, Sigmoid, Softmax
from streamcut.models.model import Model

_OPSET, _IR = 13, 8  # of 2020: for old and new runtimes


def onnx_graph(model: Model, link: OwnLink | None) -> bytes:
    """A graph with the input X, float64 (n, n_features).

    Outputs of classifiers: `label` (n,), int64 where all are whole numbers, else float64 or text; and `probabilities`, float64
    (n, K), or `scores`, (n,) for two classes and (n, K) for more, if there are none. For others: `answer`, float64 (n,), the
    numbers of a regression, the scores of a ranking. Raises UsageError when onnx is not installed, and for models without a
    linear form.
    """
    form = linear_form(model, "ONNX", link)
    try:
        import onnx
    except ImportError:
        raise UsageError("ONNX needs a package of that name: pip install 'streamcut[onnx]'") from None
    graph = _Graph(onnx)
    products = graph.node("MatMul", graph.take("X", model.n_features), graph.constant(form.weights.T))
    all_scores = graph.node("Add", products, graph.constant(form.intercepts))
    several = len(form.weights) > 1
    scores = all_scores if several else graph.node("Reshape", all_scores, graph.constant(np.array([-1])))
    outputs = [("answer", graph.node("Exp", scores) if form.exponential else scores, np.dtype(float), 1)]
    if form.labels is not None:
        label, kind = _label(graph, form, scores, several)
        rest = ("scores", scores) if form.link is None else ("probabilities", _probabilities(graph, form.link, all_scores))
        wide = several or form.link is not None
        outputs = [("label", label, kind, 1), (*rest, np.dtype(float), 2 if wide else 1)]
    return graph.written(outputs)


def _label(graph: _Graph, form: LinearForm, scores: str, several: bool) -> tuple[str, np.dtype]:
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


def _probabilities(graph: _Graph, link: OwnLink, scores: str) -> str:
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


class _Graph:
    """A graph that grows node by node."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._names = 0

    def take(self, name: str, width: int) -> str:
        """An input, float64 (n, width)."""
        self._inputs.append(self.onnx.helper.make_tensor_value_info(name, self._type(np.dtype(float)), ["n", width]))
        return name

    def constant(self, values: np.ndarray) -> str:
        """A constant tensor."""
        name = self._name()
        values = values.astype(object) if values.dtype.kind == "U" else np.ascontiguousarray(values)
        self._constants.append(self.onnx.numpy_helper.from_array(values, name))
        return name

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """The output of an operator."""
        name = self._name()
        self._nodes.append(self.onnx.helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def written(self, outputs: list[tuple[str, str, np.dtype, int]]) -> bytes:
        """The model with `outputs`: (name, tensor, type, number of dimensions)."""
        helper = self.onnx.helper
        named = [helper.make_node("Identity", [tensor], [name]) for name, tensor, *_ in outputs]
        shapes = {1: ["n"], 2: ["n", "classes"]}
        told = [helper.make_tensor_value_info(name, self._type(kind), shapes[dims]) for name, _, kind, dims in outputs]
        graph = helper.make_graph([*self._nodes, *named], "streamcut", self._inputs, told, self._constants)
        sets = [helper.make_operatorsetid("", _OPSET)]
        model = helper.make_model(graph, producer_name="streamcut", ir_version=_IR, opset_imports=sets)
        self.onnx.checker.check_model(model)
        return model.SerializeToString()

    def _name(self) -> str:
        self._names += 1
        return f"t{self._names}"

    def _type(self, kind: np.dtype) -> Any:
        kinds = self.onnx.TensorProto
        return {"f": kinds.DOUBLE, "i": kinds.INT64, "U": kinds.STRING}[kind.kind]
