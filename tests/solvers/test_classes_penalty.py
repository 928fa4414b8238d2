"""Several classes with an elastic net, with scales, warm starts and paths: certificates against a slow solver, and what must not
change the answer."""

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from kit.nights import by_night
from reference import classes as slow
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

import streamcut
from streamcut import CheckpointOptions, load_model, save_model, train, verify
from streamcut.errors import UsageError

LABELS = (-1.0, 2.0, 5.0)
SEVERAL = {"task": "multiclass", "scheduler": "sync"}
KINDS = {
    "softmax": {"loss": "softmax"},
    "crammer-singer": {},
    "ovr-hinge": {"strategy": "one-vs-rest"},
    "ovr-logistic": {"strategy": "one-vs-rest", "loss": "logistic"},
    "ovr-squared-hinge": {"strategy": "one-vs-rest", "loss": "squared-hinge"},
}
WAYS = {"bundle-dca": {"row_cache": "50%"}, "uncached": {"row_cache": "0"}}
NIGHTLY = ("ovr-logistic", "ovr-squared-hinge")  # alike but for the loss
ROUTES = [(kind, way) for kind in KINDS for way in WAYS]
ROUTES_BY_NIGHT = [each for each in ROUTES if each[0] in NIGHTLY or each == ("ovr-hinge", "uncached")]
routes = pytest.mark.parametrize("route", by_night(ROUTES, ROUTES_BY_NIGHT), ids=" by ".join)


def problem(n=90, d=10, *, seed=0, weights=False):
    """Noisy rows of three classes, which four of the features tell apart; row weights that may be 0."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.6, format="csr", rng=rng, data_sampler=rng.standard_normal)
    scores = 2.0 * (X @ (rng.standard_normal((d, 3)) * (np.arange(d) < 4)[:, None])) + rng.gumbel(size=(n, 3))
    return X, np.asarray(LABELS)[scores.argmax(axis=1)], rng.uniform(0.2, 3.0, n) * (rng.random(n) < 0.9) if weights else None


kinds = pytest.mark.parametrize("kind", by_night(KINDS, NIGHTLY))
LOSSES = {"ovr-hinge": "hinge", "ovr-logistic": "logistic", "ovr-squared-hinge": "squared-hinge"}


def with_bias(X, bias):
    return np.hstack([X.toarray(), np.full((X.shape[0], 1), bias)]) if bias else X.toarray()


@cache
def optima(kind, l1, C, bias, weights):
    """[(least primal found, greatest dual found)] of the one problem, or of each class."""
    X, y, u = problem(weights=weights)
    A, u, target = with_bias(X, bias), np.ones(len(y)) if u is None else u, np.searchsorted(LABELS, y)
    if kind in LOSSES:
        return [slow.binary(A, np.where(target == k, 1.0, -1.0), C, u, LOSSES[kind], l1) for k in range(3)]
    return [slow.joint(A, target, C, u, kind, l1)]


@pytest.mark.thirds
@routes
def test_the_optimum_is_between_bound_and_primal(route):
    kind, way = route
    l1, C, bias, weights = (0.4, 0.3, 0.0, True) if way == "bundle-dca" else (3.0, 2.0, 1.0, False)
    X, y, u = problem(weights=weights)
    tol = 1e-3 if way == "uncached" and kind.startswith("ovr") else 1e-5
    data = streamcut.rows(X, y, weight=u, shard_nnz=200)
    model = train(
        data, **SEVERAL, **KINDS[kind], **WAYS[way], l1=l1, C=C, bias=bias, lanes=2, tol=tol, tol_relative=None, max_passes=400
    )
    assert model.converged
    found = optima(kind, l1, C, bias, weights)
    for certificate, (least, most) in zip(model.certificates, found, strict=True):
        assert least - most <= 1e-4 * least  # the slow solver's own
        assert certificate.lower_bound <= least
        assert most <= certificate.primal
        assert certificate.gap <= 1.01 * tol * certificate.c_bar
    checked = verify(model, data)
    assert checked.consistent
    for each, certificate in zip(checked.classes or (checked,), model.certificates, strict=True):
        assert certificate.lower_bound <= each.lower_bound + each.slack
        assert each.primal == pytest.approx(certificate.primal, rel=1e-11)
    model.weights[0, 1] += 0.1
    assert not verify(model, data).consistent


@pytest.mark.thirds
@kinds
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


@pytest.mark.parametrize("loss", by_night(["hinge", "squared-hinge"], ["squared-hinge"]))
def test_steps_are_long_where_thresholds_leave_few_features(loss):
    """Along a row the dual bends by ‖x‖² only where w has all its features: here it has a few of 1,200."""
    X, y, _ = problem(200, 2000, seed=4)
    options = {"strategy": "one-vs-rest", "loss": loss, "l1": 5.0, "row_cache": "100%", "tol": 1e-2, "tol_relative": None}
    model = train(streamcut.rows(X, y), **SEVERAL, **options, lanes=1, max_passes=20)
    assert model.converged  # by steps for ‖x‖² it takes more than a hundred passes


@routes
def test_neither_threads_nor_stops_change_a_bit(route, tmp_path):
    kind, way = route
    X, y, u = problem(300, seed=2, weights=True)
    options = {"task": "multiclass", **KINDS[kind], **WAYS[way], "l1": 1.5, "scale": "std", "lanes": 3}
    options |= {"max_passes": 6, "tol": 1e-9}
    data = streamcut.rows(X, y, weight=u, shard_nnz=100)
    whole = train(data, **options, scheduler="sync")
    others = [train(data, **options, workers=3)]
    for passes in (2, 4, 6):
        keep = CheckpointOptions(str(tmp_path / way), every=0.0, resume=True)
        others.append(train(data, **{**options, "max_passes": passes}, checkpoint=keep))
    for model in (others[0], others[-1]):
        assert model.weights.tobytes() == whole.weights.tobytes()
        assert model.certificates == whole.certificates
    with pytest.raises(UsageError, match="l1"):
        train(data, **{**options, "l1": 2.0}, checkpoint=CheckpointOptions(str(tmp_path / way), resume=True))


@pytest.mark.parametrize("kind", by_night([kind for kind in KINDS if kind != "ovr-hinge"], NIGHTLY))
@pytest.mark.parametrize("scale", ["max-abs", "std"])
def test_scaled_is_the_scaled_problem_with_weights_for_values_as_they_are(kind, scale):
    X, y, _ = problem(seed=7)
    X = sp.csr_array(X * np.geomspace(0.01, 100.0, X.shape[1]))
    scaler = MaxAbsScaler() if scale == "max-abs" else StandardScaler(with_mean=False)
    options = {**SEVERAL, **KINDS[kind], "tol": 1e-6, "tol_relative": None, "l1": 0.2}
    ours = train(streamcut.rows(X, y), scale=scale, **options)
    theirs = train(streamcut.rows(sp.csr_matrix(scaler.fit_transform(sp.csr_matrix(X))), y), **options)
    for one, other in zip(ours.certificates, theirs.certificates, strict=True):
        assert one.lower_bound <= other.primal * (1.0 + 1e-12)
        assert other.lower_bound <= one.primal * (1.0 + 1e-12)
    np.testing.assert_allclose(ours.weights, theirs.weights / scaler.scale_[:, None], rtol=0.2, atol=0.05 / scaler.scale_.min())
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(scaler.transform(sp.csr_matrix(X))), atol=0.05)
    assert verify(ours, streamcut.rows(X, y)).consistent


@routes
def test_a_warm_start_begins_with_the_weights_and_their_proof(route):
    kind, way = route
    X, y, u = problem(seed=5, weights=True)
    data, options = streamcut.rows(X, y, weight=u), {**SEVERAL, **KINDS[kind], "tol_relative": None}
    model = train(data, **options, tol=1e-5)
    again = train(data, **options, **WAYS[way], tol=1e-4, warm_start=model)
    assert again.converged
    assert again.history[-1]["passes"] == 1
    for C, l1 in ((3.0, 0.0), (1.0, 0.5)):
        other = train(data, **options, **WAYS[way], tol=1e-3, C=C, l1=l1, warm_start=model)
        cold = train(data, **options, tol=1e-5, C=C, l1=l1)
        for one, two in zip(other.certificates, cold.certificates, strict=True):
            assert one.lower_bound <= two.primal
            assert two.lower_bound <= one.primal
        assert verify(other, data).consistent


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
