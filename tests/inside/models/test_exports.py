"""Other programs score as we do: scikit-learn, ONNX runtimes, and whoever reads JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import joblib
import kit.shared.exports
import numpy as np
import pytest

import streamcut
from streamcut.errors import UsageError
from streamcut.io.recipe.recipe import Recipe
from streamcut.loss_table import ROW_LOSSES
from streamcut.models.link import Sigmoid, Softmax

problem = kit.shared.exports.problem
model = kit.shared.exports.model

NUMBERS = {
    **{loss: {"task": "regression", "loss": loss} for loss, each in ROW_LOSSES.items() if each.targets == "numbers"},
    "ranking": {"task": "ranking"},
    "ROC area": {"task": "roc-area"},
}


@pytest.fixture(scope="module", params=NUMBERS)
def numbers(request, problem):
    """A model whose answers are numbers."""
    X, scores = problem
    y = {"ROC area": np.sign(scores[:300, 0]), "poisson": np.round(np.abs(scores[:300, 0]))}.get(request.param, scores[:300, 0])
    qid = np.arange(300, dtype=np.int64) // 10 if request.param == "ranking" else None
    return streamcut.train(streamcut.rows(X[:300], y, qid=qid), C=0.3, tol_relative=0.1, **NUMBERS[request.param])


def test_an_onnx_runtime_gives_the_numbers_of_regressions_and_rankings(numbers, problem, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    X, _ = problem
    streamcut.export(numbers, tmp_path / "m.onnx")
    session = runtime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    (found,) = session.run(["answer"], {"X": X.toarray()})
    np.testing.assert_allclose(found, numbers.predict(X), rtol=1e-10, atol=1e-12)
    streamcut.export(numbers, tmp_path / "m.joblib")
    np.testing.assert_allclose(joblib.load(tmp_path / "m.joblib").predict(X), numbers.predict(X), rtol=1e-10, atol=1e-12)


def test_an_onnx_runtime_gives_fitted_probabilities(model, problem, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    X, _ = problem
    link = Sigmoid(-2.0, 0.1, 50) if model.scores_per_row == 1 else Softmax(0.7, (0.1, 0.0, -0.2, 0.3), 50)
    fitted = replace(model, link=link)
    streamcut.export(fitted, tmp_path / "m.onnx")
    _, found = runtime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"]).run(None, {"X": X.toarray()})
    expected = fitted.probabilities_of(fitted.decision_function(X))
    np.testing.assert_allclose(found[:, 1] if model.scores_per_row == 1 else found, expected, rtol=1e-10, atol=1e-12)


def test_what_cannot_be_said_is_refused_unless_it_is_to_be_left_out(model, problem, tmp_path):
    X, _ = problem
    fitted = replace(model, link=Sigmoid(-2.0, 0.1, 50) if model.scores_per_row == 1 else Softmax(0.7, (), 50))
    for to in ("sklearn", "liblinear"):
        with pytest.raises(UsageError, match=r"were fitted; export it to onnx or json.*without.probabilities"):
            streamcut.export(fitted, tmp_path / "m", to=to)
    with pytest.raises(UsageError, match="'pmml' is unknown"):
        streamcut.export(model, tmp_path / "m.pmml", to="pmml")
    assert list(tmp_path.iterdir()) == []
    streamcut.export(fitted, tmp_path / "m.json")
    assert json.loads((tmp_path / "m.json").read_text())["link"]["rows"] == 50
    streamcut.export(fitted, tmp_path / "m.joblib", without_probabilities=True)
    bare = joblib.load(tmp_path / "m.joblib")
    assert not hasattr(bare, "predict_proba")
    np.testing.assert_array_equal(bare.predict(X), model.predict(X))
    streamcut.export(fitted, tmp_path / "m.json", without_probabilities=True)
    assert json.loads((tmp_path / "m.json").read_text())["link"] is None


def test_the_command_offers_what_there_is(run, model, tmp_path):
    from streamcut.exports.export import TARGETS

    code, told, _ = run("export", "--help-all")
    assert code == 0
    assert f"[{'|'.join(sorted(TARGETS))}]" in told
    streamcut.save_model(replace(model, recipe=Recipe(form="hashed", hash_bits=6)), tmp_path / "m.npz")
    code, _, said = run("export", tmp_path / "m.npz", tmp_path / "m.joblib")
    assert (code, "hashed into 2^6" in said) == (2, True)
    assert run("export", tmp_path / "m.npz", tmp_path / "m.joblib", "--without-recipe") == (0, "", "")
