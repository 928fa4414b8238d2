"""Several classes with an elastic net: few weights, long steps, and trainings that start from a model."""

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut import load_model, save_model, train, verify
from streamcut.errors import UsageError

LABELS = (-1.0, 2.0, 5.0)
SEVERAL = {"task": "multiclass", "scheduler": "sync"}
KINDS = {
    "softmax": {"loss": "softmax"},
    "crammer-singer": {},
    "ovr-hinge": {"strategy": "one-vs-rest"},
}


def problem(n=90, d=10, *, seed=0, weights=False):
    """Noisy rows of three classes, which four of the features tell apart; row weights that may be 0."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.6, format="csr", rng=rng, data_sampler=rng.standard_normal)
    scores = 2.0 * (X @ (rng.standard_normal((d, 3)) * (np.arange(d) < 4)[:, None])) + rng.gumbel(size=(n, 3))
    return X, np.asarray(LABELS)[scores.argmax(axis=1)], rng.uniform(0.2, 3.0, n) * (rng.random(n) < 0.9) if weights else None


@pytest.mark.parametrize("kind", KINDS)
def test_a_large_lambda_leaves_nothing_and_a_model_of_few_weights_is_a_small_file(kind, tmp_path):
    X, y, _ = problem(200, 2000, seed=4)
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
    assert 0 < np.count_nonzero(model.weights) < 600
    assert "weights are not 0" in model.in_words()
    dense, sparse = ((tmp_path / f"{k}.npz").stat().st_size for k in (0, 1))
    assert sparse < 0.5 * dense


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
def test_steps_are_long_where_thresholds_leave_few_features(loss):
    """Along a row the dual bends by ‖x‖² only where w has all its features: here it has a few of 1,200."""
    X, y, _ = problem(200, 2000, seed=4)
    options = {"strategy": "one-vs-rest", "loss": loss, "l1": 5.0, "row_cache": "100%", "tol": 1e-2, "tol_relative": None}
    model = train(streamcut.rows(X, y), **SEVERAL, **options, lanes=1, max_passes=20)
    assert model.converged  # by steps for ‖x‖² it takes more than a hundred passes


def test_what_is_no_model_to_begin_with_is_refused():
    X, y, _ = problem()
    data = streamcut.rows(X, y)
    two = train(streamcut.rows(X, np.where(y > 0, 1.0, -1.0)))
    with pytest.raises(UsageError, match="it takes a linear one for several classes"):
        train(data, **SEVERAL, warm_start=two)
    others = train(streamcut.rows(X, y + 1.0), **SEVERAL)
    with pytest.raises(UsageError, match="do not have the same classes"):
        train(data, **SEVERAL, warm_start=others)
    wide = train(streamcut.rows(sp.csr_array(sp.hstack([X, X])), y), **SEVERAL)
    with pytest.raises(UsageError, match="20 features, but the data has 10"):
        train(data, **SEVERAL, warm_start=wide)
