"""ONNX graphs, and the columns of a table in them."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamcut.errors import UsageError
from streamcut.exports.raw_form import Category, Coding, Cross, Number, RawForm
from streamcut.io.recipe.table import BOOLEAN, BOOLEANS
from streamcut.io.tables.values import is_number

_OPSET, _OPSET_ML, _IR = 13, 2, 8  # of 2020: for old and new runtimes
_MOST_NUMBERS = 4096  # categories that are numbers: each value is compared with all of them
_MOST_CODES = 1 << 53  # value combinations of a cross
_OUTPUTS = ("label", "scores", "probabilities", "answer")


class Graph:
    """A graph that grows node by node; tensors have names that no column has."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._given: list[Any] = []
        self._names = 0

    def take(self, name: str, kind: np.dtype, width: int | None = None) -> str:
        """An input of n values, or (n, width)."""
        shape = ["n"] if width is None else ["n", width]
        self._given.append(self.onnx.helper.make_tensor_value_info(name, self._type(kind), shape))
        return name

    def constant(self, values: np.ndarray) -> str:
        """A constant tensor."""
        name = self._name()
        values = values.astype(object) if values.dtype.kind == "U" else np.ascontiguousarray(values)
        self._constants.append(self.onnx.numpy_helper.from_array(values, name))
        return name

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """The output of an operator; `domain` among the attributes is the operator's domain."""
        name = self._name()
        self._nodes.append(self.onnx.helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def written(self, outputs: list[tuple[str, str, np.dtype, int]]) -> bytes:
        """The model with `outputs`: (name, tensor, type, number of dimensions)."""
        helper = self.onnx.helper
        named = [helper.make_node("Identity", [tensor], [name]) for name, tensor, *_ in outputs]
        shapes = {1: ["n"], 2: ["n", "classes"]}
        told = [helper.make_tensor_value_info(name, self._type(kind), shapes[dims]) for name, _, kind, dims in outputs]
        graph = helper.make_graph([*self._nodes, *named], "streamcut", self._given, told, self._constants)
        sets = [helper.make_operatorsetid("", _OPSET)]
        if any(node.domain for node in self._nodes):
            sets.append(helper.make_operatorsetid("ai.onnx.ml", _OPSET_ML))
        model = helper.make_model(graph, producer_name="streamcut", ir_version=_IR, opset_imports=sets)
        self.onnx.checker.check_model(model)
        return model.SerializeToString()

    def _name(self) -> str:
        self._names += 1
        return f"\x1f{self._names}"  # no column has such a name

    def _type(self, kind: np.dtype) -> Any:
        kinds = self.onnx.TensorProto
        return {"f": kinds.DOUBLE, "i": kinds.INT64, "U": kinds.STRING}[kind.kind]


def scores_of_columns(graph: Graph, raw: RawForm) -> str:
    """The scores without intercepts, float64 (n, K), of rows whose columns become inputs.

    Numbers, categories that are numbers, and booleans (1 and 0) are float64 (n), NaN where they are missing; texts are strings,
    "" if missing. If training refused missing values, rows with one get NaN. Raises UsageError.
    """
    columns = _Columns(graph, raw)
    terms = [columns.term(part) for part in raw.parts]
    total = terms[0]
    for term in terms[1:]:
        total = graph.node("Add", total, term)
    return total


class _Columns:
    def __init__(self, graph: Graph, raw: RawForm) -> None:
        self.graph, self.raw = graph, raw
        self._texts = {each.column for part in raw.parts for each in _codings(part) if _is_text(each)}
        for name in raw.columns:
            if name in _OUTPUTS or "\x1f" in name or not name:
                raise UsageError(f"onnx: a column cannot be called {name!r}, as an output of the graph is; rename it")
            graph.take(name, np.dtype(str) if name in self._texts else np.dtype(float))

    def term(self, part: Number | Category | Cross) -> str:
        """The contribution of a part to the scores, (n, K)."""
        graph, raw = self.graph, self.raw
        if isinstance(part, Number):
            x, missing = self._number(part.column)
            scaled = graph.node("Div", graph.node("Sub", x, self._all(part.centre)), self._all(part.spread))
            return self._or_absent(missing, graph.node("MatMul", scaled, graph.constant(raw.weight(part.feature)[None, :])), part)
        features = part.features if isinstance(part, Category) else [each for each in part.features.values() if each >= 0]
        weights = np.array([raw.weight(-1), *(raw.weight(feature) for feature in features)])
        if isinstance(part, Cross):
            return self._gathered(self._of_cross(part), weights)
        coding = part.coding
        if not _is_text(coding):
            return self._or_absent(self._number(coding.column)[1], self._gathered(self._code(coding), weights), part)
        absent = np.full(weights.shape[1], np.nan) if raw.missing == "error" else raw.weight(part.absent)
        return self._gathered(self._code(coding, missing=len(weights)), np.vstack([weights, absent]))

    def _or_absent(self, missing: str, term: str, part: Number | Category) -> str:
        absent = self.raw.weight(part.absent)
        absent = np.full_like(absent, np.nan) if self.raw.missing == "error" else absent
        return self.graph.node("Where", missing, self.graph.constant(absent[None, :]), term)

    def _gathered(self, codes: str, weights: np.ndarray) -> str:
        return self.graph.node("Gather", self.graph.constant(weights), codes)

    def _number(self, column: str) -> tuple[str, str]:
        """(the values, 0 where missing; which are missing), (n, 1)."""
        graph = self.graph
        x = graph.node("Unsqueeze", column, graph.constant(np.array([1])))
        missing = graph.node("IsNaN", x)
        return graph.node("Where", missing, self._all(0.0), x), missing

    def _code(self, coding: Coding, missing: int = 0) -> str:
        """int64 (n): codes from 1 for the words of a coding, 0 for other values, `missing` for missing ones."""
        graph, ml = self.graph, "ai.onnx.ml"
        if _is_text(coding):
            keys, codes = ["", *coding.words], [missing, *range(1, len(coding.words) + 1)]
            return graph.node("LabelEncoder", coding.column, domain=ml, keys_strings=keys, values_int64s=codes, default_int64=0)
        x, absent = self._number(coding.column)
        if coding.edges is not None:
            reached = graph.node("GreaterOrEqual", x, graph.constant(np.array([coding.edges])))
            number = self._cast(graph.node("MatMul", self._cast(reached, float), self._all(1.0, len(coding.edges), 1)), int)
            code = graph.node("Add", number, graph.constant(np.array([[1]])))
        else:
            numbers = [_as_number(coding, word) for word in coding.words]
            if len(numbers) > _MOST_NUMBERS:
                raise UsageError(
                    f"onnx: column {coding.column!r} has {len(numbers):,} categories that are numbers; make it one of texts"
                )
            same = self._cast(graph.node("Equal", x, graph.constant(np.array([numbers]))), float)
            code = self._cast(graph.node("MatMul", same, graph.constant(np.arange(1.0, len(numbers) + 1)[:, None])), int)
        code = graph.node("Where", absent, graph.constant(np.array([[missing]])), code)
        return graph.node("Squeeze", code, graph.constant(np.array([1])))

    def _of_cross(self, part: Cross) -> str:
        """int64 (n): codes from 1 for the combinations that have a feature, else 0."""
        graph = self.graph
        sizes = [len(coding.words) + 1 for coding in part.codings]
        if np.prod(np.array(sizes, float)) > _MOST_CODES:
            raise UsageError(f"onnx: the cross {'*'.join(c.column for c in part.codings)} has too many combinations of values")
        strides = [int(np.prod(sizes[i + 1 :])) for i in range(len(sizes))]
        total = ""
        for coding, stride in zip(part.codings, strides, strict=True):
            code = graph.node("Mul", self._code(coding), graph.constant(np.array([stride])))
            total = graph.node("Add", total, code) if total else code
        known = [codes for codes, feature in part.features.items() if feature >= 0]
        keys = [sum((code + 1) * stride for code, stride in zip(codes, strides, strict=True)) for codes in known]
        values = list(range(1, len(keys) + 1))
        return graph.node(
            "LabelEncoder", total, domain="ai.onnx.ml", keys_int64s=keys or [-1], values_int64s=values or [0], default_int64=0
        )

    def _cast(self, tensor: str, kind: type) -> str:
        kinds = self.graph.onnx.TensorProto
        return self.graph.node("Cast", tensor, to=kinds.DOUBLE if kind is float else kinds.INT64)

    def _all(self, value: float, *shape: int) -> str:
        return self.graph.constant(np.full(shape or (1, 1), value))


def _codings(part: Number | Category | Cross) -> tuple[Coding, ...]:
    return () if isinstance(part, Number) else (part.coding,) if isinstance(part, Category) else part.codings


def _is_text(coding: Coding) -> bool:
    return coding.edges is None and not coding.numbers and coding.type != BOOLEAN


def _as_number(coding: Coding, word: str) -> float:
    """NaN, which equals nothing, for a word in a column of another type."""
    if coding.type == BOOLEAN:
        return float(BOOLEANS[word] == "true") if word in BOOLEANS else np.nan
    return float(word) if is_number(word) else np.nan
