"""What no training does is refused by name before it begins: options of other tasks and solvers, unfit rows, row weights."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import streamcut
from streamcut.errors import BadInputError, UsageError

N = 24
X = np.random.default_rng(0).standard_normal((N, 4))
SIGNS, THREE, NUMBERS = np.tile([1.0, -1.0], N // 2), np.arange(N) % 3 + 1.0, X[:, 0].round(1)
QID = np.repeat(np.arange(N // 6), 6)
DATA = {
    "signs": {"y": SIGNS},
    "signs with weights": {"y": SIGNS, "weight": np.full(N, 2.0)},
    "classes": {"y": THREE},
    "numbers": {"y": NUMBERS},
    "ones": {"y": np.ones(N)},
    "ones with weights": {"y": np.ones(N), "weight": np.full(N, 2.0)},
    "queries": {"y": THREE, "qid": QID},
    "queries of one label": {"y": np.ones(N), "qid": QID},
    "queries of one row": {"y": THREE, "qid": np.arange(N)},
    "queries with weights": {"y": THREE, "qid": QID, "weight": np.full(N, 2.0)},
}
RBF, SEVERAL, REST = {"kernel": "rbf"}, {"task": "multiclass"}, {"task": "multiclass", "strategy": "one-vs-rest"}
NUMBER, CURVE = {"task": "regression"}, {"task": "regression", "kernel": "rbf"}
OPTIONS = [  # (rows, options, what the message says): UsageError
    *[
        ("signs", options, next(iter(options)))
        for options in (
            {"C": 0}, {"C": -1.0}, {"C": float("nan")}, {"C": "1"}, {"tol": -1}, {"max_passes": 0}, {"workers": 0}, {"bias": -1},
            {"max_cuts": 1}, {"lanes": 1.5}, {"no_such": 1}, {"tol": None, "tol_relative": None}, {"memory": "4"},
        )
    ],
    ("signs", {"solver": "cpa", "cut": "exact"}, "cut"),
    ("signs", {"solver": "bundle-dca", "max_cuts": 3}, "^max_cuts: 3 is an option of newton.*bundle-dca does not"),
    ("signs", {"solver": "bundle-dca", "row_cache": "100B"}, "row_cache: 100B is too little"),
    # the elastic net, λ‖w‖₁ alone, scaling
    ("signs", {"l1": 1.0, "loss": "f1"}, "l1"),
    ("signs", {"l1": -1.0}, "l1"),
    *[("signs", {"l1": part}, "l1") for part in ("0%", "-1%", "10", "ten%", "%")],
    ("signs", {"l1_only": 1.0}, "l1_only: 'hinge' is not one of its losses"),
    ("signs", {"loss": "logistic", "l1_only": 1.0, "intercept": "free", "solver": "newton"}, "newton has no free intercept"),
    ("signs", {"loss": "logistic", "solver": "working-set"}, "solver: working-set is for l1_only"),
    ("signs", {"loss": "logistic", "l1_only": 1.0, "l1": 1.0}, "l1_only: it replaces"),
    ("signs", {"loss": "logistic", "l1_only": 1.0, "solver": "bundle-dca"}, r"l1_only: 1\.0 is an option of newton, working-set"),
    ("signs", {"loss": "logistic", "l1_only": "-3%"}, "l1_only: '-3%' is not"),
    ("signs", {"scale": "std", "loss": "f1"}, "scale"),
    ("signs", {"scale": "std", **RBF, "nystroem": 5, "solver": "ocas"}, "scale"),
    ("signs", {"scale": "std", **RBF}, "scale"),
    # a free intercept
    ("signs", {"intercept": "free", "bias": 2.0}, "^bias:"),
    ("signs", {"intercept": "free", "l1": 1.0, "solver": "ocas"}, "^l1:"),
    ("numbers", {"intercept": "free", "l1": 1.0, **NUMBER, "loss": "poisson"}, "^l1:"),
    ("signs", {"intercept": "free", "l1": 1.0, "solver": "bundle-dca", "cut": "exact"}, "^cut:"),
    ("signs", {"intercept": "free", "loss": "f1", "solver": "ocas"}, "^intercept:"),
    ("classes", {"intercept": "free", **SEVERAL}, "^intercept:.* take strategy one-vs-rest"),
    ("classes", {"intercept": "free", **SEVERAL, "loss": "softmax"}, "take strategy one-vs-rest"),
    # several classes
    ("signs", REST, "task binary"),
    ("classes", {**REST, "solver": "ocas"}, "bundle-dca"),
    ("classes", {**REST, "solver": "cpa"}, "bundle-dca"),
    ("classes", {**REST, "target": 1.0}, "target: "),
    ("classes", {**SEVERAL, "positive_label": 1.0}, "positive_label"),
    ("classes", {**SEVERAL, "solver": "bundle-dca", "row_cache": "100B"}, "100B is too little for a row in each of 1 lanes"),
    ("classes", {**SEVERAL, "loss": "logistic"}, "loss: logistic for several classes needs strategy one-vs-rest"),
    ("classes", {**SEVERAL, "loss": "f1"}, "loss: 'f1' is not one of task multiclass, which has hinge, softmax"),
    ("classes", {**REST, "loss": "softmax"}, "strategy: loss softmax trains all classes together"),
    ("signs", {"loss": "softmax", "task": "binary"}, "loss: softmax is for task multiclass; for two classes use logistic"),
    # labellings, rankings, sequences, one class
    ("signs", {"loss": "f1", "positive_weight": 2.0}, "positive_weight"),
    ("signs", {"loss": "prec@k"}, "k"),
    ("queries", {"task": "ranking", "solver": "bundle-dca"}, "task ranking is trained by newton, ocas, cpa, not by bundle-dca"),
    ("queries", {"task": "ranking", "bias": 2.0}, "not of task ranking"),
    ("queries", {"task": "ranking", **RBF, "gamma": 1.0, "solver": "sampled-constant"}, "ranking"),
    ("queries", {"task": "sequence", **RBF, "gamma": 1.0, "nystroem": 5, "solver": "ocas"}, "sequence"),
    ("queries with weights", {"task": "sequence"}, "weights"),
    ("ones", {"task": "one-class", "nu": 1.5}, r"nu: 1\.5 is not a number above 0 and at most 1"),
    ("signs", {"task": "binary", "solver": "ocas", "nu": 0.5}, r"nu: 0\.5 is an option of"),
    ("ones", {"task": "one-class", "C": 2.0}, r"C: 2\.0 is an option of task"),
    # kernels
    ("signs", {"kernel": "poly", "gamma": 1.0, "fourier": 4}, "only the rbf kernel"),
    ("signs", {"fourier": 4}, "the linear kernel has none"),
    ("signs", {**RBF, "gamma": 1.0, "fourier": 5}, "an even number"),
    ("signs", {**RBF, "gamma": 1.0, "fourier": 4, "nystroem": 2}, "nystroem is given too"),
    ("signs", {**RBF, "solver": "pegasos"}, "bias: pegasos has none"),
    ("signs", {**RBF, "solver": "sbp", "positive_weight": 2.0}, "positive_weight: .* sbp does not have it"),
    ("signs", {**RBF, "solver": "sbp", "task": "multiclass"}, "task multiclass is trained by .*, not by sbp"),
    ("signs", {**RBF, "solver": "smo", "nu": 0.1}, "nu"),
    ("signs", {**RBF, "gamma": 1.0, "solver": "sampled-constant", "tol": None, "max_passes": 3}, "tol"),
    ("signs", {**RBF, "gamma": 1.0, "solver": "sampled-constant", "tol_relative": 0.1}, "tol_relative"),
    ("numbers", {**CURVE, "loss": "squared"}, "'squared' is not trained by bsca, which trains hinge, epsilon-ins"),
    ("signs", {**RBF, "loss": "logistic", "task": "binary"}, "loss: 'logistic' is not trained by bsca"),
    ("numbers", {**CURVE, "loss": "hinge"}, "loss: 'hinge' is not one of task regression"),
    ("numbers", {**CURVE, "loss": "huber", "delta": 0.5}, "delta"),
    ("numbers", {**CURVE, "loss": "quantile", "epsilon": 0.3}, "epsilon: loss 'quantile' does not have it"),
    ("numbers", {**CURVE, "positive_weight": 2.0}, "positive_weight: 2.0 is an option of task binary"),
    ("numbers", {**CURVE, "solver": "smo"}, "task regression is trained by .*bsca, bsgd, not by smo"),
    # starts
    ("signs", {"warm_start": "m.npz", **RBF, "solver": "smo"}, "warm_start"),
    ("signs", {"warm_start": "m.npz", "loss": "f1"}, "warm_start"),
    ("signs", {"warm_start": "m.npz", **RBF, "nystroem": 5, "solver": "ocas"}, "warm_start"),
]  # fmt: skip
ROWS = [  # the same: BadInputError
    ("classes", {"task": "binary"}, "positive_label"),
    ("signs", {"positive_label": 9.0}, "no row has the positive label 9"),
    ("ones", {}, "two classes"),
    ("ones", SEVERAL, "needs two classes"),
    ("signs with weights", {"loss": "f1"}, "weights"),
    ("queries of one label", {"task": "ranking"}, "nothing to rank"),
    ("queries of one row", {"task": "ranking"}, "no two rows of one query"),
    ("queries with weights", {"task": "ranking"}, "weights"),
    ("classes", {"task": "roc-area"}, "two labels"),
    ("classes", {"task": "sequence"}, "no qid"),
    ("queries of one label", {"task": "sequence"}, "different labels"),
    ("ones with weights", {"task": "one-class"}, "weights"),
]
CASES = [(UsageError, *case) for case in OPTIONS] + [(BadInputError, *case) for case in ROWS]


@pytest.mark.parametrize(("error", "rows", "options", "message"), CASES, ids=lambda value: str(value)[:60])
def test_what_no_training_does_is_refused_by_name(error, rows, options, message):
    with pytest.raises(error, match=message):
        streamcut.train(streamcut.rows(X, **DATA[rows]), **options)


def test_more_classes_than_a_training_takes():
    with pytest.raises(BadInputError, match="more than 4096 different labels"):
        streamcut.train(streamcut.rows(np.ones((5000, 1)), np.arange(5000.0)), task="multiclass")


def weighted(*weights: str, labels: tuple[int, ...] = (1, -1)) -> str:
    """Rows with these weights, labels in turn."""
    rows = zip(weights, labels * len(weights), strict=False)
    return "".join(f"{label}:{weight} {k % 3 + 1}:1 5:{k + 1}\n" for k, (weight, label) in enumerate(rows))


WEIGHTS = {
    "all": (weighted(*["0"] * 6), "", "all rows have weight 0"),
    "one class": (weighted(*["0", "1"] * 3), "", "all rows with label 1 have weight 0"),
    "one class, free intercept": (weighted(*["1", "0"] * 3), "--intercept free", "all rows with label -1 have weight 0"),
    "the rest": (
        weighted(*["1", "0", "0"] * 2, labels=(1, 2, 3)), "--positive-label 1", "a label other than 1 have weight 0",
    ),
    "the positive one": (weighted(*["0", "1", "1"] * 2, labels=(1, 2, 3)), "--positive-label 1", "all rows with label 1"),
    "one of several": (weighted(*["1", "1", "0"] * 2, labels=(1, 2, 3)), "--task multiclass", "all rows with label 3"),
    "one of several, each against the rest": (
        weighted(*["1", "1", "0"] * 2, labels=(1, 2, 3)), "--task multiclass --strategy one-vs-rest", "all rows with label 3",
    ),
    "huge": (weighted("1e308", "1"), "", "add up to 1e\\+308 .*overflow; scale"),
    "huge together": (weighted(*["1e155"] * 4), "", "overflow; scale"),
    "huge with C": (weighted("1e80", "1"), "--C 1e90", "overflow; scale"),
    "huge in one class": (weighted(*["1e307", "1"] * 2), "--kernel rbf --gamma 1 --solver bsca", "overflow; scale"),
}  # fmt: skip


@pytest.mark.filterwarnings("error")  # nothing of NumPy's
@pytest.mark.parametrize("case", WEIGHTS)
def test_weights_that_nothing_can_be_learnt_from(run, tmp_path, monkeypatch, case):
    text, options, words = WEIGHTS[case]
    monkeypatch.chdir(tmp_path)
    Path("a.svm").write_text(text)
    assert run("convert", "a.svm", "a.zarr", "--set", "label-weights=yes", "-q")[0] == 0
    code, out, err = run("train", "a.zarr", "--output", "m.npz", *options.split())
    assert (code, out) == (3, ""), err
    assert re.search(words, err), err
    assert err.count("\n") == 1  # nothing of NumPy's
    assert not Path("m.npz").exists()


def test_weights_beyond_any_sum_are_refused_by_convert(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.svm").write_text(weighted("1.7e308", "1.7e308"))
    code, _, err = run("convert", "a.svm", "a.zarr", "--set", "label-weights=yes")
    assert (code, "overflow" in err, "Warning" in err) == (3, True, False), err
