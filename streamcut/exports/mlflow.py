"""Models for MLflow: saved, logged with the metrics of their training, and loaded again (needs streamcut[mlflow]).

The folder holds our own model file, which `load_model` reads, and MLflow's pyfunc flavour, through which its server, Spark and
evaluation call the model with raw rows:

    with mlflow.start_run():
        streamcut.exports.mlflow.log_model(model, "clicks", input_example=rows.head())
    mlflow.pyfunc.load_model(uri).predict(rows, params={"output": "probabilities"})
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import streamcut
from streamcut.errors import BadInputError, UsageError
from streamcut.io.recipe.table import TEXT
from streamcut.models.files import as_model
from streamcut.models.files import load_model as model_of_file
from streamcut.models.model import Model
from streamcut.prediction import predict

try:
    import mlflow
    from mlflow.models import Model as Described
    from mlflow.models.signature import ModelSignature
    from mlflow.types.schema import AnyType, ColSpec, DataType, ParamSchema, ParamSpec, Schema, TensorSpec
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"{error}; run pip install 'streamcut[mlflow]'") from None

FLAVOUR, _FILE = "streamcut", "model.npz"
_METRICS = ("primal", "lower_bound", "gap")  # of each iteration, if recorded
_AT_ONCE = 1000  # metrics (and fewer than 100 parameters): the limit of a tracking server's request
_PARAMETERS, _LONGEST = 100, 500


class Scorer:
    """The model that pyfunc calls."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> np.ndarray:
        """What streamcut.predict returns for rows; params: {"output": "labels", "scores" or "probabilities"}."""
        return np.asarray(predict(self.model, model_input, output=(params or {}).get("output", "labels")))


def signature_of(model: Model) -> ModelSignature:
    """The signature of rows: columns by name, or the width of an array; and of the result.

    Texts are strings. The other columns are of any type: MLflow would refuse whole numbers in place of fractions, and missing
    values among whole numbers, which the recipe accepts.
    """
    recipe = model.recipe
    if recipe is not None and recipe.table is not None:
        columns = [(each.name, DataType.string if each.type == TEXT else AnyType()) for each in recipe.table.columns]
        rows = Schema([ColSpec(kind, name) for name, kind in columns])
    elif recipe is None or recipe.form == "numbers":
        rows = Schema([TensorSpec(np.dtype(np.float64), (-1, model.n_features))])
    else:
        raise UsageError(f"mlflow has rows of tables and arrays, and this model takes {recipe.in_words()}")
    answers = Schema([TensorSpec(np.dtype(object) if model.label_names else np.dtype(np.float64), (-1,))])
    return ModelSignature(rows, answers, ParamSchema([ParamSpec("output", DataType.string, "labels")]))


def save_model(
    model: Model | str | os.PathLike,
    path: str | os.PathLike,
    *,
    input_example: Any = None,
    mlflow_model: Described | None = None,
    **options: Any,
) -> None:
    """Write `model` as an MLflow model into the folder `path`.

    input_example   a few rows, stored with the model and scored once
    options         of mlflow.pyfunc.save_model: pip_requirements, metadata, signature, …

    Raises UsageError for a model whose rows MLflow cannot hold, and MlflowException where the folder exists.
    """
    model, described = as_model(model), mlflow_model or Described()
    described.add_flavor(FLAVOUR, streamcut_version=streamcut.__version__, data=f"data/{_FILE}")
    usual: dict[str, Any] = {"signature": signature_of(model), "pip_requirements": [f"streamcut=={streamcut.__version__}"]}
    with TemporaryDirectory(prefix="streamcut-") as folder:
        file = os.path.join(folder, _FILE)
        model.save(file)
        fixed = {"loader_module": __name__, "data_path": file, "input_example": input_example, "mlflow_model": described}
        mlflow.pyfunc.save_model(os.fspath(path), **{**usual, **options, **fixed})


def log_model(model: Model | str | os.PathLike, name: str = "model", *, input_example: Any = None, **options: Any) -> Any:
    """Log `model` to the active MLflow run, or to a new one, as `save_model` writes it; returns MLflow's ModelInfo.

    Logged with it are the parameters of its training, the objective, lower bound and gap of each iteration as metrics `primal`,
    `lower_bound` and `gap`, whose step is the iteration, and those of the model itself as `final_primal`, and so on.
    """
    model = as_model(model)
    how: dict[str, Any] = {"name": name, "artifact_path": None, "flavor": sys.modules[__name__], "input_example": input_example}
    info = Described.log(model=model, **how, **options)
    run = mlflow.active_run()
    assert run is not None  # logging has started one
    _log_training(model, run.info.run_id)
    return info


def load_model(uri: str | os.PathLike) -> Model:
    """The model that `save_model` or `log_model` wrote, of MLflow's `uri` or a folder. Raises BadInputError for any other."""
    folder = Path(mlflow.artifacts.download_artifacts(os.fspath(uri)))
    flavours = Described.load(os.fspath(folder)).flavors
    if FLAVOUR not in flavours:
        raise BadInputError(f"{uri}: an MLflow model of {', '.join(sorted(flavours))}, not of streamcut")
    return model_of_file(folder / flavours[FLAVOUR]["data"])


def _load_pyfunc(path: str) -> Scorer:
    """The loader that MLflow requires of a flavour."""
    return Scorer(model_of_file(Path(path) / _FILE if os.path.isdir(path) else path))


def _log_training(model: Model, run: str) -> None:
    from mlflow.entities import Metric, Param

    client, now = mlflow.MlflowClient(), int(mlflow.utils.time.get_current_time_millis())
    values = [(name, each[name], step) for step, each in enumerate(model.history, 1) for name in _METRICS if name in each]
    values += [(f"final_{name}", value, 0) for name, value in model.result().items() if name in _METRICS]
    known = [Metric(name, float(value), now, step) for name, value, step in values if value is not None and np.isfinite(value)]
    for first in range(0, len(known), _AT_ONCE):
        client.log_batch(run, metrics=known[first : first + _AT_ONCE])
    parameters = [Param(name, str(value)[:_LONGEST]) for name, value in model.parameters.items() if value is not None]
    client.log_batch(run, params=parameters[:_PARAMETERS])
