"""Platt scaling: the minimum that others find, weights as repeated rows, through files and the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, softmax
from sklearn.datasets import dump_svmlight_file
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from streamcut.calibration import calibrate, kept, platt, tempered
from streamcut.errors import BadInputError, UsageError
from streamcut.evaluation import evaluate
from streamcut.execution import kept_rows
from streamcut.execution.kept_rows import KeptRows
from streamcut.io.memory import MemoryDataset
from streamcut.models.files import describe_model, load_model, save_model
from streamcut.prediction import predict
from streamcut.training import train


def targets(positive, weights):
    """Platt's targets, and the weights of the two classes."""
    up, down = weights[positive].sum(), weights[~positive].sum()
    return np.where(positive, (up + 1) / (up + 2), 1 / (down + 2))


def value(AB, scores, positive, weights):
    f = AB[0] * scores + AB[1]
    t = targets(positive, weights)
    return float(weights @ (t * np.logaddexp(0, f) + (1 - t) * np.logaddexp(0, -f)))


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.sampled_from([0.01, 1.0, 300.0]), st.booleans())
def test_nothing_beats_it(seed, scale, separable):
    rng = np.random.default_rng(seed)
    positive = np.append(rng.random(60) < 0.3, [True, False])
    scores = scale * (np.where(positive, 1.0, -1.0) + (0 if separable else 1.5) * rng.standard_normal(62))
    weights = rng.uniform(0.1, 4.0, 62)
    found = value(platt(kept(scores, positive, weights)), scores, positive, weights)
    start = np.array([0.0, np.log((weights[~positive].sum() + 1) / (weights[positive].sum() + 1))])
    best = minimize(value, start * [1.0 / scale, 1.0], (scores, positive, weights), method="Nelder-Mead",
                    options={"xatol": 1e-10, "fatol": 1e-12, "maxiter": 4000})  # fmt: skip
    assert found <= best.fun + 1e-6 * (1 + best.fun)


def test_it_is_a_logistic_regression_with_soft_targets():
    rng = np.random.default_rng(0)
    positive = rng.random(500) < 0.4
    scores = np.where(positive, 1.0, -1.0) + rng.standard_normal(500)
    t = targets(positive, np.ones(500))
    both = LogisticRegression(C=1e10, tol=1e-10).fit(
        np.tile(scores, 2)[:, None], np.repeat([1, 0], 500), sample_weight=np.concatenate([t, 1 - t])
    )
    slope, offset = platt(kept(scores, positive, np.ones(500)))
    assert slope == pytest.approx(-both.coef_[0, 0], rel=1e-4)
    assert offset == pytest.approx(-both.intercept_[0], abs=1e-4)


def test_weights_are_repeated_rows():
    rng = np.random.default_rng(1)
    positive, times = rng.random(80) < 0.5, rng.integers(0, 4, 80)
    scores = np.where(positive, 1.0, -1.0) + 2 * rng.standard_normal(80)
    repeated = platt(kept(np.repeat(scores, times), np.repeat(positive, times), np.ones(times.sum())))
    np.testing.assert_allclose(platt(kept(scores, positive, times.astype(float))), repeated, rtol=1e-6)


def rows(seed=0, n=600):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, 20), density=0.4, rng=rng, format="csr", data_sampler=rng.standard_normal)
    odds = 3 * (X @ np.random.default_rng(9).standard_normal(20))
    return X, np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), 1.0, -1.0), odds


def test_probabilities_are_close_to_the_truth_and_survive_a_file(tmp_path):
    X, y, _ = rows()
    model = train(MemoryDataset(X, y))
    with pytest.raises(UsageError, match="calibrate"):
        predict(model, X, output="probabilities")
    held_out, labels, _ = rows(1)
    fitted = calibrate(model, (held_out, labels))
    test, _, odds = rows(2)
    p = predict(fitted, test, output="probabilities")
    assert np.abs(p - 1 / (1 + np.exp(-odds))).mean() < 0.08
    save_model(fitted, tmp_path / "m.npz")
    np.testing.assert_array_equal(predict(tmp_path / "m.npz", test, output="probabilities"), p)
    np.testing.assert_array_equal(fitted.decision_function(test), model.decision_function(test))
    save_model(model, tmp_path / "plain.npz")
    assert load_model(tmp_path / "plain.npz").link is None


@pytest.mark.parametrize("options", [{"solver": "smo", "kernel": "rbf"}, {"kernel": "rbf", "nystroem": 30}])
def test_kernel_models_have_them_too(options, tmp_path):
    X, y, _ = rows()
    fitted = calibrate(train(MemoryDataset(X, y), gamma=0.1, **options), MemoryDataset(*rows(1)[:2]))
    save_model(fitted, tmp_path / "m.npz")
    p = predict(tmp_path / "m.npz", X, output="probabilities")
    np.testing.assert_array_equal(p, fitted.link(fitted.decision_function(X)))
    assert ((p > 0.5) == (y > 0)).mean() > 0.7


def test_what_has_no_probabilities():
    X, y, _ = rows()
    model = train(MemoryDataset(X, y))
    with pytest.raises(BadInputError, match="both classes"):
        calibrate(model, (X, np.ones(600)))
    numbers = MemoryDataset(X, np.arange(600) % 3, qid=np.arange(600) // 60)
    with pytest.raises(UsageError, match="for classifiers"):
        calibrate(train(numbers, task="ranking"), numbers)


@pytest.mark.parametrize("strategy", ["crammer-singer", "one-vs-rest"])
def test_several_classes(strategy, tmp_path):
    rng = np.random.default_rng(5)
    X = sp.csr_array(rng.normal(size=(900, 6)))
    W = rng.normal(size=(6, 4))
    truth = softmax(2.0 * (X @ W), axis=1)
    y = np.array([rng.choice(4, p=p) for p in truth]).astype(np.float64)
    model = train(MemoryDataset(X[:300], y[:300]), task="multiclass", strategy=strategy)
    fitted = calibrate(model, (X[300:600], y[300:600]))
    save_model(fitted, tmp_path / "m.npz")
    p = predict(tmp_path / "m.npz", X[600:], output="probabilities")
    np.testing.assert_array_equal(p, fitted.probabilities_of(model.decision_function(X[600:])))
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    best = log_loss(y[600:], truth[600:])
    assert best < log_loss(y[600:], p) < best + 0.15
    assert "probabilities_scale" in describe_model(tmp_path / "m.npz")


def test_scores_and_offsets_are_those_of_greatest_likelihood():
    rng = np.random.default_rng(6)
    scores, target, u = rng.normal(size=(200, 3)), rng.integers(0, 3, 200), rng.integers(0, 3, 200).astype(float)
    scores[np.arange(200), target] += 1.0

    def cost(x: np.ndarray) -> float:
        p = softmax(x[0] * scores + x[1:], axis=1)
        return -float(u @ np.log(p[np.arange(200), target])) + 0.5e-6 * float(x[1:] @ x[1:])

    a, b = tempered(kept(scores, target, u))
    reached, best = cost(np.array([a, *b])), minimize(cost, np.zeros(4), method="Nelder-Mead", options={"maxiter": 4000}).fun
    assert reached <= best + 1e-6
    with pytest.raises(BadInputError, match="two classes"):
        tempered(kept(scores, np.ones(200, np.int64), u))


def test_a_logistic_model_has_probabilities_of_its_own(tmp_path):
    X, y, _ = rows()
    model = train(MemoryDataset(X, y), loss="logistic")
    save_model(model, tmp_path / "m.npz")
    p = predict(tmp_path / "m.npz", X, output="probabilities")
    np.testing.assert_allclose(p, expit(model.decision_function(X)), rtol=1e-15)
    found = evaluate(model, (X, y))
    assert found.log_loss == pytest.approx(log_loss(y, p))
    assert found.log_loss == pytest.approx(found.mean_logistic_loss)
    fitted = calibrate(model, rows(1)[:2])
    assert np.abs(predict(fitted, X, output="probabilities") - p).max() > 1e-6


def test_rows_of_training_are_warned_of():
    X, y, _ = rows()
    data = MemoryDataset(X, y)
    with pytest.warns(UserWarning, match="training rows"):
        calibrate(train(data), data)


def test_the_commands(tmp_path, run):
    X, y, _ = rows()
    dump_svmlight_file(sp.csr_matrix(X), y, str(tmp_path / "rows.svm"), zero_based=False)
    store, model = tmp_path / "rows.zarr", tmp_path / "m.npz"
    assert run("convert", tmp_path / "rows.svm", store)[0] == 0
    assert run("train", store, "--model", model, "--quiet")[0] == 0
    code, _, err = run("predict", model, store, "--probability")
    assert (code, "calibrate" in err) == (2, True)
    before = model.read_bytes()
    code, out, _ = run("calibrate", model, store, "-o", tmp_path / "p.npz", "--json")
    assert code == 0
    assert model.read_bytes() == before
    record = json.loads(out)
    assert record["rows"] == 600
    assert run("calibrate", model, store, "-o", tmp_path / "p.npz")[0] == 2
    assert run("calibrate", model, tmp_path / "rows.svm")[0] == 0
    slope = load_model(model).link.A
    assert slope == pytest.approx(record["A"])
    code, out, _ = run("predict", tmp_path / "p.npz", store, "--probability")
    printed = np.array(out.split(), dtype=float)
    np.testing.assert_array_equal(printed, predict(tmp_path / "p.npz", store, output="probabilities"))
    assert "probabilities_A" in run("info", tmp_path / "p.npz", "--json")[1]


def test_rows_beyond_memory_lie_in_a_scratch_file_in_the_same_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_rows, "BLOCK_BYTES", 40 * 30)
    kind = np.dtype([("scores", np.float64, (3,)), ("truth", np.int64), ("weight", np.float64)])
    rng = np.random.default_rng(2)
    given = {"scores": rng.normal(size=(1000, 3)), "truth": rng.integers(0, 3, 1000), "weight": rng.random(1000)}
    found = []
    for held in (1 << 20, 3 * 1200, 0):
        rows = KeptRows(kind, held=held, folder=tmp_path)
        for start in range(0, 1000, 7):
            rows.add(**{name: column[start : start + 7] for name, column in given.items()})
        assert len(rows) == 1000
        assert len(rows._blocks) <= max(1, held // 1200)
        for _ in range(2):  # they can be gone through again
            blocks = [block.copy() for block in rows]
            assert [len(block) for block in blocks] == [30] * 33 + [10]
            for name, column in given.items():
                assert (np.concatenate([block[name] for block in blocks]) == column).all()
        found.append(tempered(rows))
    assert found[0] == found[1] == found[2]
    assert not list(tmp_path.iterdir())
