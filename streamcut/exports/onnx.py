"""Export to ONNX, for runtimes on many languages and machines."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamcut.errors import UsageError
from streamcut.exports.export import LinearForm
from streamcut.models.link import OwnLink, Sigmoid, SoftmaxLink
from streamcut.models.model import Model

_OPSET, _IR = 13, 8  # of 2020: for old and new runtimes


def content(model: Model, form: LinearForm) -> bytes:
    """A graph with the input X, float64 (n, n_features).

    Outputs of classifiers: `label` (n,), int64 where all are whole numbers, else float64 or text; and `probabilities`, float64
    (n, K), or `scores`, (n,) for two classes and (n, K) for more, if there are none. For others: `answer`, float64 (n,), the
    numbers of a regression, the scores of a ranking. Raises UsageError when onnx is not installed.
    """
    try:
        import onnx
    except ImportError:
        raise UsageError("ONNX needs a package of that name: pip install 'streamcut[onnx]'") from None
    helper, kinds, nodes, constants = onnx.helper, onnx.TensorProto, list[Any](), list[Any]()

    def constant(values: Any) -> str:
        values = np.asarray(values)
        values = values.astype(object) if values.dtype.kind == "U" else np.ascontiguousarray(values)
        constants.append(onnx.numpy_helper.from_array(values, f"c{len(constants)}"))
        return constants[-1].name

    def node(operator: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        nodes.append(helper.make_node(operator, list(inputs), [name or f"t{len(nodes)}"], **attributes))
        return nodes[-1].output[0]

    def output(name: str, tensor: str, kind: int, *shape: Any) -> Any:
        return helper.make_tensor_value_info(node("Identity", tensor, name=name), kind, ["n", *shape])

    columns = node("Add", node("MatMul", "X", constant(form.weights.T)), constant(form.intercepts))
    several = len(form.weights) > 1
    scores = columns if several else node("Reshape", columns, constant([-1]))
    if form.labels is None:
        outputs = [output("answer", node("Exp", scores) if form.exponential else scores, kinds.DOUBLE)]
    else:
        labels = form.labels
        if labels.dtype.kind == "f" and (labels == labels.astype(np.int64)).all():
            labels = labels.astype(np.int64)
        if several:
            number = node("ArgMax", scores, axis=1, keepdims=0)
        else:
            number = node("Cast", node("Greater", scores, constant([0.0])), to=kinds.INT64)
        kind = {"f": kinds.DOUBLE, "i": kinds.INT64, "U": kinds.STRING}[labels.dtype.kind]
        outputs = [output("label", node("Gather", constant(labels), number), kind)]
        if form.link is not None:
            outputs.append(output("probabilities", _probabilities(node, constant, form.link, columns), kinds.DOUBLE, "classes"))
        else:
            outputs.append(output("scores", scores, kinds.DOUBLE, *(["classes"] if several else [])))
    taken = helper.make_tensor_value_info("X", kinds.DOUBLE, ["n", model.n_features])
    graph = helper.make_graph(nodes, "streamcut", [taken], outputs, constants)
    sets = [helper.make_operatorsetid("", _OPSET)]
    made = helper.make_model(graph, producer_name="streamcut", ir_version=_IR, opset_imports=sets)
    onnx.checker.check_model(made)
    return made.SerializeToString()


def _probabilities(node: Any, constant: Any, link: OwnLink, scores: str) -> str:
    """The nodes that apply `link` to scores (n, K): (n, K), for two classes (n, 2)."""
    if isinstance(link, Sigmoid):
        logit = node("Add", node("Mul", scores, constant([-link.A])), constant([-link.B]))
        return node("Concat", node("Sigmoid", node("Neg", logit)), node("Sigmoid", logit), axis=1)
    if isinstance(link, SoftmaxLink):
        scaled = node("Mul", scores, constant([link.scale]))
        return node("Softmax", node("Add", scaled, constant(link.offsets)) if link.offsets else scaled, axis=1)
    # shares of 1 / (1 + exp(−s)): of its logarithm, min(s, 0) − log(1 + exp(−|s|)), which does not underflow
    tail = node("Exp", node("Neg", node("Abs", scores)))
    log_part = node("Log", node("Add", tail, constant([1.0])))
    return node("Softmax", node("Sub", node("Min", scores, constant([0.0])), log_part), axis=1)
