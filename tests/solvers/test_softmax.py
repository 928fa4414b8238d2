"""Multinomial logistic regression: kernels, solvers and certificates against slow versions and scikit-learn."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from kit.shared.softmax import WAYS, problem
from sklearn.datasets import dump_svmlight_file

import streamcut
from streamcut import train, tune
from streamcut.errors import UsageError


class TestInvariance:
    @pytest.mark.parametrize(("solver", "more"), WAYS)
    def test_workers_change_no_bit(self, solver, more):
        X, y, u = problem(1000, 20, weights=True, seed=1)
        options = {"task": "multiclass", "loss": "softmax", "solver": solver, "lanes": 3, "max_passes": 8, **more}
        for shard_nnz in (1 << 20, 3000):
            data = streamcut.rows(X, y, weight=u, shard_nnz=shard_nnz)
            expected, model = train(data, **options, scheduler="sync"), train(data, **options, workers=3)
            np.testing.assert_array_equal(model.weights, expected.weights)
            assert model.certificates == expected.certificates

    def test_weight_two_is_the_row_twice(self):
        X, y, _ = problem(60, seed=5)
        options = {"task": "multiclass", "loss": "softmax", "tol": 1e-6, "tol_relative": None}
        twice = train(streamcut.rows(sp.vstack([X, X]), np.tile(y, 2)), **options).certificates[0]
        weighted = train(streamcut.rows(X, y, weight=np.full(60, 2.0)), **options).certificates[0]
        assert weighted.lower_bound <= twice.primal
        assert twice.lower_bound <= weighted.primal

    def test_a_path_over_c(self):
        X, y, _ = problem(200, seed=4)
        results = tune(streamcut.rows(X, y, shard_nnz=200), {"C": [0.1, 1.0]}, folds=2, task="multiclass", loss="softmax")
        assert results.best.measure == "accuracy"
        assert results.model.converged
        assert results.model.certificates[0].lower_bound <= results.model.certificates[0].primal


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "multiclass", "strategy": "one-vs-rest"}, "strategy: loss softmax trains all classes together"),
        ({"task": "binary"}, "loss: softmax is for task multiclass; for two classes use logistic"),
        ({"task": "multiclass", "loss": "logistic"}, "loss: logistic for several classes needs strategy one-vs-rest"),
        ({"task": "multiclass", "loss": "f1"}, "loss: 'f1' is not one of task multiclass, which has hinge, softmax"),
    ],
)
def test_options_that_do_not_fit(options, message):
    X, y, _ = problem(20)
    with pytest.raises(UsageError, match=message):
        train(streamcut.rows(X, y), **{"loss": "softmax", **options})


def test_command_line(run, tmp_path):
    X, y, _ = problem()
    with open(tmp_path / "rows.svm", "w") as file:
        dump_svmlight_file(X, y, file.name, zero_based=False)
    assert run("convert", tmp_path / "rows.svm", tmp_path / "rows.zarr")[0] == 0
    model = tmp_path / "m.npz"
    code, _, told = run("train", tmp_path / "rows.zarr", "--task", "multiclass", "--loss", "softmax", "--output", model)
    assert code == 0
    assert "Converged" in told
    code, shown, _ = run("evaluate", model, tmp_path / "rows.svm", "--json")
    assert code == 0
    assert json.loads(shown)["log_loss"] < np.log(4)
    assert run("verify", model)[0] == 0


def test_the_command_line_prints_probabilities(tmp_path, run):
    (tmp_path / "a.svm").write_text("".join(f"{k % 3} {k % 3 + 1}:1 4:0.5\n" for k in range(30)))
    assert run("convert", tmp_path / "a.svm", tmp_path / "a.zarr", "-q")[0] == 0
    given = ["--task", "multiclass", "--loss", "softmax", "--output", tmp_path / "m.npz", "-q"]
    assert run("train", tmp_path / "a.zarr", *given)[0] == 0
    code, out, said = run("predict", tmp_path / "m.npz", tmp_path / "a.svm", "--answer", "probabilities")
    assert code == 0, said
    found = np.array([line.split() for line in out.splitlines()], float)
    assert found.shape == (30, 3)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_array_equal(found.argmax(axis=1), np.arange(30) % 3)
