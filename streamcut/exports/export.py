"""Write a linear model in the form of another program: JSON, LIBLINEAR's text, ONNX; see also exports.sklearn."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from dataclasses import replace as replaced
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from streamcut.errors import UsageError
from streamcut.foundation.shown import unknown
from streamcut.io.outputs import output
from streamcut.loss_table import JOINT_LOSSES
from streamcut.models.files import as_model
from streamcut.models.linear import LinearModel
from streamcut.models.link import Odds, OwnLink, Sigmoid, SoftmaxLink
from streamcut.models.model import Model

if TYPE_CHECKING:
    import onnx
    from numpy.typing import ArrayLike

_OPSET, _IR = 13, 8  # of 2020: for old and new runtimes of ONNX


@dataclass(frozen=True, eq=False)
class LinearForm:
    """Scores are X @ weights.T + intercepts.

    weights      float64 (K, n_features); K is 1 for two classes, a ranking or a regression
    intercepts   float64 (K,)
    labels       (K,), or (negative, positive), as the user wrote them: floats or words; None: scores are the answer
    link         turns scores into probabilities; None: there are none
    exponential  the answer is e^score: a mean count
    """

    weights: np.ndarray
    intercepts: np.ndarray
    labels: np.ndarray | None
    link: OwnLink | None
    exponential: bool = False


def linear_form(model: Model, link: OwnLink | None) -> LinearForm:
    """The linear form of `model` with this `link`; raises UsageError when it has none."""
    if not model.of_features or model.whole_groups:
        what = f"task {model.task} by {model.solver}"
        raise UsageError(f"only linear models, with a weight per feature and class, can be exported, not one of {what}")
    labels = None if model.labels is None else np.asarray(model.labels)
    if labels is not None and model.label_names:
        labels = model.in_label_words(labels).astype(str)
    counts = model.problem.loss == "poisson"
    linear = cast(LinearModel, model)  # others have no weights of features
    return LinearForm(np.atleast_2d(linear.weights.T), np.atleast_1d(linear.intercept), labels, link, counts)


def _json(model: Model, form: LinearForm) -> bytes:
    """One JSON object that says how to score a row: score_k = intercepts[k] + Σ_j x[features[j]] · weights[j][k].

    Specified in docs/model-json.md.

    exponential   the answer is e^score: a mean count
    labels        (negative, positive) for one score, else one a score; null: the score is the answer
    features      indices, from 0, of the features that have a weight
    names         their names, if features have names; else left out
    weights       a list of K numbers for each feature
    link          {"A", "B"}: P(positive) = 1 / (1 + exp(A·s + B)); {"scale", "offsets"}: softmax of scale·s + offsets;
                  {"odds": true}: P(k) is the share of 1 / (1 + exp(−s_k)) in their sum; else null
    recipe        how rows become features, as the model keeps it; null: they are numbers as given
    """
    used, link = np.flatnonzero(form.weights.any(axis=0)), form.link
    names = None if model.recipe is None else model.recipe.names
    record = {
        "format": "streamcut weights",
        "version": 3,
        "task": model.task,
        "labels": None if form.labels is None else form.labels.tolist(),
        "exponential": form.exponential,
        "n_features": model.n_features,
        "intercepts": form.intercepts.tolist(),
        "features": used.tolist(),
        **({} if names is None else {"names": [names[j] for j in used.tolist()]}),
        "weights": form.weights[:, used].T.tolist(),
        "link": None if link is None else {"odds": True} if isinstance(link, Odds) else asdict(link),
        "recipe": None if model.recipe is None else json.loads(model.recipe.to_json()),
    }
    return json.dumps(record, allow_nan=False).encode() + b"\n"


def _liblinear(model: Model, form: LinearForm) -> bytes:
    """`model` written so that LIBLINEAR gives the same labels and, up to the order of summation, the same scores.

    LIBLINEAR's score of two classes is that of the label listed first, so our positive label comes first. Its labels are C
    integers. Raises UsageError for a label that is not one and for a model that LIBLINEAR does not know.
    """
    solver = "L2R_L1LOSS_SVC_DUAL" if form.link is None else "L2R_LR"  # L2R_LR gives the same probabilities (predict -b 1)
    if form.labels is None:
        raise UsageError(f"LIBLINEAR has no models of task {model.task} by {model.solver}")
    if model.scores_per_row > 1 and (joint := JOINT_LOSSES.get(model.problem.loss)) is not None:
        if joint.liblinear is None:
            other = f"its {joint.apart} models are one-vs-rest; export it to sklearn, onnx or json"
            raise UsageError(f"LIBLINEAR has no {model.problem.loss}: {other}")
        solver = joint.liblinear
    labels = form.labels if model.scores_per_row > 1 else form.labels[::-1]
    for label in labels:
        if label != int(label) or abs(label) >= 2**31:
            raise UsageError(f"LIBLINEAR labels are whole numbers below 2³¹, {label:g} is not; train on other labels")
    bias = form.intercepts.any()
    weights = np.vstack([form.weights.T, form.intercepts]) if bias else form.weights.T
    header = [
        f"solver_type {solver}",
        f"nr_class {len(labels)}",
        f"label {' '.join(str(int(label)) for label in labels)}",
        f"nr_feature {model.n_features}",
        f"bias {1 if bias else -1}",  # a negative number means no bias feature
        "w",
    ]
    # LIBLINEAR itself ends these lines with a blank
    lines = header + ["".join(f"{weight:.17g} " for weight in row) for row in weights.tolist()]
    return "\n".join([*lines, ""]).encode()


def _onnx(model: Model, form: LinearForm) -> bytes:
    """A graph with the input X, float64 (n, n_features).

    Outputs of classifiers: `label` (n,), int64 where all are whole numbers, else float64 or text; and `probabilities`, float64
    (n, K), or `scores`, (n,) for two classes and (n, K) for more, if there are none. For others: `answer`, float64 (n,), the
    numbers of a regression, the scores of a ranking. Raises UsageError when onnx is not installed.
    """
    try:
        import onnx
    except ImportError:
        raise UsageError("ONNX needs a package of that name: pip install 'streamcut[onnx]'") from None
    helper, kinds, nodes, constants = onnx.helper, onnx.TensorProto, list[onnx.NodeProto](), list[onnx.TensorProto]()

    def constant(values: ArrayLike) -> str:
        values = np.asarray(values)
        values = values.astype(object) if values.dtype.kind == "U" else np.ascontiguousarray(values)
        constants.append(onnx.numpy_helper.from_array(values, f"c{len(constants)}"))
        return constants[-1].name

    def node(operator: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        nodes.append(helper.make_node(operator, list(inputs), [name or f"t{len(nodes)}"], **attributes))
        return nodes[-1].output[0]

    def output(name: str, tensor: str, kind: int, *shape: str) -> onnx.ValueInfoProto:
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
            outputs.append(
                output("probabilities", _onnx_probabilities(node, constant, form.link, columns), kinds.DOUBLE, "classes")
            )
        else:
            outputs.append(output("scores", scores, kinds.DOUBLE, *(["classes"] if several else [])))
    taken = helper.make_tensor_value_info("X", kinds.DOUBLE, ["n", model.n_features])
    graph = helper.make_graph(nodes, "streamcut", [taken], outputs, constants)
    sets = [helper.make_operatorsetid("", _OPSET)]
    made = helper.make_model(graph, producer_name="streamcut", ir_version=_IR, opset_imports=sets)
    onnx.checker.check_model(made)
    return made.SerializeToString()


def _onnx_probabilities(node: Callable[..., str], constant: Callable[[ArrayLike], str], link: OwnLink, scores: str) -> str:
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


def _sklearn(model: Model, form: LinearForm) -> bytes:
    from streamcut.exports import sklearn  # which others need not load

    return sklearn.content(model, form)


@dataclass(frozen=True, slots=True)
class ExportTarget:
    """A format of another program.

    content        makes the file from a model and its linear form
    endings        file name endings that select it
    recipe, words  whether it holds how raw rows become features, and labels that are words
    fitted         whether it holds probabilities that were fitted after training
    """

    content: Callable[[Model, LinearForm], bytes]
    endings: tuple[str, ...]
    recipe: bool = False
    words: bool = True
    fitted: bool = True


TARGETS = {
    "liblinear": ExportTarget(_liblinear, (), words=False, fitted=False),
    "sklearn": ExportTarget(_sklearn, (".joblib", ".pkl"), recipe=True, fitted=False),
    "onnx": ExportTarget(_onnx, (".onnx",)),
    "json": ExportTarget(_json, (".json",), recipe=True),
}


def export(
    model: Model | str | os.PathLike,
    path: str | os.PathLike,
    *,
    to: str | None = None,
    replace: bool = True,
    without_recipe: bool = False,
    without_probabilities: bool = False,
) -> None:
    """See streamcut.api."""
    by_ending = (name for name, target in TARGETS.items() if os.fspath(path).endswith(target.endings))
    to = next(by_ending, "liblinear") if to is None else to
    if to not in TARGETS:
        raise UsageError(f"to: {unknown(to, TARGETS)}")
    target, model = TARGETS[to], as_model(model)
    if without_recipe and model.recipe is not None:
        words = replaced(type(model.recipe)(), labels=replaced(model.recipe.labels, column=None))
        model = replaced(model, recipe=words if target.words else None)
    _expect_held(model, to, target, without_probabilities)
    content = target.content(model, linear_form(model, None if without_probabilities else model.link or model.own_link))
    with output(path, prefix="model", size=len(content), replace=replace) as file:
        file.write(content)


def _expect_held(model: Model, to: str, target: ExportTarget, without_probabilities: bool) -> None:
    """Raise UsageError for a recipe, words or probabilities that `target` cannot hold."""

    def those(hold: Callable[[ExportTarget], bool]) -> str:
        return " or ".join(name for name, other in TARGETS.items() if hold(other))

    recipe = model.recipe
    if recipe is not None and not target.recipe and recipe.form != "numbers":
        raise UsageError(
            f"{to} cannot say how rows become features, and this model takes {recipe.in_words()}; export it to "
            f"{those(lambda other: other.recipe)}, or the weights of the features alone: --without-recipe"
        )
    if model.label_names and not target.words:
        raise UsageError(
            f"{to} has numbers for labels, and this model has words ({', '.join(list(model.label_names.values())[:3])}); "
            f"export it to {those(lambda other: other.words)}, or with the numbers that stand for them: --without-recipe"
        )
    if model.link is not None and not target.fitted and not without_probabilities:
        raise UsageError(
            f"{to} cannot hold the probabilities of this model that were fitted; export it to "
            f"{those(lambda other: other.fitted)}, or without them: --without-probabilities"
        )
