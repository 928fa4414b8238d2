"""Task one-class: Schölkopf's problem by cutting planes, next to LIBSVM (scikit-learn), with a certificate for its optimum."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import OneClassSVM

from streamcut.config import CheckpointOptions
from streamcut.errors import BadInputError, UsageError
from streamcut.evaluation import evaluate
from streamcut.io.memory import MemoryDataset
from streamcut.losses.one_class import OneClass
from streamcut.measures.global_loss import _of_one_group
from streamcut.models.files import load_model, save_model
from streamcut.training import train
from streamcut.verification import verify


@cache
def rows(n: int = 300) -> sp.csr_array:
    """Rows that mostly lie to one side of the origin."""
    rng = np.random.default_rng(0)
    X = sp.random_array((n, 8), density=0.6, format="csr", rng=rng, data_sampler=lambda size: rng.gamma(2.0, 0.5, size) - 0.3)
    return sp.csr_array(X)


def data(n: int = 300) -> MemoryDataset:
    return MemoryDataset(rows(n), np.ones(n), shard_nnz=400)


def mean_of_lowest(scores: np.ndarray, nu: float) -> float:
    """The slow way: sorted, the last one counts in part."""
    k = nu * len(scores)
    parts = np.clip(k - np.arange(len(scores)), 0.0, 1.0)
    return float(np.sort(scores) @ parts / k)


@pytest.mark.parametrize("nu", [0.001, 0.1, 0.37, 0.5, 1.0])
@pytest.mark.parametrize("ties", [False, True])
def test_the_risk_is_that_of_the_lowest_scores(nu, ties):
    scores = np.random.default_rng(1).normal(0.3, 1.0, 83)
    scores = scores.round() if ties else scores
    expected = max(0.0, 1.0 - mean_of_lowest(scores, nu))
    assert _of_one_group(OneClass(nu), np.zeros(83), scores) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("solver", ["ocas", "cpa"])
@pytest.mark.parametrize("nu", [0.1, 0.37])
def test_the_plane_is_libsvms(solver, nu):
    X, options = rows().toarray(), {"task": "one-class", "nu": nu, "solver": solver, "tol": 1e-7, "tol_relative": None}
    model = train(data(), **options, max_passes=500)
    theirs = OneClassSVM(kernel="linear", nu=nu, tol=1e-10).fit(X)
    found, length = model.certificate, np.linalg.norm(theirs.coef_)
    assert found.converged
    optimum = 0.5 / (mean_of_lowest(X @ theirs.coef_[0], nu) / length) ** 2
    assert found.lower_bound <= optimum * (1.0 + 1e-12)
    assert found.primal >= optimum * (1.0 - 1e-6)
    assert found.primal == pytest.approx(optimum, rel=1e-4)
    direction = model.weights / np.linalg.norm(model.weights)
    np.testing.assert_allclose(direction, theirs.coef_[0] / length, atol=5e-3)
    assert -model.intercept / np.linalg.norm(model.weights) == pytest.approx(-theirs.intercept_[0] / length, rel=2e-2)
    outside = model.predict(rows()) == -1.0
    assert outside.sum() == int(nu * 300)
    assert np.mean(model.predict(rows()) == theirs.predict(X)) > 0.97
    assert verify(model, data()).consistent


def test_units_of_features_are_of_no_matter():
    models = [train(MemoryDataset(rows() * unit, np.ones(300)), task="one-class", nu=0.1) for unit in (1.0, 2.0**-20, 2.0**20)]
    directions = [model.weights / np.linalg.norm(model.weights) for model in models]
    for model, direction in zip(models, directions, strict=True):
        assert len(model.history) == len(models[0].history)
        np.testing.assert_allclose(direction, directions[0], rtol=1e-9)


def test_it_is_saved_stopped_resumed_and_evaluated(tmp_path):
    options = {"task": "one-class", "nu": 0.2, "tol": 1e-6, "tol_relative": None, "lanes": 2}
    whole = train(data(), **options)
    save_model(whole, tmp_path / "m.npz")
    assert load_model(tmp_path / "m.npz").decision_function(rows()) == pytest.approx(whole.decision_function(rows()), rel=1e-14)
    asked = iter(range(150))
    kept = CheckpointOptions(str(tmp_path / "kept"), iterations=1)
    broken = train(data(), checkpoint=kept, stop=lambda: next(asked, None) is None, **options)
    assert broken.stop_reason == "interrupted"
    resumed = train(data(), checkpoint=CheckpointOptions(str(tmp_path / "kept"), iterations=1, resume=True), **options)
    np.testing.assert_array_equal(resumed.weights, whole.weights)
    assert resumed.intercept == whole.intercept
    inside = whole.predict(rows())
    assert evaluate(whole, (rows(), inside)).accuracy == 1.0


def test_rows_around_the_origin_have_no_plane(caplog):
    X = np.random.default_rng(0).standard_normal((200, 3))
    model = train(MemoryDataset(np.vstack([X, -X]), np.ones(400)), task="one-class", nu=0.5)
    assert model.converged
    assert not model.weights.any()
    assert "the origin lies amid the rows" in caplog.text


def test_what_makes_no_sense_is_refused():
    with pytest.raises(UsageError, match=r"nu: 1\.5 is not a number above 0 and at most 1"):
        train(data(), task="one-class", nu=1.5)
    with pytest.raises(UsageError, match=r"nu: 0\.5 is an option of"):
        train(data(), task="binary", solver="ocas", nu=0.5)
    with pytest.raises(UsageError, match=r"C: 2\.0 is an option of task"):
        train(data(), task="one-class", C=2.0)
    with pytest.raises(BadInputError, match="weights"):
        train(MemoryDataset(rows(), np.ones(300), weight=np.full(300, 2.0)), task="one-class")
