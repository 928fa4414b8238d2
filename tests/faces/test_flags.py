"""Translated options give the same problem: each program's objective is ours up to a factor."""

from __future__ import annotations

import itertools
import re
import shlex
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from kit.flags_classes import several
from sklearn.utils.class_weight import compute_class_weight

from streamcut.cli.flags import command as flags_command
from streamcut.cli.train import command as train_command
from streamcut.config import TrainOptions
from streamcut.errors import OtherProgramError, UsageError
from streamcut.flags import TOOLS, tool_of, translate


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


def test_svm_rank(data):
    """½‖w‖² + c/N Σ over queries of the pairs' hinge losses, their sum or their mean; a query of equal labels has no pair."""
    X, _, points = data
    rng = np.random.default_rng(3)
    grades, query = rng.integers(0, 3, 40), np.arange(40) // 8
    grades[query == 2] = 1
    pairs = [
        [(i, j) for i in range(40) for j in range(40) if query[i] == query[j] == q and grades[i] > grades[j]] for q in range(5)
    ]
    counts = {"rows": 40, "queries": 5, "pairs": sum(map(len, pairs)), "paired_queries": 4}
    for w in points:
        scores = X @ w[:3]
        losses = [[max(0.0, 1.0 - scores[i] + scores[j]) for i, j in some] for some in pairs]
        means = [np.mean(some) for some in losses if some]
        for text, theirs, ours in (
            ("-c 20", sum(map(sum, losses)) / 5, np.mean(np.concatenate(losses))),
            ("-c 20 -l 2", sum(means) / 5, np.mean(means)),
        ):
            found = translate("svm_rank", text, **counts).options
            assert float(found["--C"]) * 40 * ours == pytest.approx(20 * theirs, rel=1e-12)
            # the gap that they allow, c·ε, with ε times the pairs of a query for -l 1
            allowed = 20 * 0.001 * (counts["pairs"] / 5 if text == "-c 20" else 1)
            assert float(found["--tol"]) * float(found["--C"]) * 40 == pytest.approx(allowed, rel=1e-12)


def test_the_other_losses_of_svm_perf():
    found = translate("svm_perf", "-l 10 -c 20", rows=40).options
    assert (found["--task"], found["--C"]) == ("roc-area", "50")
    assert "--bias" not in found
    assert translate("svm_perf", "-l 4 -c 1", rows=40, positives=9).options["--k"] == "4"
    assert translate("svm_perf", "-l 5 --p 0.1 -c 1", rows=40, positives=9).options["--k"] == "1"


def test_libsvms_optimum_is_that_of_smo(data):
    from libsvm.svmutil import svm_predict, svm_train

    from streamcut.io.memory import MemoryDataset
    from streamcut.training import train

    X, y, _ = data
    text = "-t 1 -g 0.5 -r 1 -d 2 -c 2 -w-1 3"
    theirs = svm_train(y, X, f"{text} -e 1e-9 -q")
    scores = np.array(svm_predict(y, X, theirs, "-q")[2])[:, 0] * (1 if theirs.label[0] == 1 else -1)
    found = {name[2:].replace("-", "_"): value for name, value in translate("libsvm", text).options.items()}
    numbers = {name: float(found.pop(name)) for name in list(found) if name not in ("solver", "kernel")}
    model = train(MemoryDataset(X, y), **found, **numbers, tol=1e-9, tol_relative=0)
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-4)


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
    ("tool", "text", "loss"),
    [
        ("liblinear", "-c 1", "squared-hinge"),
        ("liblinear", "-s 2", "squared-hinge"),
        ("liblinear", "-s 0", "logistic"),
        ("liblinear", "-s 7", "logistic"),
        ("liblinear", "-s 3", None),
        ("vw", "--loss_function logistic --l2 1", "logistic"),
        ("sklearn", "LinearSVC()", "squared-hinge"),
        ("sklearn", 'SGDClassifier(loss="log_loss", fit_intercept=False)', "logistic"),
        ("sklearn", "SGDClassifier(fit_intercept=False)", None),
    ],
)
def test_losses(tool, text, loss):
    assert translate(tool, text, rows=10).options.get("--loss") == loss


@pytest.mark.parametrize(
    ("tool", "text", "named"),
    [
        ("liblinear", "-s 8 -R -x train.svm m more", ["-s 8", "-R", "-x", "more"]),
        ("liblinear", "-s 21 -v 5", ["-v", "cannot be measured"]),
        ("liblinear", "-s 2 -C -w1 3", ["-C"]),
        ("liblinear", "-s 8", ["-s 8"]),
        ("liblinear", "-s 3 -c one", ["'one'"]),
        ("liblinear", "-s 3 -c", ["-c needs a value"]),
        ("liblinear", "-s 3 -w1 1 -w2 1 -w3 1", ["two classes"]),
        ("liblinear", "-s 3 -w1 0", ["above 0"]),
        ("svm_perf", "-c 1", ["--rows"]),
        ("svm_perf", "-c 1 -l 0 -t 2 -y 1", ["-l 0", "-t 2", "-y"]),
        ("svm_perf", "-l 4 -p 1", ["--positives"]),
        ("svm_rank", "-l 0 -p 2", ["-l 0", "-p 2"]),
        ("svm_rank", "-c 1", ["--rows"]),
        ("svm_hmm", "--t 2 --e 1 --b 100", ["--t 2", "--e 1", "--b 100"]),
        ("svm_hmm", "-c 1", ["--queries"]),
        ("libsvm", "-s 3 -t 3 -n 5", ["-s 3", "-t 3", "-n"]),
        ("libsvm", "-c 1", ["--features"]),
        ("liblinear", "-s 4 -w1 2", ["-w"]),
        ("vw", "--l2 1 --loss_function poisson --lda 3", ["poisson", "--lda"]),
        ("vw", "-t -q ab --ngram 2 -p out.txt", ["-t", "--quadratic", "convert --cross", "--ngram", "streamcut predict"]),
        ("vw", "--l1 1e-6", ["--l1"]),
        ("vw", "--loss_function hinge --l2 1", ["--rows"]),
        ("sklearn", 'LinearSVC(loss="log_loss")', ["log_loss"]),
        ("sklearn", 'SGDClassifier(loss="huber", fit_intercept=False)', ["huber"]),
        ("sklearn", 'LinearSVC(loss="hinge", penalty="l1", foo=1)', ["'l1'", "foo"]),
        ("sklearn", 'LinearSVC(loss="hinge", class_weight="balanced")', ["balanced", "--rows"]),
        ("sklearn", 'LinearSVC(class_weight="even")', ["'even'"]),
        ("sklearn", "SGDClassifier(l1_ratio=0.1, penalty='elasticnet')", ["fit_intercept=True"]),
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
    [
        ("liblinear", "-s 3 -c 0.1 -B 1 -w1 2 -q -n 2"),
        ("liblinear", "-s 4"),
        ("libsvm", "-t 1 -g 0.5 -r 1 -c 3 -m 100 -q -h 0 -e 0.01"),
        ("libsvm", "-t 2 -g 0.5 -w1 2"),
        ("libsvm", "-t 0"),
        *[("svm_perf", f"-c 3 -v 0 -l {kind}") for kind in (1, 2, 3, 4, 5, 10)],
        ("svm_rank", "-c 3 -w 3"),
        ("svm_rank", "-c 3 -l 2"),
        ("svm_hmm", "-c 3 -e 0.5"),
        ("sklearn", 'LinearSVC(loss="hinge")'),
    ],
)
def test_train_accepts_what_flags_prints(tool, text):
    counts = {"rows": 100, "positives": 40, "queries": 10, "pairs": 60, "paired-queries": 9}
    words = [word for name, count in counts.items() for word in (f"--{name}", str(count))]
    run = CliRunner().invoke(flags_command, ["--from", tool, *words, text])
    assert run.exit_code == 0, run.output
    words = shlex.split(run.stdout)
    context = train_command.make_context("train", ["data.zarr", "--model", "m.npz", *words])
    assert context.params["C"][0] > 0
    known = {name: value for name, value in context.params.items() if name in TrainOptions.__dataclass_fields__}
    TrainOptions(**known | {name: known[name][0] for name in ("C", "l1", "l1_only")})


@pytest.mark.parametrize(
    ("tool", "text", "line"),
    [
        ("liblinear", "train -s 3 -c 1 -B 1 train.svm", "train train.svm --output train.svm.model.npz --C 1 --bias 1"),
        (
            "liblinear",
            "./liblinear-train -q -s 0 -v 5 -c 2 'my data.svm' out/m",
            "tune 'my data.svm' --output out/m.npz --loss logistic --C 2 --bias 0 --folds 5 --quiet",
        ),
        (
            "liblinear",
            "-s 2 -C a.svm",
            "tune a.svm --output a.svm.model.npz --loss squared-hinge --C 0.0001,0.001,0.01,0.1,1,10,100,1000 --bias 0 --folds 5",
        ),
        ("liblinear", "-s 0 -B 1 -R a b", "train a --output b.npz --loss logistic --C 1 --intercept free"),
        ("libsvm", "svm-train -t 2 a b", "train a --output b.npz --solver smo --kernel rbf --gamma 0.25 --C 1"),
        (
            "svm_perf",
            "svm_perf_learn -c 1 -l 10 a b",
            "train a --output b.npz --task roc-area --C 10 --tol 0.001 --tol-relative 0",
        ),
        (
            "vw",
            "vw -d a.vw -f m.vw --loss_function logistic --l2 0.1 -b 24 --passes 9 -c -k",
            "train a.vw --output m.vw.npz --loss logistic --C 1 --bias 1 --hash-bits 24",
        ),
        (
            "vw",
            "--loss_function hinge -f m a.vw",
            "tune a.vw --output m.npz --bias 1 --folds 5 --C 0.01,0.1,1,10,100",
        ),
    ],
)
def test_whole_command_lines(tool, text, line):
    found = translate(tool, text, rows=10, features=4)
    assert found.text() == f"streamcut {line}"
    command = import_module(f"streamcut.cli.{found.command}").command
    command.make_context(found.command, shlex.split(line)[1:])
    run = CliRunner().invoke(flags_command, ["--from", tool, "--rows", "10", "--features", "4", "--", *shlex.split(text)])
    assert run.stdout == f"streamcut {line}\n"


def test_balanced_classes(data):
    X, y, points = data
    positives = int((y > 0).sum())
    text = 'clf = LinearSVC(loss="hinge", C=0.3, class_weight="balanced", fit_intercept=False).fit(X, y)'
    found = {name: float(value) for name, value in translate("sklearn", text, rows=40, positives=positives).options.items()}
    weights = compute_class_weight("balanced", classes=np.array([-1.0, 1.0]), y=y)
    for w in points:
        hinge = np.maximum(0, 1 - y * (X @ w[:3]))
        theirs = 0.5 * w @ w + 0.3 * np.where(y > 0, weights[1], weights[0]) @ hinge
        assert our_objective(w, X, y, found) == pytest.approx(theirs, rel=1e-12)


_GIVEN = {"C": 3.0, "c": 7.0, "m": 50.0, "p": 0.2, "P": 90.0, "N": 9.0, "g": 0.5, "λ": 0.01}
_THERE = {  # what the page's table says of other programs: (option that it goes with here, or None; program; command line)
    "LIBLINEAR `-s 3 -c C -B 1`": [(None, "liblinear", "-s 3 -c 3 -B 1"), (None, "sklearn", 'LinearSVC(loss="hinge", C=3)')],
    "LIBLINEAR `-s 1` or `-s 2`, `-c C -B 1`": [
        (None, "liblinear", "-s 1 -c 3 -B 1"), (None, "liblinear", "-s 2 -c 3 -B 1"), (None, "sklearn", "LinearSVC(C=3)"),
    ],
    "LIBLINEAR `-s 0` or `-s 7`, `-c C -B 1`": [
        (None, "liblinear", "-s 0 -c 3 -B 1"), (None, "liblinear", "-s 7 -c 3 -B 1"),
        ("--intercept free", "sklearn", "LogisticRegression(C=3)"),
    ],
    "LIBLINEAR `-s 4 -c C -B 1`": [(None, "liblinear", "-s 4 -c 3 -B 1")],
    "LIBLINEAR `-s 11`, `-s 13`, `-p p -c C -B 1`": [
        ("squared-epsilon-insensitive", "liblinear", "-s 11 -p 0.2 -c 3 -B 1"),
        ("epsilon-insensitive", "liblinear", "-s 13 -p 0.2 -c 3 -B 1"),
    ],
    "svm_perf `-c c`": [
        (None, "svm_perf", "-c 7"), ("--task roc-area", "svm_perf", "-c 7 -l 10"), ("--loss f1", "svm_perf", "-c 7 -l 1"),
        ("prbep", "svm_perf", "-c 7 -l 3"), ("prec@k", "svm_perf", "-c 7 -l 4"), ("rec@k", "svm_perf", "-c 7 -l 5"),
    ],
    "svm_rank `-l 1 -c c`, N queries with P pairs in all": [(None, "svm_rank", "-l 1 -c 7")],
    "LIBSVM `-t 2 -g g -c C`": [(None, "libsvm", "-t 2 -g 0.5 -c 3")],
    "Pegasos, SGD, Vowpal Wabbit with λ": [
        (None, "vw", "--loss_function hinge --l2 0.01"), (None, "sklearn", "SGDClassifier(alpha=0.01, fit_intercept=False)"),
    ],
}  # fmt: skip


def _table() -> list[tuple[str, str]]:
    """The rows (there, here) of the table for those who come from other programs, wherever it stands."""
    root = Path(__file__).parents[2]
    for page in (root / "README.md", *sorted((root / "docs").rglob("*.md"))):
        _, header, after = page.read_text().partition("| there | here |\n|---|---|\n")
        if header:
            lines = itertools.takewhile(lambda line: line.startswith("|"), after.splitlines())
            return [tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in lines]
    raise AssertionError("no page has the table")


def test_flags_says_what_the_table_of_other_programs_says():
    known = set()
    for there, here in _table():
        name = next((each for each in _THERE if there.split(";")[0] == each), None)
        assert name is not None, f"no example of {there!r}: add one"
        known.add(name)
        spans = re.findall("`([^`]*)`", here)
        always = [span for span in spans if "--C" in span or ("--task" in span and "roc-area" not in span)]
        for alone, tool, text in _THERE[name]:
            found = translate(tool, text, rows=50, queries=9, pairs=90, positives=20).options
            assert alone is None or any(alone in span.split() or alone == span for span in spans), (there, alone)
            wanted = " ".join([*always, *([alone] if alone and alone.startswith("--") else [])]).split()
            for option, value in itertools.pairwise(wanted):
                if not option.startswith("--") or (option == "--loss" and alone):
                    continue
                expected = value.replace("·", "*")
                if re.fullmatch(r"[CcmpPNgλ0-9*/().]+", expected):
                    assert float(found[option]) == pytest.approx(eval(expected, {}, _GIVEN)), (there, option)
                else:
                    assert found[option] == value, (there, option)
            if alone and not alone.startswith("--"):
                assert found["--loss"] == alone
    assert known == set(_THERE)


def test_an_open_quotation_mark_is_named():
    with pytest.raises(UsageError, match="quotation"):
        translate("liblinear", "-s 3 -c '1")


@pytest.mark.parametrize("C", [0.1, 1 / 3, 1e-7, 12345678.9, 1e300])
def test_numbers_come_through_exactly(C):
    assert options("liblinear", f"-s 3 -c {C!r}")["--C"] == C


RESIDUALS = {
    "squared": lambda r, epsilon: 0.5 * r * r,
    "huber": lambda r, delta: np.where(abs(r) <= delta, 0.5 * r * r, delta * (abs(r) - 0.5 * delta)),
    "epsilon-insensitive": lambda r, epsilon: np.maximum(0.0, abs(r) - epsilon),
    "squared-epsilon-insensitive": lambda r, epsilon: np.maximum(0.0, abs(r) - epsilon) ** 2,
    "quantile": lambda r, tau: np.maximum(tau * r, (tau - 1.0) * r),
}


@pytest.mark.parametrize(
    ("tool", "text", "theirs"),
    [  # `theirs` is the objective over residuals r = y − s of 40 rows, in any unit
        ("liblinear", "-s 11 -c 3", lambda w, r: 0.5 * w @ w + 3 * np.sum(np.maximum(0, abs(r) - 0.1) ** 2)),
        ("liblinear", "-s 12 -c 3 -p 0.5", lambda w, r: 0.5 * w @ w + 3 * np.sum(np.maximum(0, abs(r) - 0.5) ** 2)),
        ("liblinear", "-s 13 -p 0", lambda w, r: 0.5 * w @ w + np.sum(abs(r))),
        ("vw", "--bfgs --l2 0.8 --noconstant", lambda w, r: 0.4 * w @ w + np.sum(r * r)),
        ("vw", "--l2 0.02 --noconstant", lambda w, r: 0.01 * w @ w + np.mean(r * r)),
        (
            "vw",
            "--loss_function quantile --quantile_tau 0.9 --l2 0.02 --noconstant",
            lambda w, r: 0.01 * w @ w + np.mean(np.maximum(0.9 * r, -0.1 * r)),
        ),
        ("sklearn", "LinearSVR(C=2, fit_intercept=False)", lambda w, r: 0.5 * w @ w + 2 * np.sum(abs(r))),
        ("sklearn", "Ridge(alpha=5, fit_intercept=False)", lambda w, r: 5 * w @ w + np.sum(r * r)),
        (
            "sklearn",
            'SGDRegressor(loss="huber", alpha=0.1, epsilon=0.3, fit_intercept=False)',
            lambda w, r: 0.05 * w @ w + np.mean(np.where(abs(r) <= 0.3, 0.5 * r * r, 0.3 * abs(r) - 0.045)),
        ),
    ],
)
def test_regressions(data, tool, text, theirs):
    X, _, points = data
    y = np.random.default_rng(1).normal(size=40)
    found = translate(tool, text, rows=40).options
    TrainOptions(**{name[2:].replace("-", "_"): _value(value) for name, value in found.items()})
    loss = found.get("--loss", "squared")
    parameter = float(found.get("--epsilon") or found.get("--delta") or found.get("--quantile") or 0.0)
    assert (found["--task"], float(found["--bias"])) == ("regression", 0.0)
    parts = []
    for w in points:
        r = y - X @ w[:3]
        ours = 0.5 * w[:3] @ w[:3] + float(found["--C"]) * np.sum(RESIDUALS[loss](r, parameter))
        parts.append(ours / theirs(w[:3], r))
    np.testing.assert_allclose(parts, parts[0], rtol=1e-12)


def test_one_class():
    assert translate("liblinear", "-s 21 -n 0.1").options == {"--task": "one-class", "--nu": "0.1"}
    assert translate("liblinear", "-s 21 -c 7").options == {"--task": "one-class", "--nu": "0.5"}
    with pytest.raises(UsageError, match="-s 21 has neither class weights nor a bias"):
        translate("liblinear", "-s 21 -B 1")


def _value(text):
    try:
        return float(text)
    except ValueError:
        return text


def test_liblinears_sparse_problem_is_ours(data):
    """-s 6 leaves ½‖w‖² out."""
    from liblinear.liblinearutil import train as liblinear

    from streamcut.io.memory import MemoryDataset
    from streamcut.training import train

    X, y, _ = data
    theirs = liblinear(y, X, "-s 6 -c 0.5 -e 1e-8 -q")
    w = np.array([theirs.get_decfun_coef(j + 1) for j in range(3)]) * (1 if theirs.get_labels()[0] == 1 else -1)
    found = several("liblinear", "-s 6 -c 0.5")
    ours = train(MemoryDataset(X, y), **found, tol=1e-5, tol_relative=None, scheduler="sync")

    def objective(w):
        return np.abs(w).sum() + 0.5 * np.logaddexp(0.0, -y * (X @ w)).sum()

    assert objective(ours.weights) <= objective(w) * 1.001
    assert ours.certificate.lower_bound <= objective(w)
    assert ours.certificate.primal == pytest.approx(objective(w), rel=1e-3)
    assert several("sklearn", "LogisticRegression(l1_ratio=1, C=0.5, fit_intercept=False)") == {**found, "bias": 0.0}
    assert several("sklearn", "Lasso(alpha=0.1, fit_intercept=False)", rows=50)["C"] == pytest.approx(0.2)
    assert translate("liblinear", "-s 6", classes=3).options["--l1"] == "100"
    with pytest.raises(UsageError, match="l1"):
        translate("sklearn", "LogisticRegression(l1_ratio=1, fit_intercept=False)", classes=3)


def test_free_intercepts_of_liblinear_and_vw():
    assert translate("liblinear", "-s 2 -B 1 -R").options["--intercept"] == "free"
    assert translate("vw", "--bfgs --no_bias_regularization --l2 1").options["--intercept"] == "free"
    assert (
        "--intercept" not in translate("vw", "--sgd --no_bias_regularization --l2 1", rows=9).options
    )  # which has no effect there
    for text in ("-s 2 -R", "-s 3 -B 1 -R", "-s 2 -B 2 -R"):
        with pytest.raises(UsageError, match="-R"):
            translate("liblinear", text)


@pytest.mark.parametrize(
    ("line", "tool"),
    [
        ("train -s 2 -c 1 -B 1 a.svm m", "liblinear"),
        ("/opt/liblinear/train -s 0 a.svm", "liblinear"),
        ("svm-train -t 2 -g 0.01 a.svm", "libsvm"),
        ("svm_rank_learn -c 3 a m", "svm_rank"),
        ("vw a.vw --bfgs --l2 1", "vw"),
        ("LinearSVC(C=1)", "sklearn"),
    ],
)
def test_a_whole_line_says_whose_it_is(run, line, tool):
    assert tool_of(line) == tool
    counts = ("--rows", 100, "--queries", 10, "--pairs", 50, "--features", 5)
    assert run("flags", line, *counts) == run("flags", "--from", tool, line, *counts)


def test_options_alone_do_not_say_whose_they_are(run):
    code, _, err = run("flags", "-s 2 -c 1")
    assert code == 2
    assert "name it with --from: liblinear" in err


def test_a_lasso_has_its_free_intercept():
    options = translate("sklearn", "Lasso(alpha=0.1)", rows=50).options
    assert options["--l1-only"] == "1"
    assert options["--intercept"] == "free"
    with pytest.raises(OtherProgramError, match="fit_intercept"):
        translate("sklearn", "ElasticNet(alpha=0.1, l1_ratio=0.5)", rows=50)
