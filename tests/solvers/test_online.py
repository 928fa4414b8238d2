"""partial_fit of linear estimators: each call is the best step for its own rows, and what it can't do it says."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from kit.nights import by_night
from scipy.optimize import minimize
from sklearn.base import clone

import streamcut
from streamcut.errors import UsageError
from streamcut.estimators import LinearSVM, LinearSVR, LogisticRegression

RNG = np.random.default_rng(0)
X = RNG.standard_normal((240, 5)) * (RNG.random((240, 5)) < 0.7)
SCORES = X @ RNG.standard_normal((5, 3)) + 0.3 * RNG.standard_normal((240, 3))
TWO, THREE, NUMBERS = np.sign(SCORES[:, 0]), SCORES.argmax(axis=1), SCORES[:, 0]
TIGHT = {"tol": 1e-9, "tol_relative": None, "sweeps": 2000}


CASES = {
    "hinge": (LinearSVM(**TIGHT), TWO),
    "squared": (LinearSVR(loss="squared", **TIGHT), NUMBERS),
    "crammer-singer": (LinearSVM(**TIGHT), THREE),
    "squared-hinge": (LinearSVM(loss="squared-hinge", **TIGHT), TWO),
    "logistic": (LogisticRegression(**TIGHT), TWO),
    "quantile": (LinearSVR(loss="quantile", quantile=0.2, **TIGHT), NUMBERS),
    "one-vs-rest": (LinearSVM(strategy="one-vs-rest", **TIGHT), THREE),
    "softmax": (LogisticRegression(**TIGHT), THREE),
}


@pytest.mark.parametrize("case", by_night(CASES, list(CASES)[3:]))
def test_all_rows_in_one_call_reach_what_is_proved_to_be_best(case):
    estimator, y = CASES[case]
    weight = np.where(np.arange(len(y)) % 3, 1.0, 2.0)
    several = {} if y is NUMBERS else {"classes": np.unique(y)}
    online = clone(estimator).partial_fit(X, y, sample_weight=weight, **several)
    reached = online.model_.result()
    proved = estimator.__class__(**{**estimator.get_params(), "tol": 1e-6}).fit(X, y, sample_weight=weight).model_.result()
    parts = zip(reached.get("classes", {0: reached}).values(), proved.get("classes", {0: proved}).values(), strict=True)
    for ours, theirs in parts:
        assert theirs["lower_bound"] <= ours["primal"] <= theirs["primal"] * (1 + 1e-4)
        assert ours["lower_bound"] == 0.0


def test_a_row_of_the_hinge_is_a_passive_aggressive_step():
    """Crammer et al. 2006, PA-I: w += min(C, loss / ‖x‖²) y x, the intercept being the weight of a constant feature."""
    svm, w = LinearSVM(C=0.1), np.zeros(6)
    for x, y in zip(X[:30], TWO[:30], strict=True):
        svm.partial_fit(x[None], [y], classes=[-1, 1])
        longer = np.append(x, 1.0)
        w += min(0.1, max(0.0, 1.0 - y * (w @ longer)) / (longer @ longer)) * y * longer
        np.testing.assert_allclose(np.append(svm.coef_, svm.intercept_), w, atol=1e-12)


def test_a_call_stays_near_the_weights_before_it():
    model = LogisticRegression(C=2.0, fit_intercept=False, **TIGHT)
    model.partial_fit(X[:100], TWO[:100], classes=[-1, 1])
    before = model.coef_[0].copy()
    model.partial_fit(X[100:], TWO[100:])

    def proximal(w):
        return 0.5 * np.sum((w - before) ** 2) + 2.0 * np.sum(np.logaddexp(0.0, -TWO[100:] * (X[100:] @ w)))

    np.testing.assert_allclose(model.coef_[0], minimize(proximal, before, tol=1e-12).x, atol=1e-4)


def test_calls_go_on_after_fit_and_words_stay_words():
    names = np.array(["low", "mid", "top"])[THREE]
    svm = LinearSVM().fit(X[:80], names[:80])
    for part in np.array_split(np.arange(80, 240), 8):
        svm.partial_fit(sp.csr_array(X[part]), names[part])
    assert svm.classes_.tolist() == ["low", "mid", "top"]
    assert svm.score(X, names) > 0.75
    assert svm.fit(X[:80], names[:80]).model_.solver == "bundle-dca", "fit begins anew"


def test_a_store_is_learnt_from_and_a_model_kept(tmp_path):
    with streamcut.create(tmp_path / "a.zarr", n_features=5) as store:
        store.append(X, TWO)
    svm = LinearSVM().partial_fit(str(tmp_path / "a.zarr"))
    np.testing.assert_array_equal(svm.coef_, LinearSVM().partial_fit(X, TWO, classes=[-1, 1]).coef_)
    svm.model_.save(tmp_path / "m.npz")
    kept = streamcut.load_model(tmp_path / "m.npz")
    np.testing.assert_array_equal(kept.decision_function(X), svm.decision_function(X))
    assert "Not converged" in kept.in_words()
    with pytest.raises(UsageError, match="does not say how it was trained"):
        streamcut.verify(kept, (X, TWO))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"l1": 0.1}, "l1=0"),
        ({"scale": "max-abs"}, "MaxAbsScaler"),
        ({"solver": "ocas"}, "solver ocas"),
        ({"loss": "f1"}, "loss f1"),
    ],
)
def test_what_needs_all_rows_is_refused(options, message):
    with pytest.raises(UsageError, match=message):
        LinearSVM(**options).partial_fit(X, TWO, classes=[-1, 1])


def test_what_does_not_fit_the_calls_before_is_refused():
    svm = LinearSVM().partial_fit(X, TWO, classes=[-1, 1])
    with pytest.raises(ValueError, match="classes must be passed"):
        LinearSVM().partial_fit(X, TWO)
    with pytest.raises(ValueError, match="5 features"):
        svm.partial_fit(X[:, :4], TWO)
    with pytest.raises(UsageError, match="fit_intercept must stay True"):
        svm.set_params(fit_intercept=False).partial_fit(X, TWO)
