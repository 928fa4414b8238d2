"""A path over C: every model as good as one trained on its own, in fewer passes, the best one chosen, resumable."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut import CheckpointOptions, train, verify
from streamcut.errors import UsageError
from streamcut.grids.selection import train_path
from streamcut.models.certificate import StopReason

CS = [0.01, 0.1, 1.0]
SOLVERS = {
    "ocas": {"solver": "ocas"},
    "exact": {"solver": "ocas", "cut": "exact"},
    "cpa": {"solver": "cpa"},
    "bundle-dca": {"solver": "bundle-dca", "max_cuts": 6, "row_cache": "30%"},
}


@cache
def data(seed: int = 0, weighted: bool = False) -> Any:
    rng = np.random.default_rng(seed)
    X = sp.random_array((500, 30), density=0.3, format="csr", rng=rng, data_sampler=rng.standard_normal)
    y = np.where(X @ np.random.default_rng(7).standard_normal(30) + 0.5 * rng.standard_normal(500) > 0.1, 1.0, -1.0)
    return streamcut.rows(X, y, weight=rng.uniform(0.2, 3.0, 500) if weighted else None)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_certificate_holds(solver, weighted):
    models = []
    train_path(data(0, weighted), CS, on_model=lambda model, tried: models.append(model), **SOLVERS[solver])
    assert [model.C for model in models] == CS
    for model in models:
        exact = train(data(0, weighted), C=model.C, tol=1e-7, tol_relative=None).certificate
        assert model.certificate.converged
        assert model.certificate.lower_bound <= exact.primal
        assert model.certificate.primal >= exact.lower_bound
        w = model.augmented_weights
        y = data(0, weighted).read(0).y
        u = data(0, weighted).read(0).weight
        loss = np.maximum(0.0, 1.0 - y * model.score_chunk(data(0, weighted).read(0)))
        primal = 0.5 * w @ w + model.C * (loss @ u if weighted else loss.sum())
        assert model.certificate.primal == pytest.approx(primal, rel=1e-12)
        assert model.witness.bound(model.certificate.c_bar) == pytest.approx(model.certificate.lower_bound, rel=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
def test_going_on_takes_fewer_passes(solver):
    _, tried = train_path(data(), [0.5, 1.0, 2.0], max_passes=900, **SOLVERS[solver])
    alone = [train(data(), C=C, max_passes=900, **SOLVERS[solver]).history[-1]["passes"] for C in (0.5, 1.0, 2.0)]
    assert tried[0].passes == alone[0]
    assert sum(line.passes for line in tried) < sum(alone)


def test_the_best_on_validation_data_comes_out():
    held_out = data(1)
    best, tried = train_path(data(), [1e-5, 1.0, 0.1], validation=held_out, measure="roc_auc")
    assert [line.C for line in tried] == [1e-5, 0.1, 1.0]
    values = [line.measures["roc_auc"] for line in tried]
    assert best.C == tried[int(np.argmax(values))].C
    assert max(values) > values[0]


def test_the_smaller_of_equals():
    best, _ = train_path(data(), CS, validation=data(), measure="recall", positive_label=-1.0)
    assert best.C in CS
    everything_equal, _ = train_path(data(), [1e-9, 1e-8], validation=data(), measure="accuracy")
    assert everything_equal.C == 1e-9


@pytest.mark.parametrize("solver", ["ocas", "bundle-dca"])
def test_resumed_to_the_same_bits(solver, tmp_path):
    options = {**SOLVERS[solver], "tol": 1e-6, "tol_relative": None, "max_passes": 400, "lanes": 2}

    def bits(models):
        return [(m.weights.tobytes(), m.certificate, m.history[-1]["passes"]) for m in models]

    undisturbed, found = [], []
    train_path(data(), CS, on_model=lambda model, _: undisturbed.append(model), **options)
    for limit in (40, 170, 10**9):  # the run is stopped after so many looks at the flag, then goes on
        found.clear()
        looks = iter(range(limit))
        checkpoint = CheckpointOptions(str(tmp_path / "run"), every=0.0, resume=True)
        try:
            train_path(
                data(),
                CS,
                checkpoint=checkpoint,
                stop=lambda looks=looks: next(looks, None) is None,
                on_model=lambda model, _: found.append(model),
                **options,
            )
        except KeyboardInterrupt:
            continue
    assert all(model.certificate.stop_reason is not StopReason.INTERRUPTED for model in found)
    assert bits(found) == bits(undisturbed)


LAMBDAS = [0.0, 3.0, 40.0, 10.0]


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("solver", ["bundle-dca", "ocas", "cpa"])
def test_a_path_over_l1_goes_from_few_weights_to_many(solver, loss):
    options = {"solver": solver, "loss": loss, "tol": 1e-4, "tol_relative": None, "max_passes": 400}
    options |= {"row_cache": "30%"} if solver == "bundle-dca" else {}  # cached whole, small data takes few passes from anywhere
    models = []
    _, tried = train_path(data(), [1.0], l1s=LAMBDAS, on_model=lambda model, _: models.append(model), **options)
    assert [line.l1 for line in tried] == [model.l1 for model in models] == sorted(LAMBDAS, reverse=True)
    assert [line.nonzero for line in tried] == [np.count_nonzero(model.weights) for model in models]
    assert tried[0].nonzero < tried[1].nonzero < tried[-1].nonzero == 30
    for model in models:
        alone, found = train(data(), l1=model.l1, **options).certificate, model.certificate
        assert model.converged
        assert found.lower_bound <= alone.primal
        assert alone.lower_bound <= found.primal
        assert verify(model, data()).consistent
    if solver == "bundle-dca":
        cold = sum(train(data(), l1=l1, **options).history[-1]["passes"] for l1 in LAMBDAS)
        assert sum(line.passes for line in tried) < cold


def test_a_path_over_l1_goes_on_where_it_was_stopped(tmp_path):
    options = {"tol": 1e-6, "tol_relative": None, "lanes": 2, "loss": "logistic"}
    undisturbed, found = [], []
    train_path(data(), [1.0], l1s=LAMBDAS, on_model=lambda model, _: undisturbed.append(model), **options)
    for limit in (30, 120, 10**9):
        found.clear()
        asked = iter(range(limit))
        checkpoint = CheckpointOptions(str(tmp_path / "run"), every=0.0, resume=True)
        more = {"checkpoint": checkpoint, "stop": lambda asked=asked: next(asked, None) is None}
        try:
            train_path(data(), [1.0], l1s=LAMBDAS, on_model=lambda model, _: found.append(model), **more, **options)
        except KeyboardInterrupt:
            continue
    assert [m.weights.tobytes() for m in found] == [m.weights.tobytes() for m in undisturbed]
    assert [m.certificate for m in found] == [m.certificate for m in undisturbed]


@pytest.mark.parametrize(
    ("Cs", "more", "says"),
    [
        ([], {}, "one value"),
        ([1.0], {"C": 2.0}, "no option C"),
        ([1.0, 1.0], {}, "once"),
        ([1.0, -1.0], {}, "-1.0 is not a number between"),
        ([0.1, 1.0], {"l1s": [1.0, 2.0]}, "over C or over l1"),
        ([1.0], {"l1s": [1.0, 1.0]}, "once"),
        ([1.0], {"l1s": [1.0], "l1": 2.0}, "no option l1"),
        ([1.0], {"l1s": [2.0, -1.0]}, "l1"),
        ([1.0], {"validation": data(1), "measure": "beauty"}, "accuracy, balanced_accuracy"),
    ],
)
def test_what_makes_no_sense_is_refused(Cs, more, says):
    with pytest.raises(UsageError, match=says):
        train_path(data(), Cs, **more)


@pytest.mark.parametrize("measure", ["log_loss", "brier_score", "calibration_error", "mean_logistic_loss"])
def test_of_losses_the_least_is_best(measure):
    best, tried = train_path(data(), CS, validation=data(3), measure=measure, loss="logistic")
    values = [line.measures[measure] for line in tried]
    assert [line.value for line in tried] == values
    assert CS[int(np.argmin(values))] == best.C


def test_errors_of_numbers_choose_a_regression():
    X, y = np.random.default_rng(0).standard_normal((60, 3)), np.random.default_rng(1).standard_normal(60)
    best, tried = train_path(
        streamcut.rows(X, y), [0.001, 1.0], validation=streamcut.rows(X, y), measure="mean_absolute_error", task="regression"
    )
    assert best.C == min(tried, key=lambda line: line.measures["mean_absolute_error"]).C
    with pytest.raises(UsageError, match="there is no pinball_loss for such a model"):
        train_path(streamcut.rows(X, y), [1.0], validation=streamcut.rows(X, y), measure="pinball_loss", task="regression")


def test_a_measure_that_is_not_defined():
    chunk = data(1).read(0)
    ones = streamcut.rows(np.ones((3, 30)), np.ones(3))
    assert chunk.n_rows
    with pytest.raises(UsageError, match="roc_auc is not defined"):
        train_path(data(), [1.0], validation=ones, measure="roc_auc")
