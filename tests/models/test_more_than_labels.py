"""What is said in addition to labels: probabilities by Platt scaling, labels that are proved, and standard errors of weights."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
import scipy.sparse as sp
from laws.problems import ROWS
from scipy.special import softmax
from sklearn.datasets import dump_svmlight_file
from sklearn.metrics import log_loss

import streamcut
from streamcut import calibrate, load_model, predict, save_model, train
from streamcut.errors import BadInputError, UsageError


def labelled(seed=0, n=600):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, 20), density=0.4, rng=rng, format="csr", data_sampler=rng.standard_normal)
    odds = 3 * (X @ np.random.default_rng(9).standard_normal(20))
    return X, np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), 1.0, -1.0), odds


def test_probabilities_are_close_to_the_truth_and_survive_a_file(tmp_path):
    X, y, _ = labelled()
    model = train(streamcut.rows(X, y))
    with pytest.raises(UsageError, match="calibrate"):
        predict(model, X, answer="probabilities")
    held_out, labels, _ = labelled(1)
    fitted = calibrate(model, (held_out, labels))
    test, _, odds = labelled(2)
    p = predict(fitted, test, answer="probabilities")
    assert np.abs(p - 1 / (1 + np.exp(-odds))).mean() < 0.08
    save_model(fitted, tmp_path / "m.npz")
    np.testing.assert_array_equal(predict(tmp_path / "m.npz", test, answer="probabilities"), p)
    np.testing.assert_array_equal(fitted.decision_function(test), model.decision_function(test))
    save_model(model, tmp_path / "plain.npz")
    assert load_model(tmp_path / "plain.npz").link is None


def test_what_has_no_probabilities():
    X, y, _ = labelled()
    model = train(streamcut.rows(X, y))
    with pytest.raises(BadInputError, match="both classes"):
        calibrate(model, (X, np.ones(600)))
    numbers = streamcut.rows(X, np.arange(600) % 3, qid=np.arange(600) // 60)
    with pytest.raises(UsageError, match="for classifiers"):
        calibrate(train(numbers, task="ranking"), numbers)


def test_the_command_calibrates_a_copy_or_the_model_itself(tmp_path, run):
    X, y, _ = labelled()
    dump_svmlight_file(sp.csr_matrix(X), y, str(tmp_path / "rows.svm"), zero_based=False)
    model = tmp_path / "m.npz"
    save_model(train(streamcut.rows(X, y)), model)
    code, _, err = run("predict", model, tmp_path / "rows.svm", "--answer", "probabilities")
    assert (code, "calibrate" in err) == (2, True)
    before = model.read_bytes()
    code, out, _ = run("calibrate", model, tmp_path / "rows.svm", "-o", tmp_path / "p.npz", "--json")
    assert (code, json.loads(out)["rows"]) == (0, 600)
    assert model.read_bytes() == before
    assert run("calibrate", model, tmp_path / "rows.svm", "-o", tmp_path / "p.npz")[0] == 2
    assert run("calibrate", model, tmp_path / "rows.svm")[0] == 0
    assert pytest.approx(json.loads(out)["A"]) == load_model(model).link.A
    assert "probabilities_A" in run("info", tmp_path / "p.npz", "--json")[1]


@pytest.mark.parametrize("strategy", ["crammer-singer", "one-vs-rest"])
def test_several_classes_have_probabilities_close_to_the_truth(strategy, tmp_path):
    rng = np.random.default_rng(5)
    X = sp.csr_array(rng.normal(size=(900, 6)))
    W = rng.normal(size=(6, 4))
    truth = softmax(2.0 * (X @ W), axis=1)
    y = np.array([rng.choice(4, p=p) for p in truth]).astype(np.float64)
    model = train(streamcut.rows(X[:300], y[:300]), task="multiclass", strategy=strategy)
    fitted = calibrate(model, (X[300:600], y[300:600]))
    save_model(fitted, tmp_path / "m.npz")
    p = predict(tmp_path / "m.npz", X[600:], answer="probabilities")
    np.testing.assert_array_equal(p, fitted.probabilities_of(model.decision_function(X[600:])))
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    best = log_loss(y[600:], truth[600:])
    assert best < log_loss(y[600:], p) < best + 0.15


# --- labels that the optimum has, too -------------------------------------------------------------------------------------------


RBF = {"kernel": "rbf", "gamma": 0.5, "solver": "smo"}
CASES = {
    "logistic": {"loss": "logistic"},
    "logistic, no intercept": {"loss": "logistic", "intercept": "none"},
    "logistic, free": {"loss": "logistic", "intercept": "free"},
    "logistic, elastic net": {"loss": "logistic", "l1": 0.5},
    "squared hinge, free": {"loss": "squared-hinge", "intercept": "free"},
    "hinge, bias 5": {"bias": 5.0},
    "hinge, free": {"intercept": "free"},
    "logistic, scaled": {"loss": "logistic", "scale": "std"},
    "squared, free": {"loss": "squared", "task": "regression", "intercept": "free"},
    "poisson": {"loss": "poisson", "task": "regression"},
    "Crammer-Singer": {"task": "multiclass"},
    "softmax": {"task": "multiclass", "loss": "softmax"},
    "one-vs-rest": {"task": "multiclass", "strategy": "one-vs-rest", "loss": "logistic"},
    "kernel": {**RBF, "bias": 0.0},
    "kernel, free": RBF,
}


def of_case(name: str):
    """X and y for the case: classes, numbers, counts."""
    loss, task = CASES[name].get("loss"), CASES[name].get("task")
    of = ROWS["counts" if loss == "poisson" else "numbers" if task == "regression" else "classes" if task else "signs"]
    return of.X[:150], of.y[:150]


@pytest.mark.parametrize("name", CASES)
def test_the_optimum_is_where_it_is_said_to_be(name):
    X, y = of_case(name)
    limits = {"tol": None} | ({} if "kernel" in CASES[name] else {"max_passes": 2000})
    optimum = streamcut.train((X, y), **CASES[name], **limits, tol_relative=1e-11)
    scores = optimum.decision_function(X)
    labels = optimum.labels_of(scores)
    shares = []
    for tol in (1e-1, 1e-3, 1e-6):
        model = streamcut.train((X, y), **CASES[name], **limits, tol_relative=tol)
        found = streamcut.predict(model, X, answer="certified", trained_on=(X, y))
        if CASES[name].get("task") == "regression":
            ends = labels, labels
        else:
            assert np.array_equal(found.labels[found.proved], labels[found.proved])
            own = scores if scores.ndim == 1 else scores[np.arange(len(y)), model.decision_function(X).argmax(axis=1)]
            ends = own, own
        near = 1e-4 * (1.0 + np.abs(ends[0]))  # how far the tight training may be from the optimum
        assert np.all(found.low <= ends[0] + near)
        assert np.all(found.high >= ends[1] - near)
        shares.append(found.proved.mean())
    assert shares[2] > 0.9


def test_what_has_no_ball_is_refused():
    X, y = of_case("logistic")
    three = np.digitize(X @ np.ones(8), [-0.5, 0.8]).astype(float)
    several = {"task": "multiclass", "strategy": "one-vs-rest"}
    for options, trained_on, said in (
        ({"loss": "logistic", "intercept": "free"}, None, r"intercept is free.*trained"),
        ({"loss": "logistic", "intercept": "free"}, (X, -y), "fingerprints differ"),
        ({"loss": "logistic", "l1_only": 1.0}, None, "l1 alone"),
        ({**RBF, "solver": "bsca", "budget": 10}, None, "no proved predictions"),
        ({"kernel": "rbf", "gamma": 0.5, "fourier": 16}, None, "no proved predictions"),
        ({**several, "loss": "logistic", "intercept": "free"}, (X, three), "free intercepts of several classes"),
    ):
        model = streamcut.train((X, three if "task" in options else y), **options)
        with pytest.raises(UsageError, match=said):
            streamcut.predict(model, X, answer="certified", trained_on=trained_on)


def test_the_command_prints_what_is_proved(run, tmp_path):
    X, y = of_case("logistic, free")
    with streamcut.create(tmp_path / "rows.zarr") as store:
        store.append(X, y)
    store, model, out = (str(tmp_path / name) for name in ("rows.zarr", "m.npz", "out.csv"))
    asked = ("--loss", "logistic", "--intercept", "free", "--tol-relative", "1e-8")
    assert run("train", store, *asked, "-o", model)[0] == 0
    code, _, err = run("predict", model, store, "--answer", "certified", "--trained-on", store, "-o", out)
    assert (code, "labels are proved" in err) == (0, True)
    found = streamcut.predict(model, store, answer="certified", trained_on=store)
    lines = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    assert [float(line["low"]) for line in lines] == found.low.tolist()
    assert [line["proved"] == "true" for line in lines] == found.proved.tolist()
    assert run("predict", model, store, "--trained-on", store)[0] == 2


# --- standard errors ------------------------------------------------------------------------------------------------------------


def drawn(seed: int, n: int):
    """X (n, 4) of different scales, labels, clusters."""
    rng, scales = np.random.default_rng(seed), np.array([1.0, 30.0, 0.05, 1.0])
    X = np.round(rng.normal(size=(n, 4)), 3) * scales * (rng.random((n, 4)) < 0.8)
    s = X @ (rng.normal(size=4) / scales) + 0.5
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-s)), 1.0, -1.0)
    y[:2] = -1.0, 1.0
    return X, y, rng.integers(0, 7, n)


def test_next_to_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(0)
    n, clusters = 3000, rng.integers(0, 50, 3000)
    X = rng.normal(size=(n, 5)) * np.array([1.0, 10.0, 0.1, 1.0, 1.0])
    score = X @ np.array([0.5, 0.02, 3.0, 0.0, -0.4]) + 0.3 + rng.normal(size=50)[clusters]
    A = np.column_stack([X, np.ones(n)])
    cases = {
        "logistic": (np.where(rng.random(n) < 1 / (1 + np.exp(-score)), 1.0, -1.0), lambda y: sm.Logit((y > 0) * 1.0, A)),
        "squared": (score + rng.normal(size=n), lambda y: sm.OLS(y, A)),
        "poisson": (rng.poisson(np.exp(0.3 * score)).astype(float), lambda y: sm.Poisson(y, A)),
    }
    for loss, (y, peer) in cases.items():
        task = "binary" if loss == "logistic" else "regression"
        model = streamcut.train(
            (X, y), loss=loss, task=task, C=1e7, intercept="free", tol=None, tol_relative=1e-10, max_passes=300
        )
        for asked, own in (
            ({}, {"cov_type": "nonrobust"}),
            ({"robust": True}, {"cov_type": "HC0"}),
            ({"clusters": clusters}, {"cov_type": "cluster", "cov_kwds": {"groups": clusters}}),
        ):
            found = streamcut.standard_errors(model, (X, y), **asked)
            fitted = peer(y).fit(**own) if loss == "squared" else peer(y).fit(disp=0, tol=1e-12, maxiter=100, **own)
            np.testing.assert_allclose(found.error, fitted.bse, rtol=1e-6)
            np.testing.assert_allclose(found.z, fitted.tvalues, rtol=2e-5, atol=1e-6)
            if loss != "squared":  # whose p are of Student's t there
                np.testing.assert_allclose(found.p, fitted.pvalues, atol=1e-5)
                interval = np.column_stack([found.interval_low, found.interval_high])
                np.testing.assert_allclose(interval, fitted.conf_int(), rtol=1e-4, atol=1e-5)


def test_scaled_features_have_the_errors_of_their_own_units():
    X, y, clusters = drawn(1, 300)
    options = {"loss": "logistic", "tol": None, "tol_relative": 1e-9, "max_passes": 300}
    scaled = streamcut.train((X, y), scale="std", C=1e5, **options)
    plain = streamcut.train((X, y), C=1e9, **options)
    for asked in ({}, {"robust": True}, {"clusters": clusters}):
        one, other = (streamcut.standard_errors(model, (X, y), **asked) for model in (scaled, plain))
        np.testing.assert_allclose(one.error, other.error, rtol=1e-3)


def test_what_has_no_errors_is_refused():
    X, y, clusters = drawn(1, 40)
    hinge, logistic = streamcut.train((X, y)), streamcut.train((X, y), loss="logistic", tol_relative=1e-8)
    with pytest.raises(UsageError, match="no likelihood"):
        streamcut.standard_errors(hinge, (X, y))
    with pytest.raises(UsageError, match="fingerprints differ"):
        streamcut.standard_errors(logistic, (X[::-1], y))
    for wrong, said in (
        ("city", "neither 'qid'"),
        ("qid", "have none"),
        (clusters[:-1], "40 rows"),
        (0 * clusters, "1 clusters"),
    ):
        with pytest.raises(UsageError, match=said):
            streamcut.standard_errors(logistic, (X, y), clusters=wrong)


def test_the_command_prints_them(tmp_path, run):
    X, y, clusters = drawn(2, 200)
    with streamcut.create(tmp_path / "rows.zarr") as made:
        made.append(X, y)
    store, model, names = (str(tmp_path / name) for name in ("rows.zarr", "m.npz", "sites.txt"))
    run("train", store, "--loss", "logistic", "--intercept", "free", "--tol-relative", "1e-9", "--output", model)
    (tmp_path / "sites.txt").write_text("".join(f"site {k}\n" for k in clusters))
    for flags, asked in (
        ([], {}),
        (["--robust"], {"robust": True}),
        (["--cluster", names], {"clusters": clusters}),
    ):
        code, out, _ = run("explain", model, "--standard-errors", "--trained-on", store, "--sort", "feature", *flags)
        assert code == 0
        lines = list(csv.DictReader(io.StringIO(out)))
        found = streamcut.standard_errors(model, store, **asked)
        assert lines[0]["name"] == "(intercept)"
        for line, j in zip(lines, [-1, 0, 1, 2, 3], strict=True):
            for name in found._fields:
                assert float(line[name]) == getattr(found, name)[j]
    code, _, wrong = run("explain", model, "--robust")
    assert code == 2
    assert "--standard-errors" in wrong
