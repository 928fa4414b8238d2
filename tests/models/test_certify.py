"""certify: bounds are never above the optimum, whatever the model; what cannot be certified is refused by name."""

from __future__ import annotations

import json
import shlex
from types import SimpleNamespace

import numpy as np
import pytest
from laws.problems import Rows, objective
from reference.rows import dump
from sklearn import linear_model, svm
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, PolynomialFeatures, StandardScaler

import streamcut
from streamcut.errors import BadInputError, MemoryBudgetError, UsageError


def rows(seed: int, n: int = 40, d: int = 4, task: str = "labels", one_in: int = 2):
    """X (n, d), y, of which one in `one_in` is 1 where they are labels."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) * 10.0 ** random.integers(-1, 2, d)
    score = X @ random.normal(size=d) + random.normal(size=n)
    if task == "labels":
        return X, np.where(score > np.sort(score)[-max(2, n // one_in)], 1.0, -1.0)
    return X, np.round(np.exp(np.clip(score, -2, 2))) if task == "counts" else score + 5.0


def test_the_command_of_a_certified_model_poses_its_problem(tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).standard_normal((80, 4))
    X[:, 3] = X[:, 0] > X[:, 3]
    np.savetxt("t.csv", X, delimiter=",", header="a,b,c,y", comments="")
    streamcut.convert("t.csv", "t.zarr", labels="y")
    start = streamcut.train("t.zarr", C=3.0, loss="squared-hinge", tol_relative=0.1)
    for data in ("t.zarr", "t.csv"):
        better = streamcut.certify(start, data, 2, memory="8GB").better
        streamcut.save_model(better, "m.npz")
        command = streamcut.report("m.npz").command
        assert data in command
        assert not any(flag in command for flag in ("--tol", "--max-passes", "--memory", "--warm-start")), command
        for line in command.replace("--output m.npz", "--output new.npz --force").split(" && "):
            assert run(*shlex.split(line)[1:])[0] == 0
        again = streamcut.load_model("new.npz")
        assert (again.problem, again.fingerprint) == (better.problem, better.fingerprint)


def test_a_report_says_what_was_certified(tmp_path):
    pytest.importorskip("matplotlib")
    X, y = rows(17, n=200)
    found = streamcut.certify(linear_model.LogisticRegression(tol=1e-1).fit(X, y), (X, y), 3)
    streamcut.save_model(found.better, tmp_path / "better.npz")
    page = streamcut.report(tmp_path / "better.npz", tmp_path / "better.html")
    html = (tmp_path / "better.html").read_text()
    assert "Found by certifying this model:" in html
    given = {"primal": found.certificate.primal, "at most": found.at_most, "at least": found.at_least}
    for name, value in given.items():
        assert f"<td>{name}</td><td>{value:.6g}</td>" in html
    assert page is not None
    assert [each["passes"] for each in streamcut.load_model(tmp_path / "better.npz").history] == [1, 2, 3]


@pytest.mark.parametrize("intercept", ["free", "none", "regularised"])
def test_training_goes_on_from_the_better_model_and_its_bound(tmp_path, intercept):
    """An optimum that certify has proved is proved for training, too: one pass, and the same bound."""
    X, y = rows(15, n=400, d=6)
    model = linear_model.LogisticRegression(solver="newton-cholesky", tol=1e-10, fit_intercept=intercept == "free").fit(X, y)
    if intercept == "regularised":
        model = linear_model.LogisticRegression(solver="liblinear", tol=1e-8).fit(X, y)
    found = streamcut.certify(model, (X, y), 4)
    streamcut.save_model(found.better, tmp_path / "better.npz")
    better = streamcut.load_model(tmp_path / "better.npz")
    assert better.proofs[0].bound(better.certificate.c_bar) == pytest.approx(found.certificate.lower_bound, rel=1e-12)
    options = {"free": {"intercept": "free"}, "none": {"bias": 0.0}, "regularised": {"bias": 1.0}}[intercept]
    options |= {"loss": "logistic", "solver": "bundle-dca", "tol": None, "tol_relative": 1e-4}
    warm = streamcut.train((X, y), warm_start=better, **options)
    assert len(warm.history) == 1
    assert warm.certificate.lower_bound >= found.certificate.lower_bound * (1.0 - 1e-12)
    assert len(streamcut.train((X, y), **options).history) > 1


ESTIMATORS = [
    (linear_model.LogisticRegression(C=0.3), "labels"),
    (linear_model.LogisticRegression(C=0.3, class_weight={1.0: 3.0}), "labels"),
    (linear_model.LogisticRegression(C=0.3, class_weight="balanced"), "labels"),
    (linear_model.LogisticRegression(solver="liblinear", intercept_scaling=2.0, tol=1e-8), "labels"),
    (svm.LinearSVC(tol=1e-8, max_iter=100_000), "labels"),
    (svm.LinearSVC(intercept_scaling=3.0, tol=1e-8, max_iter=100_000), "labels"),
    (linear_model.RidgeClassifier(alpha=2.0), "labels"),
    (linear_model.Ridge(alpha=0.5), "numbers"),
    (linear_model.PoissonRegressor(alpha=0.2, tol=1e-8), "counts"),
    (svm.LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.2, tol=1e-8, max_iter=100_000), "numbers"),
    (linear_model.SGDClassifier("log_loss", alpha=0.01, max_iter=20_000, tol=1e-9, n_iter_no_change=50), "labels"),
    (linear_model.SGDClassifier("squared_hinge", alpha=0.1, max_iter=20_000, tol=1e-9, n_iter_no_change=50), "labels"),
    (linear_model.SGDRegressor(alpha=0.05, max_iter=20_000, tol=1e-9, n_iter_no_change=50), "numbers"),
]


@pytest.mark.parametrize(("estimator", "task"), ESTIMATORS, ids=lambda each: repr(each).split("\n")[0][:60])
def test_what_scikit_learn_has_solved_is_the_optimum_here(estimator, task):
    """A wrong C, loss, weight or intercept would leave it far from the optimum."""
    X, y = rows(7, n=200, task=task)
    X = X / np.abs(X).max(axis=0)
    data = (X, y, np.ones(len(y))) if task == "numbers" else (X, y)
    found = streamcut.certify(estimator.fit(X, y), data, 6)
    close = 2e-3 if type(estimator).__name__.startswith("SGD") else 1e-5
    assert found.at_most < close, found.passes


def test_pipelines_are_problems_in_scaled_features(tmp_path):
    X, y = rows(8, n=200)
    for scaler in (StandardScaler(), MaxAbsScaler(), StandardScaler(with_mean=False)):
        model = make_pipeline(scaler, linear_model.LogisticRegression(tol=1e-8)).fit(X, y)
        found = streamcut.certify(model, (X, y), 3)
        assert found.at_most < 1e-6
        assert found.better.score_chunk is not None
        labels = streamcut.predict(found.better, X)
        assert (labels == model.predict(X)).mean() > 0.97
    scaled = make_pipeline(MaxAbsScaler(), linear_model.LogisticRegression(fit_intercept=False)).fit(X, y)
    better = streamcut.certify(scaled, (X, y), 2).better
    for asked, said in (({}, "features were scaled"), ({"trained_on": (X, y)}, "certify the last step")):
        with pytest.raises(UsageError, match=said):  # the gap bounds a distance between weights of scaled features
            streamcut.predict(better, X, answer="certified", **asked)
    both = make_pipeline(MaxAbsScaler(), StandardScaler(), linear_model.LogisticRegression(tol=1e-8)).fit(X, y)
    assert streamcut.certify(both, (X, y), 3).at_most < 1e-6
    with pytest.raises(UsageError, match="with_mean=False"):
        streamcut.certify(make_pipeline(StandardScaler(), svm.LinearSVC()).fit(X, y), (X, y))
    with pytest.raises(UsageError, match="PolynomialFeatures"):
        streamcut.certify(make_pipeline(PolynomialFeatures(), svm.LinearSVC()).fit(X, y), (X, y))


def test_an_objective_of_nothing():
    X = rows(13)[0]
    found = streamcut.certify(linear_model.Ridge().fit(X, np.full(len(X), 3.0)), (X, np.full(len(X), 3.0)))
    assert found.certificate.lower_bound >= 0.0
    assert "0 but for rounding" in found.in_words()


def test_labels_are_named_as_the_model_has_them(tmp_path):
    X, y = rows(12, n=60)
    for low, high, names in ((0, 1, "0 and 1"), ("ham", "spam", "'ham' and 'spam'")):
        labels = np.where(y > 0, high, low)
        with streamcut.create(tmp_path / f"{low}.zarr") as out:
            out.append(X, labels)
        for model in (linear_model.RidgeClassifier(), linear_model.LogisticRegression()):
            model.fit(X, labels)
            assert streamcut.certify(model, (X, labels), 6).at_most < 1e-3
            with pytest.raises(BadInputError, match=f"labels {names}, and the data has no {high!r}" if low == "ham" else "1"):
                streamcut.certify(model, (X[y < 0], labels[y < 0]))
            if low == "ham" or type(model).__name__ == "RidgeClassifier":
                with pytest.raises(BadInputError, match=f"knows labels {names}; give .X, y. with these, or rows with -1, 1"):
                    streamcut.certify(model, str(tmp_path / f"{low}.zarr"))


def test_what_cannot_be_certified_is_refused_by_name():
    (X, y), (Z, k) = rows(10, n=90), classes(9)
    logistic, scores = linear_model.LogisticRegression, np.column_stack([y, y])
    wild = logistic().fit(X, y)
    wild.coef_ = wild.coef_ * 1e200
    scaling = OneVsRestClassifier(make_pipeline(MaxAbsScaler(), svm.LinearSVC())).fit(Z, k)
    together = svm.LinearSVC(multi_class="crammer_singer").fit(Z, k)
    for model, data, asked, error, complaint in (
        (linear_model.Ridge().fit(X, scores), (X, y), {}, UsageError, "2 outputs"),
        (logistic(penalty="l1", solver="liblinear").fit(X, y), (X, y), {}, UsageError, "penalty 'l2'"),
        (svm.SVC(kernel="linear").fit(X, y), (X, y), {}, UsageError, "SVC has no counterpart"),
        (logistic(), (X, y), {}, UsageError, "not fitted"),
        (object(), (X, y), {}, UsageError, "not a linear model"),
        (linear_model.SGDClassifier("perceptron").fit(X, y), (X, y), {}, UsageError, "losses here are"),
        (logistic().fit(X, y), (X, y), {"passes": 0}, UsageError, "passes: 0"),
        (logistic().fit(X, y), (X[:, :3], y), {}, UsageError, "4 features, the data 3"),
        (logistic().fit(X, y), (X, y), {"C": 0.0}, UsageError, r"C: 0\.0 is not a number"),
        (logistic().fit(X, y), (X, y), {"memory": "1MB"}, MemoryBudgetError, "memory"),
        (wild, (X, y), {}, BadInputError, "no finite float64"),
        (logistic(class_weight="balanced").fit(Z, k), (Z, k), {}, UsageError, "class weights of several classes"),
        (linear_model.RidgeClassifier().fit(Z, k), (Z, k), {}, UsageError, "'squared' is not one of task multiclass"),
        (linear_model.LinearRegression().fit(Z, Z[:, :2]), (Z, k), {}, UsageError, "no counterpart"),
        (scaling, (Z, k), {}, UsageError, "scale before it"),
        (logistic(fit_intercept=False).fit(Z, k), (Z[k < 3], k[k < 3]), {}, BadInputError, "same labels: 3"),
        (logistic().fit(Z, k), (Z, k), {"loss": "logistic"}, UsageError, "with the softmax loss, not logistic"),
        (together, (Z, k), {"intercept": "free"}, UsageError, "crammer-singer loss of several classes with a bias feature"),
        (logistic().fit(Z, k), (Z, k), {}, UsageError, "softmax loss of several classes with a bias feature"),
    ):
        with pytest.raises(error, match=complaint):
            streamcut.certify(model, data, **asked)


@pytest.fixture
def store(tmp_path):
    X, y = rows(12, n=200)
    streamcut.convert(dump(tmp_path / "rows.svm", X, y), tmp_path / "rows.zarr", dtype="float64")
    return X, y, tmp_path / "rows.zarr"


def test_models_in_liblinears_text(store, run, tmp_path):
    X, y, place = store
    model = svm.LinearSVC(C=0.5, loss="hinge", tol=1e-8, max_iter=1_000_000).fit(X, y)
    text = "solver_type L2R_L1LOSS_SVC_DUAL\nnr_class 2\nlabel 1 -1\nnr_feature 4\nbias 1\nw\n"
    whole = text + "".join(f"{value:.17g} \n" for value in (*model.coef_[0], model.intercept_[0]))
    for content, flags, code, said in (
        (whole, (), 2, "give --C"),
        (whole.replace("L2R_L1LOSS_SVC_DUAL", "L1R_LR"), (), 2, "L1R_LR is not"),
        (text + "0.5 \n", ("--C", 1), 5, ""),
    ):
        (tmp_path / "ll.model").write_text(content)
        ended, _, err = run("verify", tmp_path / "ll.model", place, *flags)
        assert (ended, said in err) == (code, True), err
    (tmp_path / "ll.model").write_text(whole)
    better = ("--output", tmp_path / "better.npz")
    code, out, _ = run("verify", tmp_path / "ll.model", place, "--C", 0.5, "--max-passes", 8, "--json", *better)
    found = json.loads(out)
    assert (code, len(found["passes"])) == (0, 8)
    assert found["at_least"] <= found["at_most"] < 0.05
    code, out, _ = run("verify", tmp_path / "better.npz", place, "--memory", "4GB")
    assert (code, "reached" in out) == (0, True)
    assert run("verify", tmp_path / "ll.model", place, "--C", 0.5, *better)[0] == 2


def test_models_in_json_and_pickles(store, run, tmp_path):
    X, y, place = store
    model = linear_model.LogisticRegression(tol=1e-8).fit(X, y)
    record = {"features": [0, 1, 2, 3], "weights": [[w] for w in model.coef_[0]], "n_features": 4}
    record |= {"intercepts": [float(model.intercept_[0])], "labels": [-1, 1]}
    asked = ("--C", 1, "--loss", "logistic", "--intercept", "free", "--json")
    several = ("--C", 1, "--loss", "crammer-singer", "--intercept", "none")
    (tmp_path / "m.json").write_text(json.dumps(record))
    assert json.loads(run("verify", tmp_path / "m.json", place, *asked)[1])["at_most"] < 1e-6
    one = {"features": [0], "weights": [[1]], "n_features": 4, "intercepts": [0]}
    for content, flags, code, said in (
        (record, (), 2, "--C, --loss, --intercept"),
        (record, several, 2, "has one score per row; the crammer-singer loss is of several classes"),
        ({**one, "features": [9]}, asked, 5, ""),
        ({**one, "labels": [1]}, asked, 5, "1 labels; two classes have two"),
        ({**one, "n_features": 2_000_000_000}, (*asked, "--memory", "4GB"), 7, ""),
    ):
        (tmp_path / "m.json").write_text(json.dumps(content))
        ended, _, err = run("verify", tmp_path / "m.json", place, *flags)
        assert (ended, said in err) == (code, True), err
    hostile = ("[" * 5000, '{"features": 1}', '{"features": [], "weights": [], "n_features": 1e999, "intercepts": [0]}', "{")
    for text in (*hostile, '{"features": [0], "weights": [[1]], "n_features": 1, "intercepts": "x"}'):
        (tmp_path / "m.json").write_text(text)
        assert run("verify", tmp_path / "m.json", place, *asked)[0] in (2, 5), text[:60]
    (tmp_path / "m.pkl").write_bytes(b"\x80\x04N.")
    assert "in Python, by streamcut.certify" in run("verify", tmp_path / "m.pkl", place)[2]
    assert run("verify", tmp_path / "nowhere", place)[0] == 4


# --- several classes: one problem of all together, or one for each against the rest ---------------------------------------------


def classes(seed: int = 0, n: int = 240, d: int = 5, count: int = 4):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    scores = X @ random.normal(size=(d, count)) + random.normal(size=count) + random.normal(size=(n, count))
    return X, scores.argmax(axis=1)


def objective_of(strategy: str, loss: str, W, b, X, y, C: float) -> float:
    """F of the problem, or the sum over those of all classes, with intercepts that cost nothing."""
    rest = {"strategy": strategy, "loss": loss}
    how = {"softmax": {"loss": "softmax"}, "one-vs-rest": rest, "crammer-singer": {}}[strategy]
    options = {"task": "multiclass", "C": C, "intercept": "free", **how}
    return objective(SimpleNamespace(weights=W, intercept=b), Rows(X, y), options)


SOLVED = [
    (linear_model.LogisticRegression(fit_intercept=False, C=0.3, tol=1e-10, max_iter=1000), "softmax", "softmax", 1e-9),
    (svm.LinearSVC(tol=1e-10, max_iter=100_000, random_state=0), "one-vs-rest", "squared-hinge", 1e-7),
    (svm.LinearSVC(loss="hinge", tol=1e-8, max_iter=1_000_000, random_state=0), "one-vs-rest", "hinge", 2e-2),
    (svm.LinearSVC(multi_class="crammer_singer", tol=1e-8, random_state=0), "crammer-singer", "crammer-singer", 0.5),
    (
        OneVsRestClassifier(linear_model.LogisticRegression(C=2.0, solver="newton-cholesky", tol=1e-12)),
        "one-vs-rest", "logistic", 1e-6,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("estimator", "strategy", "loss", "close"), SOLVED)
def test_classes_that_scikit_learn_has_solved_are_at_the_optimum_here(estimator, strategy, loss, close):
    X, y = classes()
    model = estimator.fit(X, y)
    found = streamcut.certify(model, (X, y), 6)
    better, C = found.better, found.better.C
    assert (better.problem.strategy, better.problem.loss, better.labels) == (strategy, loss, (0.0, 1.0, 2.0, 3.0))
    each = model.estimators_ if hasattr(model, "estimators_") else None
    W = np.array([one.coef_[0] for one in each] if each else model.coef_).T
    b = np.array([one.intercept_[0] for one in each] if each else model.intercept_)
    F = objective_of(strategy, loss, W, b, X, y, C)
    if found.intercept not in ("free", "none"):
        F += 0.5 * float(b @ b) / found.intercept**2
    assert found.certificate.primal == pytest.approx(F, rel=1e-10)
    assert 0.0 <= found.at_least <= found.at_most <= close
    assert len(found.classes) == (4 if strategy == "one-vs-rest" else 0)
    assert np.mean(streamcut.predict(better, X) == model.predict(X)) > 0.98


@pytest.mark.parametrize("strategy", ["softmax", "one-vs-rest"])
def test_no_bound_of_classes_is_above_the_optimum(strategy, tmp_path):
    """Of models that are off by little and by much, free intercepts and none; sums, and each class of a sum."""
    for seed in range(12):
        random = np.random.default_rng(seed)
        X, y = classes(seed, n=60, d=3, count=3)
        free, C = seed % 3 != 2 and strategy != "softmax", float(10.0 ** random.integers(-2, 2))
        solver = linear_model.LogisticRegression(C=C, fit_intercept=free, solver="newton-cholesky", tol=1e-14, max_iter=1000)
        best = (solver if strategy == "softmax" else OneVsRestClassifier(solver)).fit(X, y)
        each = getattr(best, "estimators_", None)
        W = np.array([one.coef_[0] for one in each] if each else best.coef_)
        b = np.array([one.intercept_[0] for one in each] if each else best.intercept_) * np.ones(3)
        least = objective_of(strategy, "logistic", W.T, b, X, y, C)
        off = 10.0 ** -random.integers(0, 9)
        W, b = W + off * random.normal(size=W.shape), (b + off * random.normal(size=3)) * free
        record = {"features": [0, 1, 2], "n_features": 3, "weights": W.T.tolist(), "intercepts": b.tolist(), "labels": [0, 1, 2]}
        (tmp_path / "m.json").write_text(json.dumps(record))
        how = {"C": C, "loss": "softmax" if strategy == "softmax" else "logistic", "intercept": "free" if free else "none"}
        found = streamcut.certify(tmp_path / "m.json", (X, y), 1 + seed % 4, **how)
        assert found.certificate.lower_bound <= least * (1.0 + 1e-12), seed
        assert found.certificate.primal >= objective_of(strategy, "logistic", W.T, b, X, y, C) * (1.0 - 1e-12), seed
        assert found.passes[-1].better_primal >= least * (1.0 - 1e-12), seed
        bounds = [after.lower_bound for after in found.passes]
        assert bounds == sorted(bounds)
        if len(found.passes) > 2:
            assert found.certificate.lower_bound > 0.3 * least, seed
