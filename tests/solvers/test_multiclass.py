"""Crammer-Singer: next to the binary problem and LIBLINEAR, and the labels that its models know."""

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut import train
from streamcut.errors import BadInputError

pytestmark = pytest.mark.smoke


LABELS = (-2.0, 1.0, 3.5, 7.0)


def problem(n=150, d=8, *, seed=0, weights=False, classes=4):
    """Noisy sparse rows of several classes; some have no features."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.5, format="csr", rng=rng, data_sampler=rng.standard_normal)
    scores = X @ rng.standard_normal((d, classes)) + 0.5 * rng.standard_normal((n, classes))
    return X, np.asarray(LABELS[:classes])[scores.argmax(axis=1)], rng.uniform(0.2, 3.0, n) if weights else None


class TestCertificate:
    def test_two_classes_are_the_binary_problem_with_half_the_norm(self):
        """w_1 = −w_0 = w/2 of the hinge loss with margin 1 between them: F of the binary problem at 2C is twice this one."""
        X, y, _ = problem(100, classes=2)
        ours = train(streamcut.rows(X, y), task="multiclass", C=0.5, tol=1e-5, tol_relative=None, max_passes=3000)
        binary = train(streamcut.rows(X, y), C=1.0, tol=1e-6, tol_relative=None)
        assert binary.certificate.lower_bound <= 2 * ours.certificates[0].primal
        assert 2 * ours.certificates[0].lower_bound <= binary.certificate.primal


@pytest.fixture(scope="module")
def trained():
    """(model, rows, labels of which some are not those that it was trained on)."""
    X, y, _ = problem()
    return train(streamcut.rows(X, y), task="multiclass"), X, np.where(np.arange(len(y)) % 9, y, LABELS[0])


class TestModel:
    def test_unknown_labels_are_named(self, trained):
        model, X, y = trained
        with pytest.raises(BadInputError, match=r"row 0 .* label 9, but the model knows only -2, 1, 3.5, 7"):
            streamcut.evaluate(model, (X, np.full(len(y), 9.0)))


class TestRefusals:
    def test_memory_says_what_classes_cost(self):
        X, y, _ = problem(20)
        from streamcut.errors import MemoryBudgetError

        with pytest.raises(MemoryBudgetError, match="weights and proofs of 4 columns"):
            train(streamcut.rows(X, y), task="multiclass", memory="50MB")
