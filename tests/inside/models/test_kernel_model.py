"""Kernel models: scores against scikit-learn's SVC, and in files."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from reference.kernels import matrix
from sklearn.svm import SVC

from streamcut import evaluate, load_model, predict, save_model
from streamcut.errors import BadInputError
from streamcut.kernels.kernel import Kernel
from streamcut.models.certificate import StopReason
from streamcut.models.kernel import KernelModel
from streamcut.problem import Problem


def _problem(seed: int = 0):
    generator = np.random.default_rng(seed)
    X = sp.random_array((60, 9), density=0.4, rng=generator, format="csr")
    y = np.where(X.sum(axis=1) + generator.normal(size=60) > 1.5, 3.0, 1.0)
    return X, y


def _of(svc: SVC, kernel: Kernel) -> KernelModel:
    support = sp.csr_array(svc.support_vectors_)
    coefficients, intercept = np.asarray(svc.dual_coef_.todense()).ravel(), float(svc.intercept_[0])
    problem = Problem(labels=(1.0, 3.0), C=svc.C, intercept="free", bias=1.0)
    return KernelModel(support=support, coefficients=coefficients, kernel=kernel, problem=problem, intercept=intercept)


@pytest.mark.parametrize("kernel", [Kernel("linear"), Kernel("rbf", gamma=0.7), Kernel("poly", gamma=0.5, degree=2, coef0=1.0)])
def test_scores_are_those_of_svc(kernel):
    X, y = _problem()
    svc = SVC(kernel=kernel.name, gamma=kernel.gamma, degree=kernel.degree, coef0=kernel.coef0).fit(X, y)
    model = _of(svc, kernel)
    np.testing.assert_allclose(model.decision_function(X), svc.decision_function(X), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), svc.predict(X))
    assert evaluate(model, (X, y)).accuracy == pytest.approx(svc.score(X, y))


def test_several_classes_take_the_largest_score(tmp_path):
    X, _ = _problem()
    coefficients = np.random.default_rng(3).normal(size=(60, 3))
    model = KernelModel(
        support=X, coefficients=coefficients, kernel=Kernel("rbf"), problem=Problem(task="multiclass", labels=(2.0, 5.0, 7.0)),
        intercept=np.array([0.0, 0.1, 0.2]), reason=StopReason.EPOCHS, facts={"dual": 1.5},
    )  # fmt: skip
    scores = matrix(Kernel("rbf"), X, X) @ coefficients + [0.0, 0.1, 0.2]
    np.testing.assert_allclose(model.decision_function(X), scores, rtol=1e-10)
    save_model(model, tmp_path / "m.npz")
    again = load_model(tmp_path / "m.npz")
    np.testing.assert_array_equal(predict(again, X), np.array([2.0, 5.0, 7.0])[scores.argmax(axis=1)])
    assert (again.kernel, again.labels, again.facts, again.converged) == (model.kernel, model.labels, {"dual": 1.5}, True)


def test_features_and_labels_that_the_model_does_not_know():
    X, y = _problem()
    model = _of(SVC(gamma=0.7).fit(X, y), Kernel("rbf", gamma=0.7))
    with pytest.raises(BadInputError, match="9 features"):
        model.decision_function(np.zeros((2, 11)))
    with pytest.raises(BadInputError, match="label 9"):
        model.is_positive(np.array([1.0, 9.0]))
