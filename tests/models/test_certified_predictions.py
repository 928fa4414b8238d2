"""`predict(answer="certified")`: the exact optimum's scores are in the intervals, and a proved label is the optimum's."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut.errors import UsageError

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


def rows(name: str, n: int = 150):
    """X (n, 6), y for the case: classes, numbers, counts."""
    rng = np.random.default_rng(len(name))
    X = sp.random_array((n, 6), density=0.6, format="csr", rng=rng, data_sampler=rng.standard_normal)
    s = X @ rng.standard_normal(6) + 0.5 * rng.standard_normal(n) + 0.3
    task = CASES[name].get("task", "binary")
    if task == "multiclass":
        return X, np.digitize(s, [-0.5, 0.8]).astype(float)
    if task == "regression":
        return X, rng.poisson(np.exp(np.clip(0.5 * s, -3.0, 3.0))).astype(float)
    return X, np.where(s > 0.0, 1.0, -1.0)


@pytest.mark.parametrize("name", CASES)
def test_the_optimum_is_where_it_is_said_to_be(name):
    X, y = rows(name)
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
    X, y = rows("logistic")
    three = np.digitize(X @ np.ones(6), [-0.5, 0.8]).astype(float)
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
    X, y = rows("logistic, free")
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
