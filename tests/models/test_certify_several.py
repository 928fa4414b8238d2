"""certify, several classes: one problem of all together, or one for each against the rest."""

from __future__ import annotations

import json

import numpy as np
import pytest

import streamcut
from streamcut.errors import BadInputError, UsageError

linear_model = pytest.importorskip("sklearn.linear_model")
svm = pytest.importorskip("sklearn.svm")
multiclass = pytest.importorskip("sklearn.multiclass")
pipeline = pytest.importorskip("sklearn.pipeline")
preprocessing = pytest.importorskip("sklearn.preprocessing")


def rows(seed: int = 0, n: int = 240, d: int = 5, classes: int = 4):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    scores = X @ random.normal(size=(d, classes)) + random.normal(size=classes) + random.normal(size=(n, classes))
    return X, scores.argmax(axis=1)


def objective(strategy: str, loss: str, W, b, X, y, C: float) -> float:
    """F of the problem, or the sum over those of all classes."""
    scores = X @ W + b
    total = 0.5 * float((W * W).sum())
    if strategy == "softmax":
        return total + C * float((np.logaddexp.reduce(scores, axis=1) - scores[np.arange(len(y)), y]).sum())
    if strategy == "crammer-singer":
        ahead = scores + 1.0 - scores[np.arange(len(y)), y][:, None]
        ahead[np.arange(len(y)), y] = 0.0
        return total + C * float(ahead.max(axis=1).sum())
    z = scores * np.where(y[:, None] == np.arange(W.shape[1]), 1.0, -1.0)
    below = np.maximum(0.0, 1.0 - z)
    each = {"logistic": np.logaddexp(0.0, -z), "hinge": below, "squared-hinge": below**2}[loss]
    return total + C * float(each.sum())


SOLVED = [
    (linear_model.LogisticRegression(fit_intercept=False, C=0.3, tol=1e-10, max_iter=1000), "softmax", "softmax", 1e-9),
    (svm.LinearSVC(tol=1e-10, max_iter=100_000, random_state=0), "one-vs-rest", "squared-hinge", 1e-7),
    (svm.LinearSVC(loss="hinge", tol=1e-8, max_iter=1_000_000, random_state=0), "one-vs-rest", "hinge", 2e-2),
    (svm.LinearSVC(multi_class="crammer_singer", tol=1e-8, random_state=0), "crammer-singer", "crammer-singer", 0.5),
    (
        multiclass.OneVsRestClassifier(linear_model.LogisticRegression(C=2.0, solver="newton-cholesky", tol=1e-12)),
        "one-vs-rest", "logistic", 1e-6,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("estimator", "strategy", "loss", "close"), SOLVED)
def test_what_scikit_learn_has_solved_is_the_optimum_here(estimator, strategy, loss, close):
    X, y = rows()
    model = estimator.fit(X, y)
    found = streamcut.certify(model, (X, y), 6)
    better, C = found.better, found.better.C
    assert (better.problem.strategy, better.problem.loss, better.labels) == (strategy, loss, (0.0, 1.0, 2.0, 3.0))
    each = model.estimators_ if hasattr(model, "estimators_") else None
    W = np.array([one.coef_[0] for one in each] if each else model.coef_).T
    b = np.array([one.intercept_[0] for one in each] if each else model.intercept_)
    F = objective(strategy, loss, W, b, X, y, C)
    if found.intercept not in ("free", "none"):
        F += 0.5 * float(b @ b) / found.intercept**2
    assert found.certificate.primal == pytest.approx(F, rel=1e-10)
    assert 0.0 <= found.at_least <= found.at_most <= close
    assert len(found.classes) == (4 if strategy == "one-vs-rest" else 0)
    assert np.mean(streamcut.predict(better, X) == model.predict(X)) > 0.98


@pytest.mark.parametrize("strategy", ["softmax", "one-vs-rest"])
def test_no_bound_is_above_the_optimum(strategy):
    """Of models that are off by little and by much, free intercepts and none; sums, and each class of a sum."""
    for seed in range(12):
        random = np.random.default_rng(seed)
        X, y = rows(seed, n=60, d=3, classes=3)
        free, C = seed % 3 != 2 and strategy != "softmax", float(10.0 ** random.integers(-2, 2))
        solver = linear_model.LogisticRegression(C=C, fit_intercept=free, solver="newton-cholesky", tol=1e-14, max_iter=1000)
        best = (solver if strategy == "softmax" else multiclass.OneVsRestClassifier(solver)).fit(X, y)
        each = getattr(best, "estimators_", None)
        W = np.array([one.coef_[0] for one in each] if each else best.coef_)
        b = np.array([one.intercept_[0] for one in each] if each else best.intercept_) * np.ones(3)
        least = objective(strategy, "logistic", W.T, b, X, y, C)
        off = 10.0 ** -random.integers(0, 9)
        W, b = W + off * random.normal(size=W.shape), (b + off * random.normal(size=3)) * free
        record = {"features": [0, 1, 2], "n_features": 3, "weights": W.T.tolist(), "intercepts": b.tolist(), "labels": [0, 1, 2]}
        found = certified(record, (X, y), 1 + seed % 4, C=C, free=free, loss="softmax" if strategy == "softmax" else "logistic")
        assert found.certificate.lower_bound <= least * (1.0 + 1e-12), seed
        assert found.certificate.primal >= objective(strategy, "logistic", W.T, b, X, y, C) * (1.0 - 1e-12), seed
        assert found.passes[-1].better_primal >= least * (1.0 - 1e-12), seed
        bounds = [after.lower_bound for after in found.passes]
        assert bounds == sorted(bounds)
        if len(found.passes) > 2:
            assert found.certificate.lower_bound > 0.3 * least, seed


def certified(record, data, passes, *, C, free, loss):
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "m.json").write_text(json.dumps(record))
        intercept = "free" if free else "none"
        return streamcut.certify(Path(folder) / "m.json", data, passes, C=C, loss=loss, intercept=intercept)


@pytest.mark.parametrize(
    "how", [{"loss": "softmax"}, {"strategy": "one-vs-rest", "loss": "logistic"}, {"strategy": "crammer-singer"}]
)
def test_our_own_models_and_training_that_goes_on(tmp_path, how):
    X, y = rows(6)
    given = {"task": "multiclass", "bias": 1.0, "C": 0.5, **how}
    model = streamcut.train((X, y), tol_relative=0.2, **given)
    streamcut.save_model(model, tmp_path / "m.npz")
    found = streamcut.certify(tmp_path / "m.npz", (X, y), 4)
    recorded = sum(each.primal for each in model.certificates)
    assert found.certificate.primal == pytest.approx(recorded, rel=1e-9)
    assert found.at_most < 0.05
    streamcut.save_model(found.better, tmp_path / "better.npz")
    again = streamcut.certify(tmp_path / "better.npz", (X, y), 1)
    assert again.certificate.primal == pytest.approx(found.passes[-1].better_primal, rel=1e-12)
    trained = streamcut.train((X, y), tol_relative=1e-4, warm_start=str(tmp_path / "better.npz"), **given)
    assert trained.converged
    assert sum(each.primal for each in trained.certificates) >= found.certificate.lower_bound
    assert found.better.weights.shape == (5, 4)


def test_refused_by_name():
    X, y = rows(9)
    heavy = linear_model.LogisticRegression(class_weight="balanced").fit(X, y)
    ridge = linear_model.RidgeClassifier().fit(X, y)
    two = np.column_stack([X[:, 0], X[:, 1]])
    scaling = multiclass.OneVsRestClassifier(pipeline.make_pipeline(preprocessing.MaxAbsScaler(), svm.LinearSVC())).fit(X, y)
    for model, complaint in (
        (heavy, "class weights of several classes"),
        (ridge, "'squared' is not one of task multiclass"),
        (linear_model.LinearRegression().fit(X, two), "no counterpart"),
        (linear_model.Ridge().fit(X, two), "2 outputs"),
        (scaling, "scale before it"),
    ):
        with pytest.raises(UsageError, match=complaint):
            streamcut.certify(model, (X, y))
    model = linear_model.LogisticRegression().fit(X, y)
    none = linear_model.LogisticRegression(fit_intercept=False).fit(X, y)
    with pytest.raises(BadInputError, match="same labels: 3"):
        streamcut.certify(none, (X[y < 3], y[y < 3]))
    with pytest.raises(UsageError, match="with the softmax loss, not logistic"):
        streamcut.certify(model, (X, y), loss="logistic")
    together = svm.LinearSVC(multi_class="crammer_singer").fit(X, y)
    with pytest.raises(UsageError, match="crammer-singer loss of several classes with a bias feature"):
        streamcut.certify(together, (X, y), intercept="free")
    with pytest.raises(UsageError, match="softmax loss of several classes with a bias feature"):
        streamcut.certify(model, (X, y))
