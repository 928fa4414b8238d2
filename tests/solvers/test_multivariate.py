"""Losses of whole labellings: the search over tables against all labellings, and certificates that hold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.multivariate import LOSSES, problem
from reference import multivariate as slow
from reference import svm
from reference.one_group import evaluated_by_ranges

from streamcut.errors import BadInputError, UsageError
from streamcut.evaluation import evaluate
from streamcut.io.memory import MemoryDataset
from streamcut.losses.multivariate import Multivariate, rows_of
from streamcut.training import train
from streamcut.verification import verify


def evaluated(loss, k, truth, scores, room=None):
    """(risk, coefficients, offset) by streamcut's search; `room` for so many sorted scores."""
    return evaluated_by_ranges(Multivariate(loss, 1.0, k), np.where(truth, 1.0, 0.0), scores, room)


scores_of_rows = st.one_of(st.sampled_from([-1.0, -0.0, 0.0, 0.5, 1.0]), st.floats(-3, 3))


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), scores_of_rows, scores_of_rows), min_size=2, max_size=9),
    st.sampled_from([loss for loss, _ in LOSSES]),
    st.integers(1, 9),
)
def test_search_equals_all_labellings_and_is_a_subgradient(rows, loss, k):
    truth, scores, others = (np.array(column) for column in zip(*rows, strict=True))
    truth[0], truth[-1] = True, False
    k = min(k, len(truth))
    expected = slow.risk(scores, truth, loss, k)
    assert slow.risk_by_tables(scores, truth, loss, k) == pytest.approx(expected, abs=1e-12)
    found, coefficients, offset = evaluated(loss, k, truth, scores)
    assert found == pytest.approx(expected, abs=1e-12)
    assert coefficients @ scores + offset == pytest.approx(expected, abs=1e-12)
    assert coefficients @ others + offset <= slow.risk(others, truth, loss, k) + 1e-12


@pytest.mark.parametrize("loss", [loss for loss, _ in LOSSES])
def test_search_equals_all_tables_of_more_rows(loss):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(50, 90))
        truth = rng.random(n) < rng.choice([0.05, 0.4, 0.9])
        truth[:2] = True, False
        scores = np.round(rng.normal(0, rng.choice([0.1, 1.0, 5.0]), n), 1) + 2.0 * (truth - 0.5) * rng.random()
        k = int(rng.integers(1, n + 1))
        expected = slow.risk_by_tables(scores, truth, loss, k)
        assert evaluated(loss, k, truth, scores)[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("solver", ["ocas", "cpa"])
@pytest.mark.parametrize(("loss", "k"), LOSSES)
def test_certificate_holds(loss, k, solver):
    X, y = problem()
    model = train(MemoryDataset(X, y), loss=loss, k=k, C=0.4, solver=solver, tol=1e-4, tol_relative=None)
    certificate, truth = model.certificate, y == 4.0
    c_bar, rows = 24.0, 0 if k is None else rows_of(k, 60)
    dense = np.hstack([X.toarray(), np.ones((60, 1))])
    assert certificate.converged
    assert certificate.gap <= 1e-4 * c_bar
    w = model.augmented_weights
    risk = slow.risk_by_tables(dense @ w, truth, loss, rows)
    assert certificate.primal == pytest.approx(0.5 * w @ w + c_bar * risk, rel=1e-11)
    assert model.witness.bound(c_bar) == pytest.approx(certificate.lower_bound, rel=1e-9)
    assert verify(model, (X, y)).consistent
    rng = np.random.default_rng(1)
    for size in (0.0, 0.1, 1.0, 10.0):  # the witness is a cut: R is never below it, so nothing is below the bound
        for other in (w + size * rng.standard_normal(7), size * rng.standard_normal(7)):
            at_other = slow.risk_by_tables(dense @ other, truth, loss, rows)
            assert model.witness.a @ other + model.witness.b <= at_other + 1e-12


def test_errors_are_the_hinge_loss():
    X, y = problem()
    dense = np.hstack([X.toarray(), np.ones((60, 1))])
    primal, dual = svm.optimum(dense, np.where(y > 0, 1.0, -1.0), 0.4, np.ones(60))
    certificate = train(MemoryDataset(X, y), loss="error", C=0.4, tol=1e-6, tol_relative=None).certificate
    assert certificate.lower_bound <= primal * (1 + 1e-9)
    assert certificate.primal >= dual * (1 - 1e-9)
    assert certificate.gap <= 1e-6 * 24.0


@pytest.mark.parametrize(("loss", "k"), LOSSES)
def test_same_bits_whatever_shards_threads_and_lanes(loss, k):
    X, y = problem(500, 20)
    options = {"loss": loss, "k": k, "C": 0.2}
    expected = train(MemoryDataset(X, y), scheduler="sync", lanes=1, **options)
    for shard_nnz, workers, lanes in ((500, 1, 3), (2000, 2, 8)):
        model = train(MemoryDataset(X, y, shard_nnz=shard_nnz), workers=workers, lanes=lanes, **options)
        assert model.augmented_weights.tobytes() == expected.augmented_weights.tobytes()
        assert model.certificate == expected.certificate


def test_k_is_a_number_of_rows_or_a_part_of_them():
    assert (rows_of("100", 500), rows_of("10%", 500), rows_of("0.5%", 500)) == (100, 50, 2)
    for k in ("0", "501", "101%", "0.01%", "ten", "1.5", ""):
        with pytest.raises(UsageError, match="k:"):
            rows_of(k, 500)


def test_what_makes_no_sense_is_refused():
    X, y = problem()
    with pytest.raises(BadInputError, match="weights"):
        train(MemoryDataset(X, y, weight=np.ones(60) * 2), loss="f1")
    with pytest.raises(UsageError, match="positive_weight"):
        train(MemoryDataset(X, y), loss="f1", positive_weight=2.0)
    with pytest.raises(UsageError, match="k"):
        train(MemoryDataset(X, y), loss="prec@k")


def test_optimising_f1_gives_a_better_f1(load):
    X, y = load("a9a")
    test = load("a9a", "test")
    data = MemoryDataset(X, y)
    scores = [evaluate(train(data, C=0.1, loss=loss, max_passes=60), test).f1 for loss in ("hinge", "f1")]
    assert scores[1] > scores[0] + 0.01
