"""Translated options give the same problem: each program's objective is ours up to a factor."""

from __future__ import annotations

import shlex

import numpy as np
import pytest
from click.testing import CliRunner

from streamcut.cli.flags import command as flags_command
from streamcut.cli.train import command as train_command
from streamcut.errors import UsageError
from streamcut.flags import TOOLS, translate


def options(tool, text, rows=None) -> dict[str, float]:
    """Our options as numbers."""
    found = translate(tool, text, rows=rows).options
    return {name: float(value) for name, value in found.items() if value}


def our_objective(w, X, y, found):
    """F of `streamcut train` with the options `found`; w has the weight of the bias feature last."""
    Z = np.column_stack([X, np.full(len(X), found.get("--bias", 1.0))])
    positive = y == found.get("--positive-label", y.max())
    u = np.where(positive, found.get("--positive-weight", 1.0), 1.0)
    hinge = np.maximum(0, 1 - np.where(positive, 1, -1) * (Z @ w))
    return 0.5 * w @ w + found["--C"] * u @ hinge


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    return X, np.where(X[:, 0] + rng.normal(size=40) > 0.4, 1.0, -1.0), [rng.normal(size=4) for _ in range(5)]


@pytest.mark.parametrize(
    ("text", "C_positive", "C_negative", "bias"),
    [
        ("-s 3", 1, 1, 0),
        ("-s 3 -c 0.25 -B 1", 0.25, 0.25, 1),
        ("-s 3 -c 2 -B 0.5 -w1 3", 6, 2, 0.5),
        ("-s 3 -c 2 -w-1 0.1", 2, 0.2, 0),
        ("-s 3 -w1 3 -w-1 0.5 -B 1", 3, 0.5, 1),
    ],
)
def test_liblinear(data, text, C_positive, C_negative, bias):
    X, y, points = data
    found = options("liblinear", text)
    for w in points:
        hinge = np.maximum(0, 1 - y * (np.column_stack([X, np.full(40, bias)]) @ w))
        theirs = 0.5 * w @ w + np.where(y > 0, C_positive, C_negative) @ hinge
        assert our_objective(w, X, y, found) == pytest.approx(theirs, rel=1e-12)


def test_the_translated_problem_has_liblinears_optimum(data):
    from liblinear.liblinearutil import predict, train

    X, y, _ = data
    text = "-s 3 -c 0.5 -B 1 -w1 2"
    fitted = train(y, X, f"{text} -e 1e-9 -q")
    w = np.array([fitted.w[j] for j in range(4)]) * (1 if fitted.label[0] == 1 else -1)
    assert np.mean(np.array(predict(y, X, fitted, "-q")[0]) == np.where(np.column_stack([X, np.ones(40)]) @ w > 0, 1, -1)) == 1
    found = options("liblinear", text)
    best = our_objective(w, X, y, found)
    rng = np.random.default_rng(1)
    assert all(our_objective(w + 1e-3 * rng.normal(size=4), X, y, found) > best for _ in range(50))


def test_svm_perf(data):
    X, y, points = data
    found = options("svm_perf", "-c 20 -w 3 -l 2 --b 0.5 -e 0.2", rows=40)
    for w in points:
        hinge = np.maximum(0, 1 - y * (np.column_stack([X, np.full(40, 0.5)]) @ w))
        assert our_objective(w, X, y, found) == pytest.approx(0.5 * w @ w + 20 * 100 * hinge.mean(), rel=1e-12)
    assert found["--tol"] == pytest.approx(0.002)
    assert found["--tol-relative"] == 0


@pytest.mark.parametrize(
    ("tool", "text", "lam"),
    [
        ("vw", "--loss_function hinge --l2=0.01 --noconstant --passes 3 -b 20", 0.01),
        ("sklearn", "SGDClassifier(alpha=0.01, fit_intercept=False)", 0.01),
        ("sklearn", "sklearn.linear_model.SGDClassifier(fit_intercept=False, max_iter=5)", 1e-4),
    ],
)
def test_regularisation_per_row(data, tool, text, lam):
    X, y, points = data
    found = options(tool, text, rows=40)
    assert found["--bias"] == 0
    for w in points:
        hinge = np.maximum(0, 1 - y * (X @ w[:3]))
        theirs = lam / 2 * w @ w + hinge.mean()
        assert our_objective(w, X, y, found) * lam == pytest.approx(theirs, rel=1e-12)


def test_linear_svc():
    found = translate("sklearn", 'LinearSVC(loss="hinge", C=0.1, intercept_scaling=2, class_weight={0: 0.5}, dual=True)')
    assert found.text() == "--C 0.05 --positive-weight 2 --bias 2"
    assert "dual" in found.notes[0]
    assert options("sklearn", 'LinearSVC(loss="hinge", fit_intercept=False)') == {"--C": 1, "--bias": 0}
    several = options("sklearn", 'LinearSVC(loss="hinge", class_weight={1: 2, 2: 6})')
    assert several == {"--C": 2, "--positive-weight": 3, "--positive-label": 2, "--bias": 1}


@pytest.mark.parametrize(
    ("tool", "text", "named"),
    [
        ("liblinear", "-s 2 -v 5 -R train.svm", ["-s 2", "-v", "-R", "train.svm"]),
        ("liblinear", "-c 1", ["-s 1"]),
        ("liblinear", "-s 3 -c one", ["'one'"]),
        ("liblinear", "-s 3 -c", ["-c needs a value"]),
        ("liblinear", "-s 3 -w1 1 -w2 1 -w3 1", ["two classes"]),
        ("liblinear", "-s 3 -w1 0", ["above 0"]),
        ("svm_perf", "-c 1", ["--rows"]),
        ("svm_perf", "-c 1 -l 10 -t 2 -y 1", ["-l 10", "-t 2", "-y"]),
        ("vw", "--l2 1 --bfgs", ["squared", "--bfgs"]),
        ("vw", "--loss_function hinge", ["--l2 0"]),
        ("vw", "--loss_function hinge --l2 1", ["--rows"]),
        ("sklearn", "LinearSVC()", ["squared_hinge"]),
        ("sklearn", 'LinearSVC(loss="hinge", penalty="l1", foo=1)', ["'l1'", "foo"]),
        ("sklearn", 'LinearSVC(loss="hinge", class_weight="balanced")', ["balanced"]),
        ("sklearn", "SGDClassifier()", ["fit_intercept=True"]),
        ("sklearn", "SVC(C=1)", ["SVC has no counterpart"]),
        ("sklearn", "LinearSVC(C=c)", ["named literals"]),
        ("sklearn", "import os", ["named literals"]),
        ("shogun", "-c 1", ["shogun", *TOOLS]),
    ],
)
def test_what_has_no_counterpart_is_named(tool, text, named):
    with pytest.raises(UsageError) as refused:
        translate(tool, text)
    for word in named:
        assert word in str(refused.value)


@pytest.mark.parametrize(
    ("tool", "text"),
    [("liblinear", "-s 3 -c 0.1 -B 1 -w1 2 -q -n 2"), ("svm_perf", "-c 3 -v 0"), ("sklearn", 'LinearSVC(loss="hinge")')],
)
def test_train_accepts_what_flags_prints(tool, text):
    run = CliRunner().invoke(flags_command, ["--from", tool, "--rows", "100", text])
    assert run.exit_code == 0, run.output
    words = shlex.split(run.stdout)
    context = train_command.make_context("train", ["data.zarr", "--model", "m.npz", *words])
    assert context.params["C"][0] > 0


def test_an_open_quotation_mark_is_named():
    with pytest.raises(UsageError, match="quotation"):
        translate("liblinear", "-s 3 -c '1")


@pytest.mark.parametrize("C", [0.1, 1 / 3, 1e-7, 12345678.9, 1e300])
def test_numbers_come_through_exactly(C):
    assert options("liblinear", f"-s 3 -c {C!r}")["--C"] == C
