"""Streamed scores and labels equal those of arrays, whatever holds the rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut import predict, prediction
from streamcut.errors import BadInputError, NotFoundError, UsageError
from streamcut.models.certificate import Certificate, StopReason
from streamcut.models.linear import LinearModel
from streamcut.problem import Problem

pytestmark = pytest.mark.smoke


@pytest.fixture
def model() -> LinearModel:
    certificate = Certificate(1.0, 1.0, 1.0, None, None, True, StopReason.CONVERGED)
    return LinearModel(
        weights=np.random.default_rng(5).normal(size=20), intercept=-0.25, certificates=(certificate,),
        problem=Problem(labels=(2.0, 3.0), intercept="regularised", bias=0.5),
    )  # fmt: skip


def rows(n=300, d=20, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.3, rng=rng, format="csr", data_sampler=rng.normal)
    return X, rng.choice([2.0, 3.0], size=n)


@pytest.mark.parametrize("bias", [0.0, 0.5])
@pytest.mark.parametrize("ones", [False, True])
@pytest.mark.parametrize("at_once", [1, 7, 1 << 20])
def test_streamed_scores_are_those_of_arrays(model, bias, ones, at_once, monkeypatch):
    monkeypatch.setattr(prediction, "SCORES_AT_ONCE", at_once)
    model = replace(model, problem=replace(model.problem, bias=bias), intercept=-0.25 if bias else 0.0)
    X, y = rows()
    if ones:
        X.data[:] = 1
    dense = X.toarray() @ model.weights + model.intercept
    data = streamcut.rows(X, y, shard_nnz=200)
    assert len(data.manifest.shards) > 5
    assert (data.read(0).data is None) == ones
    for given in (X, X.toarray(), data):
        np.testing.assert_allclose(predict(model, given, answer="scores"), dense, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(predict(model, given), np.where(dense > 0, 3.0, 2.0))


def test_features_that_the_model_lacks(model):
    X, y = rows()
    narrow = replace(model, weights=model.weights[:15])
    data = streamcut.rows(X, y, shard_nnz=200)
    expected = X.toarray()[:, :15] @ narrow.weights + narrow.intercept
    first = int(np.argmax(np.diff(X[:, 15:].indptr) > 0))
    with pytest.raises(BadInputError, match=rf"row {first} \(0-based\) has feature .* the model has 15.*extra_features=True"):
        predict(narrow, data)
    with pytest.raises(BadInputError, match="15 features"):
        predict(narrow, X)
    for given in (X, X.toarray(), data):
        scores = predict(narrow, given, answer="scores", ignore_extra_features=True)
        np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)
    X.data[:] = 1
    scores = predict(narrow, streamcut.rows(X, y, shard_nnz=200), answer="scores", ignore_extra_features=True)
    np.testing.assert_allclose(scores, X.toarray()[:, :15] @ narrow.weights + narrow.intercept, rtol=1e-12, atol=1e-12)


def test_a_data_set_may_have_fewer_features(model):
    X, y = rows(d=10)
    scores = predict(model, streamcut.rows(X, y), answer="scores")
    np.testing.assert_allclose(scores, X.toarray() @ model.weights[:10] + model.intercept, rtol=1e-12, atol=1e-12)
    with pytest.raises(BadInputError, match="20 features"):
        predict(model, X)


def test_scores_that_are_not_finite_name_their_row(model):
    X = sp.csr_array(np.full((3, 20), 1e308))
    huge = replace(model, weights=np.full(20, 1e10))
    with pytest.raises(BadInputError, match=r"row 0 \(0-based\): its score is not finite"):
        predict(huge, streamcut.rows(X, np.zeros(3)))


def test_what_cannot_be_is_refused(model, tmp_path):
    with pytest.raises(UsageError, match="answer"):
        predict(model, rows()[0], answer="probability")
    with pytest.raises(NotFoundError, match="nothing"):
        predict(model, tmp_path / "nothing.zarr")
