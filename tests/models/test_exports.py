"""Other programs score as we do: scikit-learn, ONNX runtimes, and whoever reads JSON."""

from __future__ import annotations

import json

import joblib
import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut.errors import UsageError

ROWS = 10_000


@pytest.fixture(scope="module")
def problem() -> tuple[sp.csr_array, np.ndarray]:
    rng = np.random.default_rng(0)
    X = sp.random_array((ROWS, 40), density=0.3, rng=rng, format="csr", data_sampler=rng.normal)
    return X, X @ rng.normal(size=(40, 4)) + rng.normal(size=(ROWS, 4))


KINDS = {
    "hinge": {"loss": "hinge"},
    "logistic": {"loss": "logistic"},
    "F1": {"loss": "f1"},
    "four classes": {"task": "multiclass"},
    "softmax": {"task": "multiclass", "loss": "softmax"},
    "one-vs-rest": {"task": "multiclass", "strategy": "one-vs-rest"},
    "one-vs-rest, logistic": {"task": "multiclass", "strategy": "one-vs-rest", "loss": "logistic"},
}


@pytest.fixture(scope="module", params=KINDS)
def model(request, problem):
    X, scores = problem
    y = scores.argmax(axis=1) if "task" in KINDS[request.param] else np.sign(scores[:, 0])
    data = streamcut.rows(X[:300], y[:300].astype(float), weight=None if request.param == "F1" else np.ones(300))
    return streamcut.train(data, C=0.3, tol_relative=0.1, **KINDS[request.param])


NUMBERS = {
    **{loss: {"task": "regression", "loss": loss} for loss in ("squared", "epsilon-insensitive", "huber", "quantile", "poisson")},
    "ranking": {"task": "ranking"},
    "ROC area": {"task": "roc-area"},
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_other_programs_give_the_numbers_of_regressions_and_rankings(kind, problem, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    X, scores = problem
    y = {"ROC area": np.sign(scores[:300, 0]), "poisson": np.round(np.abs(scores[:300, 0]))}.get(kind, scores[:300, 0])
    qid = np.arange(300) // 10 if kind == "ranking" else None
    weight = np.ones(300) if "loss" in NUMBERS[kind] else None
    model = streamcut.train(streamcut.rows(X[:300], y, qid=qid, weight=weight), C=0.3, tol_relative=0.1, **NUMBERS[kind])
    streamcut.export(model, tmp_path / "m.onnx")
    session = runtime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    (found,) = session.run(["answer"], {"X": X.toarray()})
    np.testing.assert_allclose(found, model.predict(X), rtol=1e-10, atol=1e-12)
    streamcut.export(model, tmp_path / "m.joblib")
    np.testing.assert_allclose(joblib.load(tmp_path / "m.joblib").predict(X), model.predict(X), rtol=1e-10, atol=1e-12)


def test_fitted_probabilities_are_exported_or_refused_unless_they_are_left_out(model, problem, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    X, scores = problem
    y = scores.argmax(axis=1) if model.scores_per_row > 1 else np.sign(scores[:, 0])
    fitted = streamcut.calibrate(model, (X[300:1300], y[300:1300]))
    streamcut.export(fitted, tmp_path / "m.onnx")
    _, found = runtime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"]).run(None, {"X": X.toarray()})
    expected = fitted.probabilities_of(fitted.decision_function(X))
    np.testing.assert_allclose(found[:, 1] if model.scores_per_row == 1 else found, expected, rtol=1e-10, atol=1e-12)
    for to in ("sklearn", "liblinear"):
        with pytest.raises(UsageError, match=r"were fitted; export it to onnx or json.*without.probabilities"):
            streamcut.export(fitted, tmp_path / "m", to=to)
    streamcut.export(fitted, tmp_path / "m.json")
    assert json.loads((tmp_path / "m.json").read_text())["link"]["rows"] == 1000
    streamcut.export(fitted, tmp_path / "m.joblib", without_probabilities=True)
    bare = joblib.load(tmp_path / "m.joblib")
    assert not hasattr(bare, "predict_proba")
    np.testing.assert_array_equal(bare.predict(X), model.predict(X))
    streamcut.export(fitted, tmp_path / "m.json", without_probabilities=True)
    assert json.loads((tmp_path / "m.json").read_text())["link"] is None


def test_hashed_features_are_left_out_or_refused(tmp_path, run):
    (tmp_path / "a.csv").write_text("y,what\n" + "1,x\n0,z\n" * 20)
    streamcut.convert(tmp_path / "a.csv", tmp_path / "a.zarr", labels="y", hash_bits=6)
    streamcut.train(tmp_path / "a.zarr", loss="hinge").save(tmp_path / "m.npz")
    code, _, said = run("export", tmp_path / "m.npz", tmp_path / "m.onnx")
    assert (code, "takes features of 1 column" in said) == (2, True)
    assert run("export", tmp_path / "m.npz", tmp_path / "m.onnx", "--without-recipe") == (0, "", "")
    with pytest.raises(UsageError, match="'pmml' is unknown"):
        streamcut.export(tmp_path / "m.npz", tmp_path / "m.pmml", to="pmml")


def test_others_score_as_we_do(model, problem, tmp_path):
    """scikit-learn, an ONNX runtime, and who computes with the numbers in JSON."""
    runtime = pytest.importorskip("onnxruntime")
    X, _ = problem
    ours, labels = model.decision_function(X), model.predict(X)
    answers = model.probabilities_of(ours) if model.has_probabilities else ours
    for name in ("m.joblib", "m.onnx", "m.json"):
        streamcut.export(model, tmp_path / name)
    theirs = joblib.load(tmp_path / "m.joblib")
    np.testing.assert_allclose(theirs.decision_function(X), ours, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(theirs.predict(X), labels)
    assert hasattr(theirs, "predict_proba") == model.has_probabilities
    if model.has_probabilities:
        found = theirs.predict_proba(X)
        np.testing.assert_allclose(found[:, 1] if answers.ndim == 1 else found, answers, rtol=1e-11, atol=1e-13)
    session = runtime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    outputs = [output.name for output in session.get_outputs()]
    assert outputs == ["label", "probabilities" if model.has_probabilities else "scores"]
    said, found = session.run(None, {"X": X.toarray()})
    np.testing.assert_array_equal(said, labels)
    np.testing.assert_allclose(found[:, 1] if found.shape == (ROWS, 2) else found, answers, rtol=1e-10, atol=1e-12)
    if found.shape == (ROWS, 2):
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
    record = json.loads((tmp_path / "m.json").read_text())
    scores = X[:, record["features"]] @ np.array(record["weights"]) + record["intercepts"]
    np.testing.assert_allclose(scores.reshape(ours.shape), ours, rtol=1e-12, atol=1e-12)
    best = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)
    np.testing.assert_array_equal(np.array(record["labels"])[best], labels)
    assert (record["link"] is not None) == model.has_probabilities


@pytest.mark.parametrize("bias", [0.0, 0.25])
@pytest.mark.parametrize(("labels", "positive"), [((-1.0, 1.0), None), ((3.0, 7.0), None), ((1.0, -1.0), -1.0)])
def test_liblinear_gives_the_labels_and_scores_of_two_classes(problem, tmp_path, bias, labels, positive):
    liblinear = pytest.importorskip("liblinear.liblinearutil")
    X, y = problem[0][:200], np.where(problem[1][:200, 0] > 0.0, labels[1], labels[0])
    model = streamcut.train(streamcut.rows(X, y), bias=bias, positive_label=positive, tol_relative=0.1)
    streamcut.export(model, tmp_path / "m.txt")
    said, _, values = liblinear.predict([], sp.csr_matrix(X), liblinear.load_model(str(tmp_path / "m.txt")), "-q")
    np.testing.assert_array_equal(said, model.predict(X))
    np.testing.assert_allclose(np.array(values)[:, 0], model.decision_function(X), rtol=1e-12, atol=1e-12)
    assert set(said) == set(labels)


def test_liblinear_knows_the_probabilities_of_logistic_models_alone(model, tmp_path):
    if model.problem.loss == "softmax":
        with pytest.raises(UsageError, match=r"softmax|cannot hold the probabilities"):
            streamcut.export(model, tmp_path / "m.txt")
        return
    streamcut.export(model, tmp_path / "m.txt")
    assert (tmp_path / "m.txt").read_text().startswith("solver_type L2R_LR\n") == model.has_probabilities


def test_kernel_models_have_no_linear_form(problem, tmp_path):
    X, scores = problem
    data = streamcut.rows(X[:80], np.sign(scores[:80, 0]))
    model = streamcut.train(data, kernel="rbf", gamma=0.1, budget=5, epochs=1)
    for to in ("liblinear", "sklearn", "onnx", "json"):
        with pytest.raises(UsageError, match=r"has no models of|only linear models"):
            streamcut.export(model, tmp_path / "m", to=to)
