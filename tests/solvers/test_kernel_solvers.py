"""Kernel machines: the papers' accuracy, shared columns, rows that are shifted, held-out rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from kit.shared.far_kernels import RBF, rows
from kit.shared.sbp import problem

import streamcut
from streamcut import load_model, save_model, train
from streamcut.sklearn import KernelSVM


def test_a_model_without_a_budget_is_trained_for_many_epochs(load):
    X, y = load("a9a")
    options = {"kernel": "rbf", "gamma": 0.0078125, "C": 32.0, "maintenance": "none", "solver": "bsca", "epochs": 60.0}
    model = streamcut.train(streamcut.rows(X[:500], y[:500]), **options)
    assert model.n_support <= 500
    assert model.facts["dual"] <= model.facts["primal_met"]
    assert model.facts["dual"] > 0.9 * model.facts["primal_met"]


def test_a_budget_trains_several_classes(load):
    X, y = load("dna")
    Xt, yt = load("dna", "test")
    model = streamcut.train(streamcut.rows(X, y), kernel="rbf", task="multiclass", gamma=0.01, C=10.0, budget=100, epochs=2.0)
    assert np.mean(model.predict(Xt) == yt) > 0.93


def test_one_epoch_of_adult_is_as_good_as_the_paper(load):
    (X, y), test = load("a9a"), load("a9a", "test")
    found = {}
    for solver in ("bsca", "bsgd"):
        models = [
            streamcut.train(streamcut.rows(X, y), kernel="rbf", gamma=2**-7, C=32.0, solver=solver, seed=s) for s in range(3)
        ]
        found[solver] = [streamcut.evaluate(model, test).accuracy for model in models]
    assert np.mean(found["bsca"]) >= 0.83
    assert np.mean(found["bsca"]) > np.mean(found["bsgd"])
    assert np.std(found["bsca"]) < np.std(found["bsgd"])


@pytest.mark.parametrize("kernel_cache", ["auto", "40KB"])
def test_classes_that_share_kernel_columns_have_the_bits_of_classes_that_do_not(kernel_cache):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((300, 4))
    y = X[:, :3].argmax(axis=1).astype(float)
    machine = KernelSVM(gamma=0.3, C=10.0, kernel_cache=kernel_cache).fit(X, y)
    options = {"kernel": "rbf", "gamma": 0.3, "C": 10.0, "solver": "smo", "task": "binary", "kernel_cache": kernel_cache}
    apart = [train(streamcut.rows(X, y), positive_label=label, **options) for label in (0.0, 1.0, 2.0)]
    for k, model in enumerate(apart):
        (own,) = np.nonzero(machine.dual_coef_[k])
        found = np.column_stack([machine.support_vectors_[own].toarray(), machine.dual_coef_[k, own]])
        expected = np.column_stack([model.support.toarray(), model.coefficients])
        np.testing.assert_array_equal(found[np.argsort(found[:, 0])], expected[np.argsort(expected[:, 0])])
        assert machine.lower_bound_[k] == model.certificate.lower_bound
    alone = sum(model.facts["evaluations"] for model in apart)
    if kernel_cache == "auto":  # a column that several classes want is computed once
        assert machine.model_.facts["evaluations"] < alone


@pytest.mark.parametrize(("far", "digits"), [(0.0, 1e-12), (1e8, 1e-9)])
def test_gamma_auto_is_that_of_scikit_learn(far, digits):
    X = sp.random_array((60, 5), density=0.6, format="csr", rng=np.random.default_rng(0))
    X = sp.csr_array(X.toarray() + far)
    model = streamcut.train(streamcut.rows(X, np.arange(60) % 2.0), solver="smo", kernel="rbf")
    assert model.kernel.gamma == pytest.approx(1.0 / (X.shape[1] * X.toarray().var()), rel=digits)


@pytest.mark.parametrize("solver", ["smo", "sbp", "sdca", "pegasos", "bsca", "bsgd", "sampled-linear", "nystroem"])
def test_shifting_all_rows_changes_no_answer(solver, tmp_path):
    """Of whole numbers, whose centred rows are the same to the last bit but for the centre."""
    options = dict(RBF, C=1.0)
    options |= {"solver": "bundle-dca", "nystroem": 10, "tol_relative": 1e-6} if solver == "nystroem" else {"solver": solver}
    if solver in ("sbp", "sdca", "pegasos"):
        options |= {"epochs": 2.0}
    if solver in ("sbp", "sdca", "pegasos", "smo"):
        options["bias"] = 0.0
    if solver in ("bsca", "bsgd"):
        options |= {"budget": 12, "epochs": 3.0}
    scores = []
    for offset in (0.0, 1e9):
        X, y = rows(offset)
        model = train((sp.csr_array(X), y), **options)
        save_model(model, tmp_path / "m.npz")
        loaded = load_model(tmp_path / "m.npz")
        assert np.array_equal(loaded.decision_function(X), model.decision_function(X))
        scores.append(model.decision_function(X + 0.5))
    close = 1e-3 if solver in ("nystroem", "sampled-linear", "smo") else 1e-6
    np.testing.assert_allclose(scores[1], scores[0], atol=close * np.abs(scores[0]).max())


def test_train_on_a_store_with_held_out_rows_is_train_in_memory(tmp_path, run):
    from sklearn.datasets import dump_svmlight_file

    X, signs = problem(n=300)
    for name, part in (("train", slice(0, 200)), ("test", slice(200, 300))):
        dump_svmlight_file(X[part], signs[part], str(tmp_path / f"{name}.svm"), zero_based=False)
        code, _, _ = run("convert", tmp_path / f"{name}.svm", tmp_path / f"{name}.zarr", "--dtype", "float64", "--shard-nnz", 400)
        assert code == 0
    options = {"solver": "sbp", "kernel": "rbf", "gamma": 0.3, "epochs": 20, "validation": str(tmp_path / "test.zarr")}
    stored = streamcut.train(str(tmp_path / "train.zarr"), **options)
    dataset = streamcut.open(str(tmp_path / "train.zarr"))
    rows = np.concatenate([dataset.read(shard).y for shard in range(len(dataset.manifest.shards))])
    assert len(dataset.manifest.shards) > 1
    errors = [line["error"] for line in stored.history]
    assert np.mean(stored.predict(X[200:]) != signs[200:]) == pytest.approx(min(errors))
    in_memory = streamcut.train(streamcut.rows(X[:200], rows), **options)
    np.testing.assert_allclose(stored.decision_function(X), in_memory.decision_function(X), rtol=1e-9, atol=1e-12)
