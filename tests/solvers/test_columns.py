"""One-vs-rest: every class has the certificate that its own training would have, whatever runs beside it."""

import lzma
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from kit.columns import LABELS, REST, overlap, problem
from reference import svm
from scipy.special import expit
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import streamcut
from streamcut import train, verify
from streamcut.errors import UsageError

WAYS = {"cached": {}, "uncached": {"row_cache": "0"}, "few cached": {"row_cache": "30%"}}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
KINDS = ["hinge", "squared-hinge", "logistic"]
losses = pytest.mark.parametrize("loss", KINDS)


def values(loss, margins):
    if loss == "logistic":
        return np.logaddexp(0.0, -margins)
    return np.maximum(0.0, 1.0 - margins) ** (1 if loss == "hinge" else 2)


def optimum(loss, X, sign, C, u):
    """min F of one class; the constant feature is the last of X."""
    if loss == "hinge":
        return train(streamcut.rows(X, sign, weight=u), C=C, bias=0.0, tol=1e-6, tol_relative=None).certificate.primal
    common = {"C": C, "fit_intercept": False, "tol": 1e-10}
    fitted = LogisticRegression(**common, max_iter=10_000) if loss == "logistic" else LinearSVC(**common, max_iter=1_000_000)
    w = fitted.fit(X, sign, sample_weight=u).coef_[0]
    return 0.5 * w @ w + C * u @ values(loss, sign * (X @ w))


@pytest.mark.thirds
@losses
@ways
@pytest.mark.parametrize(("bias", "weights"), [(0.0, True), (2.0, False)])
def test_every_class_has_a_certificate(loss, way, bias, weights):
    X, y, u = problem(150, weights=weights)
    data = streamcut.rows(X, y, weight=u)
    model = train(data, **REST, **way, loss=loss, C=0.5, bias=bias, tol=1e-4, tol_relative=None)
    rows = np.hstack([X.toarray(), np.full((len(y), 1), bias)]) if bias else X.toarray()
    every = np.ones(len(y)) if u is None else u
    assert model.converged
    for k, (label, found) in enumerate(zip(model.labels, model.certificates, strict=True)):
        sign = np.where(y == label, 1.0, -1.0)
        best, w = optimum(loss, rows, sign, 0.5, every), model.augmented_weights[:, k]
        assert found.lower_bound <= best * (1 + 1e-12)
        assert best - 1e-6 * (found.c_bar if loss == "hinge" else best) <= found.primal  # theirs is this close to the optimum
        assert found.gap <= 1e-4 * found.c_bar
        assert 0.5 * w @ w + 0.5 * every @ values(loss, sign * (rows @ w)) == pytest.approx(found.primal, rel=1e-11)
    assert model.history[-1]["gap"] == pytest.approx(sum(c.gap for c in model.certificates))
    assert verify(model, data).consistent
    model.weights[0, 1] += 0.1
    assert not verify(model, data).consistent


def test_limits_end_every_class_and_say_so():
    X, y, _ = problem()
    tight = {**REST, "tol": 1e-12, "tol_relative": None}
    for limit, reason in (({"max_passes": 3}, "max_passes"), ({"max_time": 1e-9}, "time")):
        model = train(streamcut.rows(X, y), **tight, **limit)
        assert {c.stop_reason for c in model.certificates} == {reason}
        assert not model.converged
        assert verify(model, streamcut.rows(X, y)).consistent


def test_claims_about_values_far_from_one_are_true():
    X, y, _ = problem(80, 6)
    X = X.toarray()
    X[:, 0] = 1e12 * (1.0 + 1e-13 * X[:, 0])
    X[:, 1] = 1e12 * np.sign(X[:, 1])
    data = streamcut.rows(sp.csr_array(X), y)
    model = train(data, **REST, tol=1e-9, tol_relative=None, max_passes=50)
    assert verify(model, data).consistent
    for label, claim in zip(model.labels, model.certificates, strict=True):
        alone = train(data, positive_label=label, tol=1e-2, tol_relative=None, max_passes=100).certificate
        assert claim.lower_bound <= alone.primal
        assert alone.lower_bound <= claim.primal


def test_verify_proves_a_bound_of_its_own():
    X, y, u = problem(weights=True)
    data = streamcut.rows(X, y, weight=u)
    model = train(data, **REST, tol=1e-5, tol_relative=None)
    found = verify(model, data)
    assert found.consistent
    for own, claim in zip(found.classes, model.certificates, strict=True):
        assert claim.lower_bound - own.slack <= own.lower_bound <= claim.primal
    above = replace(model.certificates[2], lower_bound=1.001 * model.certificates[2].primal)
    assert not verify(replace(model, certificates=(*model.certificates[:2], above, *model.certificates[3:])), data).consistent


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_a_warm_start_begins_with_the_weights_and_their_proof(loss):
    X, y, u = problem(weights=True)
    data, options = streamcut.rows(X, y, weight=u), {**REST, "loss": loss, "tol_relative": None}
    model = train(data, **options, tol=1e-5)
    again = train(data, **options, tol=1e-4, warm_start=model)
    assert again.converged
    assert again.history[-1]["passes"] == 1
    for C, l1 in ((3.0, 0.0), (1.0, 0.5)):
        other = train(data, **options, tol=1e-3, C=C, l1=l1, warm_start=model)
        assert verify(other, data).consistent
        overlap(other, train(data, **options, tol=1e-5, C=C, l1=l1))


def test_a_warm_start_of_a_joint_model_has_weights_alone():
    X, y, _ = problem()
    data = streamcut.rows(X, y)
    joint = train(data, task="multiclass")
    model = train(data, **REST, tol=1e-4, tol_relative=None, warm_start=joint)
    assert model.converged
    overlap(model, train(data, **REST, tol=1e-4, tol_relative=None))


def test_a_warm_start_with_a_proof_that_does_not_hold_is_refused():
    X, y, _ = problem()
    data = streamcut.rows(X, y)
    model = train(data, **REST, tol=1e-5, tol_relative=None)
    witnesses = (*model.witnesses[:2], replace(model.witnesses[2], b=model.witnesses[2].b + 1.0), model.witnesses[3])
    with pytest.raises(UsageError, match="cutting plane does not hold on this data"):
        train(data, **REST, warm_start=replace(model, witnesses=witnesses))


def test_classes_of_one_row_and_rows_without_features():
    X, y, _ = problem(60)
    X = sp.csr_array(sp.diags_array((np.arange(60) % 5 > 0).astype(float)) @ X)
    X.eliminate_zeros()
    y[7] = 100.0
    for bias in (0.0, 1.0):
        model = train(streamcut.rows(X, y), **REST, bias=bias, tol=1e-4, tol_relative=None)
        assert 100.0 in model.labels
        assert model.converged
        assert verify(model, streamcut.rows(X, y)).consistent


def test_rows_without_any_feature_at_all():
    X = sp.csr_array((9, 3))
    model = train(streamcut.rows(X, np.arange(9) % 3), **REST, bias=0.0)
    assert model.converged
    assert not model.weights.any()
    assert [c.primal for c in model.certificates] == pytest.approx([9.0] * 3)


def test_the_model_says_which_class_is_furthest():
    X, y, _ = problem()
    model = train(streamcut.rows(X, y), **REST, max_passes=2, tol=1e-9, tol_relative=None)
    assert model.in_words().startswith("0 of 4 classes converged.")
    assert set(model.result()["classes"]) == {"-1", "2", "5", "9"}
    found = streamcut.evaluate(model, (X, y))
    signs = np.where(y[:, None] == np.array(model.labels), 1.0, -1.0)
    assert found.mean_loss == pytest.approx(np.maximum(0, 1 - signs * model.decision_function(X)).sum() / len(y))


def test_two_classes_are_task_binary():
    with pytest.raises(UsageError, match="task binary"):
        train(streamcut.rows(np.eye(4), np.array([1.0, 2.0, 1.0, 2.0])), **REST)


@pytest.mark.parametrize("solver", ["ocas", "cpa"])
def test_cutting_planes_do_not_train_one_vs_rest(solver):
    X, y, _ = problem(30)
    with pytest.raises(UsageError, match="bundle-dca"):
        train(streamcut.rows(X, y), **REST, solver=solver)


def test_other_losses_are_no_strategy_of_all_at_once():
    X, y, _ = problem(30)
    with pytest.raises(UsageError, match="loss: logistic for several classes needs strategy one-vs-rest"):
        train(streamcut.rows(X, y), task="multiclass", loss="logistic")


@pytest.mark.parametrize(("name", "classes"), [("dna", None), ("news20_bydate", (1.0, 7.0))])
def test_no_bound_is_above_what_liblinear_reaches_at_a_tight_tolerance(data_dir, name, classes):
    liblinear = pytest.importorskip("liblinear.liblinearutil")
    with lzma.open(data_dir / name / "train.svm.xz") as file:
        X, y = load_svmlight_file(file, zero_based=False, dtype=np.float32)
    model = train(streamcut.rows(X, y), **REST, tol=1e-3)
    assert model.solver == "bundle-dca"
    assert model.converged
    rows = sp.hstack([sp.csr_matrix(X, dtype=np.float64), np.ones((len(y), 1))]).tocsr()
    for k, label in enumerate(model.labels):
        if classes is not None and label not in classes:
            continue
        sign = np.where(y == label, 1.0, -1.0)
        theirs = liblinear.train(sign, sp.csr_matrix(X, dtype=np.float64), "-s 3 -c 1 -B 1 -e 1e-8 -q")
        w = np.array(theirs.w[: rows.shape[1]]) * theirs.get_labels()[0]
        best = 0.5 * w @ w + np.maximum(0.0, 1.0 - sign * (rows @ w)).sum()
        found = model.certificates[k]
        assert found.lower_bound <= best * (1 + 1e-9)
        assert found.primal <= best + 1e-3 * found.c_bar
        assert svm.primal(model.augmented_weights[:, k], rows, sign, 1.0, np.ones(len(y))) == pytest.approx(
            found.primal, rel=1e-9
        )


def test_probabilities_are_the_odds_of_the_classes(tmp_path):
    X, y, _ = problem()
    model = train(streamcut.rows(X, y), **REST, loss="logistic")
    streamcut.save_model(model, tmp_path / "m.npz")
    again = streamcut.load_model(tmp_path / "m.npz")
    p = expit(again.decision_function(X))
    np.testing.assert_allclose(again.probabilities_of(again.decision_function(X)), p / p.sum(axis=1, keepdims=True), rtol=1e-12)
    found = streamcut.evaluate(model, (X, y))
    every = np.where(y[:, None] == np.asarray(LABELS), 1.0, -1.0)
    assert found.mean_loss == pytest.approx(values("logistic", every * model.decision_function(X)).sum(axis=1).mean())
    assert found.log_loss < np.log(4)
