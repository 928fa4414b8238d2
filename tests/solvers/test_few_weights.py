"""The elastic net: few weights, those that matter, small files, long steps."""

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut import load_model, save_model, train, verify

LABELS = (-1.0, 2.0, 5.0)
SEVERAL = {"task": "multiclass", "scheduler": "sync"}
KINDS = {
    "softmax": {"loss": "softmax"},
    "crammer-singer": {},
    "ovr-hinge": {"strategy": "one-vs-rest"},
}


def problem(n, d, seed):
    """Noisy rows of three classes, which four of the features tell apart."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.6, format="csr", rng=rng, data_sampler=rng.standard_normal)
    scores = 2.0 * (X @ (rng.standard_normal((d, 3)) * (np.arange(d) < 4)[:, None])) + rng.gumbel(size=(n, 3))
    return X, np.asarray(LABELS)[scores.argmax(axis=1)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_large_lambda_leaves_nothing_and_a_model_of_few_weights_is_a_small_file(kind, tmp_path):
    X, y = problem(200, 2000, seed=4)
    data = streamcut.rows(X, y)
    assert not train(data, **SEVERAL, **KINDS[kind], l1=1e4).weights.any()
    for k, l1 in enumerate((0.0, 20.0)):
        model = train(data, **SEVERAL, **KINDS[kind], l1=l1, tol=1e-2, tol_relative=None)
        save_model(model, tmp_path / f"{k}.npz")
        same = load_model(tmp_path / f"{k}.npz")
        assert same.weights.tobytes() == model.weights.tobytes()
        assert (same.problem.l1, same.certificates) == (l1, model.certificates)
        assert [each.a.tobytes() for each in same.witnesses] == [each.a.tobytes() for each in model.witnesses]
        assert verify(same, data).consistent
    assert model.certificate.converged
    assert 0 < np.count_nonzero(model.weights) < 600
    assert "weights are not 0" in model.in_words()
    dense, sparse = ((tmp_path / f"{k}.npz").stat().st_size for k in (0, 1))
    assert sparse < 0.5 * dense


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
def test_steps_are_long_where_thresholds_leave_few_features(loss):
    """Along a row the dual bends by ‖x‖² only where w has all its features: here it has a few of 1,200."""
    X, y = problem(200, 2000, seed=4)
    options = {"strategy": "one-vs-rest", "loss": loss, "l1": 5.0, "row_cache": "100%", "tol": 1e-2, "tol_relative": None}
    model = train(streamcut.rows(X, y), **SEVERAL, **options, lanes=1, max_passes=20)
    assert model.converged  # by steps for ‖x‖² it takes more than a hundred passes


def test_a_smaller_lambda_leaves_the_features_that_matter():
    X, y = problem(2000, 40, seed=5)
    model = train(streamcut.rows(X, y > 0.0), loss="logistic", l1=60.0, tol_relative=1e-4)
    assert set(np.flatnonzero(model.weights)) <= set(range(4))
    assert np.count_nonzero(model.weights) > 1
    assert model.describe()["l1"] == 60.0
