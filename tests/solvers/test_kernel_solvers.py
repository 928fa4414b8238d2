"""Kernel machines: exact arithmetic near the origin and far from it, the papers' accuracy, shared columns, budgets, features."""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import cache
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut import evaluate, load_model, save_model, train, verify
from streamcut.errors import BadInputError
from streamcut.sklearn import KernelSVM

RBF = {"kernel": "rbf", "gamma": 0.02}


def rows(offset, n=30, classes=2):
    """Whole numbers, so that the offset is subtracted and added without any rounding."""
    rng = np.random.default_rng(1)
    X = rng.integers(-8, 9, (n, 2)).astype(float)
    z = np.sin(X[:, 0] / 3.0) + 0.1 * X[:, 1] + 0.3 * rng.standard_normal(n)
    y = np.where(z > 0.0, 1.0, -1.0) if classes == 2 else np.digitize(z, [-0.5, 0.5]).astype(float)
    return X + offset, y


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


@pytest.mark.parametrize(
    "options", [{"solver": "bsca", "budget": 20}, {"solver": "sbp", "nu": 0.1}], ids=lambda given: given["solver"]
)
def test_held_out_rows_may_be_in_memory_and_have_the_labels_of_the_data(options):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 4))
    y = np.where(X[:, 0] * 2 + 0.5 * rng.standard_normal(150) > 0, 1.0, -1.0)
    options = {**options, "kernel": "rbf", "gamma": 0.3, "epochs": 2.0}
    model = train((X[:100], y[:100]), validation=(X[100:], y[100:]), **options)
    right = streamcut.evaluate(model, (X[100:], y[100:])).accuracy
    last = model.history[-1]
    assert options["solver"] != "bsca" or last["validation"] == pytest.approx(right)
    assert options["solver"] != "sbp" or min(line["error"] for line in model.history) == pytest.approx(1.0 - right)
    assert model.parameters["validation"] == "rows in memory"
    words = np.where(y > 0, "yes", "no")
    others = 100 + np.argsort(words[100:] == words[0], kind="stable")  # another word comes first
    named = train((X[:100], words[:100]), validation=(X[others], words[others]), **options)
    accuracy = streamcut.evaluate(named, (X[100:], words[100:])).accuracy
    assert accuracy > 0.8
    assert options["solver"] != "bsca" or named.history[-1]["validation"] == pytest.approx(accuracy)
    assert options["solver"] != "sbp" or min(line["error"] for line in named.history) == pytest.approx(1.0 - accuracy)
    seen: list = []
    with pytest.raises(BadInputError, match="validation: rows in memory has labels that the data does not have: 3, 5"):
        train((X, y), validation=(X[:2], np.array([3.0, 5.0])), on_iteration=seen.append, **options)
    assert not seen


OFFSETS = [0.0, 1e7]
POLY = {"kernel": "poly", "gamma": 0.05, "degree": 2, "coef0": 1.0}
SAMPLED = {"samples": 30, "tol": 1e-2}
DIGITS = 80


def exact_values(kernel, X, Z) -> list[list[Decimal]]:
    """k to 80 digits, of the float64 numbers that the rows and parameters are."""
    gamma, coef0 = Decimal(kernel.gamma), Decimal(kernel.coef0)
    X, Z = ([[Decimal(float(v)) for v in row] for row in each] for each in (X, Z))
    if kernel.name == "rbf":
        return [[(-gamma * sum((a - b) ** 2 for a, b in zip(x, z, strict=True))).exp() for z in Z] for x in X]
    return [[(gamma * sum(a * b for a, b in zip(x, z, strict=True)) + coef0) ** kernel.degree for z in Z] for x in X]


def exact_objective(model, X, y) -> Decimal:
    """F of the model: hinge loss of two classes, or Crammer and Singer's; the constant of sampled cuts is in the kernel."""
    with localcontext() as context:
        context.prec = DIGITS
        S = model.support.toarray()
        constant = Decimal(model.parameters["bias"]) ** 2 if model.solver.startswith("sampled") else Decimal(0)
        c = [[Decimal(float(v)) for v in row] for row in model.coefficients.reshape(len(S), -1)]
        free = [Decimal(0)] * len(c[0]) if constant else [Decimal(float(v)) for v in np.atleast_1d(model.intercept)]
        columns = range(len(c[0]))

        def scores(rows):
            values = exact_values(model.kernel, rows, S)
            return [[sum((k + constant) * own[j] for k, own in zip(row, c, strict=True)) for j in columns] for row in values]

        square = sum(own[j] * f[j] for own, f in zip(c, scores(S), strict=True) for j in columns)
        loss = Decimal(0)
        for f, label in zip(scores(X), y.tolist(), strict=True):
            if len(columns) == 1:
                sign = 1 if label == model.labels[1] else -1
                loss += max(Decimal(0), 1 - sign * (f[0] + free[0]))
            else:
                own = model.labels.index(label)
                loss += max(f[j] + (j != own) for j in columns) - f[own]
        return square / 2 + Decimal(model.C) * loss


CASES = {
    "smo rbf": ({"solver": "smo", "C": 10.0, **RBF}, 2),
    "smo rbf without a bias": ({"solver": "smo", "C": 10.0, "bias": 0.0, **RBF}, 2),
    "smo poly": ({"solver": "smo", "C": 1.0, **POLY}, 2),
    "sampled rbf": ({"solver": "sampled-linear", "C": 10.0, "bias": 0.5, **RBF, **SAMPLED}, 2),
    "sampled poly": ({"solver": "sampled-linear", "C": 1.0, "bias": 0.0, **POLY, **SAMPLED}, 2),
    "sampled rbf of three classes": ({"solver": "sampled-constant", "C": 3.0, "task": "multiclass", **RBF, **SAMPLED}, 3),
}


@cache
def optimum_above(case) -> Decimal:
    """F of a model near the optimum: no lower bound may be above it, wherever the rows are shifted to."""
    options, classes = CASES[case]
    X, y = rows(0.0, classes=classes)
    tight = {"tol": 1e-6} if "sampled" in options["solver"] else {"tol_relative": 1e-10, "tol": None}
    return exact_objective(train((X, y), **{**options, **tight}), X, y)


@pytest.mark.parametrize(("case", "offset"), [*product(CASES, OFFSETS), ("smo poly", 3.0), ("smo poly", 12.0)])
def test_kernel_certificates_are_true_far_from_the_origin(case, offset):
    options, classes = CASES[case]
    X, y = rows(offset, classes=classes)
    if options["kernel"] == "poly" and offset == OFFSETS[-1]:
        with pytest.raises(BadInputError, match="subtract the means"):
            train((X, y), **options)
        return
    model = train((X, y), **options)
    certificate, F, checked = model.certificate, exact_objective(model, X, y), verify(model, (X, y))
    assert certificate.converged
    assert checked.consistent
    assert Decimal(certificate.primal) >= F
    if offset not in OFFSETS:  # the polynomial of rows that were moved is another kernel, and rounding counts
        assert certificate.raised > 0.0
        return
    assert Decimal(certificate.primal) <= F * (1 + Decimal("1e-8"))
    assert Decimal(certificate.lower_bound) <= optimum_above(case)
    assert certificate.lower_bound >= 0.98 * float(optimum_above(case))
    assert checked.error <= 1e-7 * checked.primal


def test_features_of_a_kernel_approach_the_exact_machine_and_are_for_classes_too():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((150, 3)) > 0.2, rng.standard_normal((150, 3)), 0.0)
    y = np.where(X[:, 0] ** 2 + np.sin(2 * X[:, 1]) + 0.2 * rng.standard_normal(150) > 0.8, 2.0, 1.0)
    kernel = {"kernel": "rbf", "gamma": 0.5}
    exact = train((X, y), solver="sampled-linear", samples=150, bias=0, tol=1e-4, **kernel).certificate
    all_rows = train((X, y), nystroem=150, bias=0, tol_relative=1e-4, **kernel).certificate
    assert all_rows.lower_bound <= exact.primal * (1 + 1e-3)
    assert exact.lower_bound <= all_rows.primal * (1 + 1e-3)
    classes = np.digitize(np.sin(2 * X[:, 0]) + X[:, 1], [-0.5, 0.5]).astype(float)
    model = train((X, classes), task="multiclass", nystroem=40, **kernel)
    assert evaluate(model, (X, classes)).accuracy > 0.8


def test_a_budget_of_vectors_fits_a_curve_and_its_quantiles():
    random = np.random.default_rng(4)
    X = random.uniform(0.0, 6.0, (2000, 1))
    y = 100.0 + 3.0 * np.sin(X[:, 0]) + random.normal(size=2000)
    options = {"kernel": "rbf", "gamma": 1.0, "C": 5.0, "budget": 25, "epochs": 5.0, "task": "regression"}
    model = streamcut.train((X, y), **options, validation=(X[:500], y[:500]))
    assert (model.task, model.parameters["loss"], model.n_support <= 25) == ("regression", "epsilon-insensitive", True)
    assert model.intercept == pytest.approx(y.mean(), rel=1e-15)
    assert np.mean((model.predict(X) - 100.0 - 3.0 * np.sin(X[:, 0])) ** 2) < 0.1
    assert streamcut.evaluate(model, (X, y)).r2 > 0.8
    assert model.history[-1]["validation"] == pytest.approx(streamcut.evaluate(model, (X[:500], y[:500])).r2)
    assert model.history[-1]["accuracy_met"] is None
    assert model.history[-1]["dual"] <= model.history[-1]["primal_met"]
    upper = streamcut.train((X, y), **options, loss="quantile", quantile=0.9)
    assert np.mean(y <= upper.predict(X)) == pytest.approx(0.9, abs=0.04)
