"""certify on models of other programs: what their files and command lines say is the problem that they solved, or is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from kit.certify import rows

import streamcut
from streamcut.certifying.model_files import read_problem
from streamcut.errors import StreamcutError, UsageError

HEAD = "Version 9.11.9\nId \nMin label:-1\nMax label:1\nbits:18\nlda:0\n0 ngram:\n0 skip:\noptions:{}\nChecksum: 1\n:{}\n"
WHOLE = " --passes 100 --predict_only_model --termination 1e-9"
STATE = "initial_t 1\nnorm normalizer 0\nt 301\ntotal_weight 0\nsd::oec.weighted_labeled_examples 0\nl1_state {}\nl2_state {}\n"


@pytest.fixture
def made():
    X, y = rows(12, n=300)
    return np.round(X / np.abs(X).max(axis=0), 6), y


def by_vw(tmp_path, X, y, command):
    """The readable model that vw makes of these rows, numbered from 1."""
    pyvw = pytest.importorskip("vowpalwabbit.pyvw")
    lines = [f"{t:g} | " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(x)) for t, x in zip(y, X.tolist(), strict=True)]
    (tmp_path / "rows.vw").write_text("\n".join(lines) + "\n")
    place = tmp_path / f"model{len(list(tmp_path.iterdir()))}.txt"
    files = f"-d {tmp_path / 'rows.vw'} --readable_model {place} --cache_file {place}.cache -k --holdout_off --quiet"
    pyvw.Workspace(f"{files} {command}").finish()
    return place


@pytest.mark.parametrize(
    ("command", "close"),
    [
        ("--bfgs --l2 0.5 --loss_function logistic" + WHOLE, 1e-4),
        ("--bfgs --l2 0.5 --no_bias_regularization --loss_function logistic" + WHOLE, 1e-4),
        ("--bfgs --l2 2 --noconstant --loss_function logistic" + WHOLE, 1e-4),
        ("--sgd --l2 0.02 --loss_function logistic --passes 300 -l 0.5 --power_t 0.5", 5e-3),
        ("--sgd --l2 0.02 --loss_function logistic --passes 300 -l 0.5 --power_t 0.5 --predict_only_model", 5e-3),
        ("--sgd --l2 0.02 --loss_function hinge --passes 300 -l 0.5 --power_t 0.5", 0.1),
    ],
)
def test_what_vw_has_solved_is_the_optimum_here(tmp_path, made, command, close):
    """A wrong λ, a weight that is not shrunk, or another feature would leave it far from the optimum."""
    X, y = made
    place = by_vw(tmp_path, X, y, command)
    found = streamcut.certify(place, (X, y), 12, trained_by=f"vw {command}")
    assert found.at_most < close, found.passes
    zero = streamcut.certify(place, (X, y), 12, trained_by=f"vw {command.replace('--l2 ', '--l2 9')}")
    assert zero.at_least > 0.01  # of another penalty


def test_adaptive_runs_are_refused_and_may_be_judged(tmp_path, made):
    X, y = made
    command = "--l2 0.01 --loss_function logistic"
    place = by_vw(tmp_path, X, y, command)
    with pytest.raises(UsageError, match="--adaptive, --normalized"):
        streamcut.certify(place, (X, y), trained_by=f"vw {command}")
    with pytest.raises(UsageError, match="give C, loss, intercept"):
        streamcut.certify(place, (X, y))
    assert streamcut.certify(place, (X, y), C=1.0, loss="logistic", intercept=1.0).at_least > 0.0


def test_text_of_vw(tmp_path):
    """As version 9.11 writes it: of a run that can be resumed, of one that cannot, and of adaptive steps."""
    body = "1:2 122.699 1.94\n3:-4 183.2 2.42\n116060:0.5 230 1\n"
    cases = {
        HEAD.format(" --sgd", 1) + STATE.format(0, 0.5) + "1:2\n3:-4\n116060:0.5\n": ([1.0, 0.0, -2.0], 0.25),
        HEAD.format(" --bfgs", 0) + "1:2\n3:-4\n116060:0.5\n": ([2.0, 0.0, -4.0], 0.5),
        HEAD.format("", 1) + STATE.format(0, 1) + body: ([2.0, 0.0, -4.0], 0.5),
        HEAD.format(" --learning_rate 0.05 --link=logistic --noconstant", 0): ([], 0.0),
    }
    for text, (weights, intercept) in cases.items():
        (tmp_path / "m.txt").write_text(text)
        found = read_problem(str(tmp_path / "m.txt"))
        assert (found.weights.tolist(), found.intercept) == (weights, intercept)
    (tmp_path / "m.txt").write_text(HEAD.format("", 0) + "0:2\n3:-4\n")
    with pytest.raises(UsageError, match="--index-base 0"):
        read_problem(str(tmp_path / "m.txt"))
    assert read_problem(str(tmp_path / "m.txt"), index_base=0).weights.tolist() == [2.0, 0.0, 0.0, -4.0]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (HEAD.format(" --interactions ab", 0), "--interactions"),
        (HEAD.format(" --quadratic ::", 0), "--quadratic"),
        (HEAD.format(" --oaa 3", 0), "--oaa"),
        (HEAD.format(" --link=glf1", 0), "--link"),
        (HEAD.format("", 0).replace("0 ngram:", "0 ngram:2"), "ngram"),
        (HEAD.format("", 1) + STATE.format(0.25, 1), "--l1"),
        (HEAD.format("", 0) + "site^a:3:0.5\n", "--readable_model"),
        (HEAD.format("", 0) + "3:0.5\n3:0.25\n", "not all different"),
        (HEAD.format("", 0) + "300000:0.5\n", "below 2"),
        (HEAD.format("", 0) + "3:inf\n", "finite"),
        (HEAD.format("", 0) + "3:x\n", "not a well-formed"),
        (HEAD.format("", 0) + "3:\n", "not a well-formed"),
        (HEAD.format("", 0).replace("bits:18", "bits:10000000000"), "bits"),
        (HEAD.format("", 0).replace("bits:18\n", ""), "not a well-formed"),
        (HEAD.format("", 0) + "9" * 40 + ":1\n", "not a well-formed"),
        (HEAD.format("", 0) + "3:" + "9" * 5000 + "\n", "finite"),
        (HEAD.format("", 0) + "3:1\n\x00\xff", "not a well-formed"),
    ],
)
def test_text_of_vw_that_is_refused(tmp_path, text, why):
    (tmp_path / "m.txt").write_text(text, encoding="latin-1")
    with pytest.raises(StreamcutError, match=why):
        read_problem(str(tmp_path / "m.txt"))


def test_an_index_takes_no_more_memory_than_there_is(tmp_path, run, made):
    X, y = made
    (tmp_path / "m.txt").write_text(HEAD.format("", 0).replace("bits:18", "bits:34") + "9999999999:0.5\n")
    with pytest.raises(StreamcutError, match="GB"):
        streamcut.certify(tmp_path / "m.txt", (X, y), C=1.0, loss="hinge", intercept=1.0, memory="4GB")


def test_command_lines_of_liblinear(tmp_path, made):
    svm = pytest.importorskip("sklearn.svm")
    X, y = made
    for weights, text in ((None, ""), ({1.0: 2.0}, "-w1 2"), ({1.0: 2.0, -1.0: 0.5}, "-w1 2 -w-1 0.5"), ({-1.0: 3.0}, "-w-1 3")):
        model = svm.LinearSVC(C=0.5, intercept_scaling=2.0, class_weight=weights, tol=1e-9, max_iter=10**6).fit(X, y)
        head = "solver_type L2R_L2LOSS_SVC\nnr_class 2\nlabel 1 -1\nnr_feature 4\nbias 2\nw\n"
        numbers = [*model.coef_[0], model.intercept_[0] / 2.0]
        (tmp_path / "ll.model").write_text(head + "".join(f"{value:.17g} \n" for value in numbers))
        found = streamcut.certify(tmp_path / "ll.model", (X, y), 6, trained_by=f"train -s 2 -c 0.5 -B 2 {text}")
        assert found.at_most < 1e-6, text
    for command, why in (
        ("train -s 0 -c 0.5 -B 2", "was trained with the squared-hinge loss"),
        ("train -s 2 -c 0.5", "bias feature of 2, not 0"),
        ("train -s 2 -c 0.5 -B 2 rows.txt m.model more", "too many files"),
        ("train -s 2 -C -B 2 rows.txt", "gives no C"),
        ("train -s 5 -c 0.5 -B 2", "--l1"),
        ("train -s 21", "one-class"),
        ("svm-train -s 2", "begins with none of vw"),
        ("train -s 2 -c x", "not a number"),
        ("", "begins with none of vw"),
    ):
        with pytest.raises(UsageError, match=why):
            streamcut.certify(tmp_path / "ll.model", (X, y), trained_by=command)
    with pytest.raises(UsageError, match="are for files"):
        streamcut.certify(model, (X, y), trained_by="train -s 2 -B 2")


def test_a_free_intercept_of_liblinear(tmp_path, made):
    linear_model = pytest.importorskip("sklearn.linear_model")
    X, y = made
    model = linear_model.LogisticRegression(solver="newton-cholesky", tol=1e-12).fit(X, y)
    head = "solver_type L2R_LR\nnr_class 2\nlabel 1 -1\nnr_feature 4\nbias 1\nw\n"
    text = "".join(f"{value:.17g} \n" for value in (*model.coef_[0], *model.intercept_))
    (tmp_path / "ll.model").write_text(head + text)
    found = streamcut.certify(tmp_path / "ll.model", (X, y), trained_by="train -s 0 -c 1 -B 1 -R")
    assert found.intercept == "free"
    assert found.at_most < 1e-9
    assert streamcut.certify(tmp_path / "ll.model", (X, y), trained_by="train -s 0 -B 1").at_least > 0.0


def test_the_command_takes_them(tmp_path, run, made):
    X, y = made
    (tmp_path / "m.txt").write_text(HEAD.format(" --bfgs", 0) + "1:0.5\n2:-0.25\n116060:0.1\n")
    text = "".join(
        f"{t:g} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(x)) + "\n" for t, x in zip(y, X.tolist(), strict=True)
    )
    (tmp_path / "rows.svm").write_text(text)
    streamcut.convert(tmp_path / "rows.svm", tmp_path / "rows.zarr", dtype="float64")
    command = "vw --bfgs --l2 2 --loss_function hinge"
    code, out, _ = run("certify", tmp_path / "m.txt", tmp_path / "rows.zarr", "--trained-by", command, "--json")
    assert code == 0
    by_hand = streamcut.certify(tmp_path / "m.txt", (X, y), C=0.5, loss="hinge", intercept=1.0)
    assert json.loads(out)["primal"] == by_hand.certificate.primal
    asked = ("--C", 1, "--loss", "hinge", "--intercept", 1, "--index-base")
    assert run("certify", tmp_path / "m.txt", tmp_path / "rows.zarr", *asked, 2)[0] == 2
    code, out, _ = run("certify", tmp_path / "m.txt", tmp_path / "rows.zarr", *asked, 0, "--json")
    assert json.loads(out)["primal"] != by_hand.certificate.primal
