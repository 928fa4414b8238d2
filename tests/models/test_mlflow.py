"""Models in MLflow: with what rows have to be, the course of their training, and back again as they were."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import streamcut
from streamcut.errors import BadInputError

mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed (streamcut[mlflow])")
ours = pytest.importorskip("streamcut.exports.mlflow")


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A place for runs."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    yield mlflow.MlflowClient()
    mlflow.set_tracking_uri(before)


def clicks() -> pd.DataFrame:
    site, price = np.tile(["a", "b", "c"], 40), np.arange(120.0)
    return pd.DataFrame({"site": site, "price": price, "click": np.where((site == "a") ^ (price % 7 < 2), "yes", "no")})


def test_a_run_has_the_model_and_the_course_of_its_training(server):
    rows = clicks()
    model = streamcut.train(rows, label="click", loss="logistic", C=2.0)
    with mlflow.start_run() as run:
        info = ours.log_model(model, "clicks", input_example=rows.drop(columns="click").head(2))
    found = {name: server.get_metric_history(run.info.run_id, name) for name in ("primal", "lower_bound", "gap")}
    for name, points in found.items():
        assert [(each.step, each.value) for each in points] == [(i, each[name]) for i, each in enumerate(model.history, 1)]
    logged = server.get_run(run.info.run_id).data
    assert logged.metrics["final_gap"] == model.certificate.gap
    assert (logged.params["C"], logged.params["loss"]) == ("2.0", "logistic")

    assert ours.load_model(info.model_uri).in_words() == model.in_words()
    scorer = mlflow.pyfunc.load_model(info.model_uri)
    assert scorer.metadata.signature.inputs.input_names() == ["site", "price"]
    for given in (rows, rows.assign(price=rows.price.astype(int)), rows[rows.site == "b"]):  # and an index with gaps
        assert scorer.predict(given).tolist() == streamcut.predict(model, given.reset_index(drop=True)).tolist()
    probabilities = scorer.predict(rows, params={"output": "probabilities"})
    np.testing.assert_array_equal(probabilities, streamcut.predict(model, rows, output="probabilities"))
    with pytest.raises(mlflow.exceptions.MlflowException, match="price"):
        scorer.predict(rows[["site"]])


def test_a_model_of_arrays_takes_arrays(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = streamcut.train((X, np.where(X[:, 0] > 0, 1.0, -1.0)))
    ours.save_model(model, tmp_path / "m")
    found = mlflow.pyfunc.load_model(str(tmp_path / "m")).predict(X, params={"output": "scores"})
    np.testing.assert_array_equal(found, streamcut.predict(model, X, output="scores"))


def test_the_model_of_another_library_is_refused(tmp_path):
    class Other(mlflow.pyfunc.PythonModel):
        def predict(self, context, model_input, params=None):
            return model_input

    mlflow.pyfunc.save_model(tmp_path / "m", python_model=Other(), pip_requirements=[])
    with pytest.raises(BadInputError, match="an MLflow model of python_function, not of streamcut"):
        ours.load_model(tmp_path / "m")
