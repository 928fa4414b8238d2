"""Export to ONNX, which runtimes for many languages and machines score."""

from __future__ import annotations

from streamcut.errors import UsageError
from streamcut.exports.sklearn import sklearn_estimator
from streamcut.models.model import Model


def onnx_graph(model: Model) -> bytes:
    """A graph with the input X, float64 (n, n_features), and the outputs of scikit-learn's estimator for `model`.

    Of classifiers they are the labels and the probabilities, or the scores where there are none; of others the answer.
    Raises UsageError when skl2onnx is not installed, and as `sklearn_estimator` does.
    """
    try:
        from skl2onnx import to_onnx
        from skl2onnx.common.data_types import DoubleTensorType
    except ImportError as error:
        raise UsageError("ONNX needs skl2onnx: pip install skl2onnx") from error
    estimator = sklearn_estimator(model)
    options = None
    if hasattr(estimator, "classes_"):
        options = {id(estimator): {"zipmap": False} if model.has_probabilities else {"raw_scores": True}}
    types = [("X", DoubleTensorType([None, model.n_features]))]
    return to_onnx(estimator, initial_types=types, options=options).SerializeToString()
