"""Crammer-Singer: kernels, line search and solvers against slow versions, LIBLINEAR, and what must never change the answer."""

import json
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from kit.shared.multiclass import LABELS, dense, problem
from reference import multiclass as slow
from sklearn.datasets import dump_svmlight_file

import streamcut
from streamcut import export, load_model, save_model, train
from streamcut.errors import BadInputError, UsageError

pytestmark = pytest.mark.smoke


@cache
def enclosed_optimum(weights, bias):
    """(primal, dual) around min F of `problem(90, weights=weights, seed=3)` at C = 0.8."""
    X, y, u = problem(90, weights=weights, seed=3)
    return slow.optimum(dense(X, bias), np.searchsorted(LABELS, y), 4, 0.8, np.ones(len(y)) if u is None else u, 1e-6)


class TestCertificate:
    @pytest.mark.thirds
    @pytest.mark.parametrize("bias", [0.0, 1.0])
    @pytest.mark.parametrize("weights", [False, True])
    def test_encloses_the_optimum(self, weights, bias):
        X, y, u = problem(90, weights=weights, seed=3)
        model = train(
            streamcut.rows(X, y, weight=u), task="multiclass", solver="bundle-dca", C=0.8, bias=bias, tol=1e-3, max_passes=2000
        )
        value, dual = enclosed_optimum(weights, bias)
        found = model.certificates[0]
        assert model.converged
        assert found.lower_bound <= value * (1 + 1e-12)
        assert found.primal >= dual * (1 - 1e-12)
        assert found.gap <= 1e-3 * found.c_bar
        every = np.ones(len(y)) if u is None else u
        recomputed = slow.primal(model.augmented_weights, dense(X, bias), np.searchsorted(LABELS, y), 0.8, every)
        assert recomputed == pytest.approx(found.primal, rel=1e-11)

    def test_two_classes_are_the_binary_problem_with_half_the_norm(self):
        """w_1 = −w_0 = w/2 of the hinge loss with margin 1 between them: F of the binary problem at 2C is twice this one."""
        X, y, _ = problem(100, classes=2)
        ours = train(streamcut.rows(X, y), task="multiclass", C=0.5, tol=1e-5, tol_relative=None, max_passes=3000)
        binary = train(streamcut.rows(X, y), C=1.0, tol=1e-6, tol_relative=None)
        assert binary.certificate.lower_bound <= 2 * ours.certificates[0].primal
        assert 2 * ours.certificates[0].lower_bound <= binary.certificate.primal

    @pytest.mark.parametrize(("name", "C"), [("dna", 1.0), ("letter", 0.1)])
    def test_liblinear_is_inside(self, load, name, C):
        liblinear = pytest.importorskip("liblinear.liblinearutil")
        X, y = load(name)
        reference = liblinear.train(liblinear.problem(y, X), liblinear.parameter(f"-s 4 -c {C} -B 1 -e 1e-4 -q"))
        labels = np.unique(y)
        W = np.ctypeslib.as_array(reference.w, ((X.shape[1] + 1) * len(labels),)).reshape(-1, len(labels))
        W = W[:, np.argsort(reference.get_labels())]
        theirs = slow.primal(W, dense(sp.csr_array(X)), np.searchsorted(labels, y), C, np.ones(len(y)))
        model = train(streamcut.rows(X, y), task="multiclass", C=C)
        assert model.converged
        assert model.certificates[0].lower_bound <= theirs * (1 + 1e-9)
        assert model.certificates[0].primal >= theirs * (1 - 1e-3)  # theirs is this close to the optimum


@pytest.fixture(scope="module")
def trained():
    """(model, rows, labels of which some are not those that it was trained on)."""
    X, y, _ = problem()
    return train(streamcut.rows(X, y), task="multiclass"), X, np.where(np.arange(len(y)) % 9, y, LABELS[0])


class TestModel:
    def test_file_and_prediction(self, trained, tmp_path):
        model, X, _ = trained
        save_model(model, tmp_path / "m.npz")
        again = load_model(tmp_path / "m.npz")
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
        np.testing.assert_allclose(model.decision_function(X), dense(X) @ model.augmented_weights, atol=1e-12)
        np.testing.assert_array_equal(again.predict(X), np.asarray(LABELS)[(dense(X) @ model.augmented_weights).argmax(axis=1)])
        assert (again.certificates, again.labels, again.result()) == (model.certificates, LABELS, model.result())

    def test_measures_are_those_of_scikit_learn(self, trained):
        from sklearn import metrics

        model, X, y = trained
        u = np.random.default_rng(0).uniform(0.1, 2.0, len(y))
        found, said = streamcut.evaluate(model, (X, y, u)), model.predict(X)
        true, predicted = np.searchsorted(LABELS, y), np.searchsorted(LABELS, said)
        labels = {"sample_weight": u, "labels": range(4), "y_true": true, "y_pred": predicted}
        assert found.accuracy == found.micro_f1 == pytest.approx(metrics.accuracy_score(true, predicted, sample_weight=u))
        assert found.macro_f1 == pytest.approx(metrics.f1_score(**labels, average="macro"))
        assert found.balanced_accuracy == pytest.approx(metrics.recall_score(**labels, average="macro"))
        np.testing.assert_allclose(found.confusion_matrix, metrics.confusion_matrix(**labels))
        each = metrics.precision_recall_fscore_support(**labels)
        np.testing.assert_allclose([[c[m] for c in found.classes] for m in ("precision", "recall", "f1", "support")], each)
        expected = u @ slow.losses(true, dense(X) @ model.augmented_weights) / u.sum()
        assert found.mean_loss == pytest.approx(expected)
        json.dumps(found.measures(), allow_nan=False)

    def test_absent_classes_have_no_recall(self, trained):
        model, X, y = trained
        found = streamcut.evaluate(model, (X[y == 1.0], y[y == 1.0]))
        assert [c["recall"] is None for c in found.classes] == [True, False, True, True]
        assert found.balanced_accuracy == found.accuracy

    def test_unknown_labels_are_named(self, trained):
        model, X, y = trained
        with pytest.raises(BadInputError, match=r"row 0 .* label 9, but the model knows only -2, 1, 3.5, 7"):
            streamcut.evaluate(model, (X, np.full(len(y), 9.0)))

    @pytest.mark.parametrize("strategy", ["crammer-singer", "one-vs-rest"])
    def test_liblinear_reads_the_export(self, strategy, tmp_path):
        liblinear = pytest.importorskip("liblinear.liblinearutil")
        X, y, _ = problem(80)
        y = np.searchsorted(LABELS, y) * 2.0 - 3.0
        model = train(streamcut.rows(X, y), task="multiclass", strategy=strategy)
        export(model, tmp_path / "m.liblinear")
        theirs = liblinear.load_model(str(tmp_path / "m.liblinear"))
        said, _, scores = liblinear.predict([], sp.csr_matrix(X), theirs, "-q")
        np.testing.assert_array_equal(said, model.predict(X))
        np.testing.assert_allclose(scores, model.decision_function(X), atol=1e-12)


class TestRefusals:
    def test_one_class(self):
        with pytest.raises(BadInputError, match="needs two classes"):
            train(streamcut.rows(np.eye(3), np.ones(3)), task="multiclass")

    def test_labels_that_are_no_classes(self):
        with pytest.raises(BadInputError, match="more than 4096 different labels"):
            train(streamcut.rows(np.ones((5000, 1)), np.arange(5000.0)), task="multiclass")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"solver": "bundle-dca", "row_cache": "100B"}, "row_cache: 100B is too little for a row in each of 1 lanes"),
            ({"positive_label": 1.0}, "positive_label"),
            ({"strategy": "one-vs-rest", "target": 1.0}, "target: "),
        ],
    )
    def test_options_that_mean_nothing_here(self, options, message):
        X, y, _ = problem(20)
        with pytest.raises(UsageError, match=message):
            train(streamcut.rows(X, y), task="multiclass", **options)

    def test_memory_says_what_classes_cost(self):
        X, y, _ = problem(20)
        from streamcut.errors import MemoryBudgetError

        with pytest.raises(MemoryBudgetError, match="weights and proofs of 4 columns"):
            train(streamcut.rows(X, y), task="multiclass", memory="50MB")


def test_command_line(run, tmp_path):
    X, y, _ = problem()
    with open(tmp_path / "rows.svm", "w") as file:
        dump_svmlight_file(X, y, file.name, zero_based=False)
    assert run("convert", tmp_path / "rows.svm", tmp_path / "rows.zarr")[0] == 0
    code, _, told = run("train", tmp_path / "rows.zarr", "--task", "multiclass", "--output", tmp_path / "m.npz")
    assert code == 0
    assert "Converged" in told
    code, shown, _ = run("evaluate", tmp_path / "m.npz", tmp_path / "rows.svm")
    assert code == 0
    assert [line.split()[0] for line in shown.splitlines()[-4:]] == ["-2", "1", "3.5", "7"]
    assert "confusion" not in shown
    code, shown, _ = run("evaluate", tmp_path / "m.npz", tmp_path / "rows.svm", "--json")
    assert np.trace(json.loads(shown)["confusion_matrix"]) == pytest.approx(json.loads(shown)["accuracy"] * len(y))
    code, shown, _ = run("verify", tmp_path / "m.npz")
    assert code == 0
