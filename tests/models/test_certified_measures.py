"""Measures of the exact optimum: those of a model trained to the end are between what is claimed of one that was not."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import streamcut
from streamcut.errors import UsageError


def rows(n, seed, weights=False):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 8))
    y = np.where(X @ np.linspace(-1.0, 1.0, 8) + rng.standard_normal(n) > 0.3, 1.0, -1.0)
    return (X, y, rng.uniform(0.5, 2.0, n)) if weights else (X, y)


@pytest.mark.parametrize("loss", ["logistic", "squared-hinge", "hinge"])
@pytest.mark.parametrize("weights", [False, True])
def test_the_optimum_s_measures_are_between_what_is_claimed(loss, weights):
    train, test = rows(400, 0, weights), rows(300, 1, weights)
    exact = streamcut.evaluate(streamcut.train(train, loss=loss, tol_relative=1e-10, tol=1e-12), test)
    widths = []
    for tolerance in (1e-2, 1e-4, 1e-6):
        model = streamcut.train(train, loss=loss, tol_relative=tolerance, tol=None)
        for known in (None, train) if loss != "hinge" else (None,):
            found = streamcut.evaluate(model, test, certified=True, trained_on=known).optimum
            for name in ("accuracy", "roc_auc", *(["log_loss"] if loss == "logistic" else [])):
                low, high = found[name]
                assert low <= exact.measures()[name] <= high
                assert math.isfinite(low)
            assert 0.0 <= found["proved"] <= 1.0
        widths.append(found["accuracy"][1] - found["accuracy"][0])
    assert widths[-1] <= 0.02
    assert (found["log_loss"] is None) == (loss != "logistic")


def test_from_the_command_line(run, tmp_path):
    X, y = rows(200, 0)
    np.savetxt(tmp_path / "rows.csv", np.column_stack([X, y]), delimiter=",", header=",".join([*"abcdefgh", "y"]), comments="")
    assert run("convert", tmp_path / "rows.csv", tmp_path / "rows.zarr", "--labels", "y")[0] == 0
    store, model = tmp_path / "rows.zarr", tmp_path / "m.npz"
    assert run("train", store, "--loss", "logistic", "--model", model, "--tol-relative", "1e-6")[0] == 0
    code, out, _ = run("evaluate", model, store, "--certified", "--trained-on", store, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["optimum"]["accuracy"][0] <= found["accuracy"] <= found["optimum"]["accuracy"][1]
    code, out, err = run("evaluate", model, store, "--certified", "--trained-on", store)
    assert (code, "optimum roc auc" in out, "labels are proved for 100 %" in err) == (0, True, True)
    assert run("evaluate", model, store, "--trained-on", store)[0] == 2


def test_refused_by_name():
    X, y = rows(100, 0)
    model = streamcut.train((X, X[:, 0]), task="regression", loss="squared")
    with pytest.raises(UsageError, match="for two classes"):
        streamcut.evaluate(model, (X, X[:, 0]), certified=True)
    with pytest.raises(UsageError, match="certified=True"):
        streamcut.evaluate(streamcut.train((X, y)), (X, y), trained_on=(X, y))
