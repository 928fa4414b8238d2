"""Standard errors of the exact optimum: the sandwich in 300 bits, statsmodels' figures, and what the command prints."""

from __future__ import annotations

import csv
import io
import json
import re

import numpy as np
import pytest
from flint import arb, arb_mat
from reference.located import Exact, precision

import streamcut
from streamcut.errors import StreamcutError, UsageError
from streamcut.models.files import load_model


def drawn(loss: str, seed: int, n: int = 40):
    """X (n, 4) of different scales, y, row weights or None, clusters."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 4)), 3) * np.array([1.0, 30.0, 0.05, 1.0]) * (rng.random((n, 4)) < 0.8)
    s = X @ (rng.normal(size=4) / np.array([1.0, 30.0, 0.05, 1.0])) + 0.5
    y = {
        "logistic": np.where(rng.random(n) < 1 / (1 + np.exp(-s)), 1.0, -1.0),
        "squared": np.round(s + rng.normal(size=n), 3),
        "poisson": rng.poisson(np.exp(np.clip(0.5 * s, -3, 3))).astype(float),
    }[loss]
    y[:2] = -1.0, 1.0 if loss == "logistic" else 2.0
    y[:2] = np.abs(y[:2]) if loss == "poisson" else y[:2]
    return X, y, None if seed % 3 else np.round(rng.random(n) + 0.2, 2), rng.integers(0, 7, n)


@pytest.mark.parametrize("intercept", ["none", "regularised", "free"])
@pytest.mark.parametrize("loss", ["logistic", "squared", "poisson"])
def test_the_sandwich_of_the_exact_optimum_is_between_the_two(loss, intercept):
    finite = 0
    for seed in range(8):
        X, y, weight, clusters = drawn(loss, seed)
        data = (X, y) if weight is None else (X, y, weight)
        C, part = 10.0 ** (seed % 4 - 1), 10.0 ** -(2 + seed)
        task = "binary" if loss == "logistic" else "regression"
        asked = {} if intercept == "regularised" else {"intercept": intercept}
        try:
            model = streamcut.train(data, loss=loss, task=task, C=C, tol=None, tol_relative=part, max_passes=200, **asked)
            given = {"robust": streamcut.standard_errors(model, data, robust=True)}
            given["clusters"] = streamcut.standard_errors(model, data, clusters=clusters)
        except StreamcutError as error:
            assert "proved nothing" in str(error)  # noqa: PT017
            continue
        rows = X if intercept == "none" else np.column_stack([X, np.ones(len(X))])
        D = rows.shape[1]
        with precision():
            ridge = np.ones(D)
            if intercept == "free":
                ridge[-1] = 0.0
            exact = Exact(loss, {}, rows, y, np.ones(len(y)) if weight is None else weight, C, ridge)
            v = exact.optimum(model.augmented_weights)
            assert v is not None
            H = arb_mat(exact.at(v)[2]).inv()
            slopes = exact.slopes(v)
            for kind, groups in (("robust", np.arange(len(y))), ("clusters", clusters)):
                B = [[arb(0)] * D for _ in range(D)]
                for group in np.unique(groups):
                    s = [sum((slopes[i][j] for i in np.flatnonzero(groups == group)), arb(0)) for j in range(D)]
                    B = [[B[j][k] + s[j] * s[k] for k in range(D)] for j in range(D)]
                V, G = H * arb_mat(B) * H, len(np.unique(groups))
                times = arb(1) if kind == "robust" else arb(G) / (G - 1) * arb(len(y) - 1) / (len(y) - D)
                for j in range(D):
                    error = (V[j, j] * times).sqrt()
                    assert not error < arb(float(given[kind].low[j]))
                    if np.isfinite(given[kind].high[j]):
                        assert not error > arb(float(given[kind].high[j]))
                        finite += 1
                    if part <= 1e-8:
                        assert given[kind].high[j] - given[kind].low[j] < 0.05 * float(error)
                    z = v[j] / error
                    assert not z < arb(float(given[kind].z_low[j]) * (1 - 1e-12 * np.sign(given[kind].z_low[j])))
                    assert not z > arb(float(given[kind].z_high[j]) * (1 + 1e-12 * np.sign(given[kind].z_high[j])))
                    assert not H[j, j] * arb(ridge[j]) > arb(float(given[kind].penalty[j]))
    assert finite > 60


def test_next_to_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(0)
    n, clusters = 3000, rng.integers(0, 50, 3000)
    X = rng.normal(size=(n, 5)) * np.array([1.0, 10.0, 0.1, 1.0, 1.0])
    score = X @ np.array([0.5, 0.02, 3.0, 0.0, -0.4]) + 0.3 + rng.normal(size=50)[clusters]
    A = np.column_stack([X, np.ones(n)])
    cases = {
        "logistic": (np.where(rng.random(n) < 1 / (1 + np.exp(-score)), 1.0, -1.0), lambda y: sm.Logit((y > 0) * 1.0, A)),
        "squared": (score + rng.normal(size=n), lambda y: sm.OLS(y, A)),
        "poisson": (rng.poisson(np.exp(0.3 * score)).astype(float), lambda y: sm.Poisson(y, A)),
    }
    for loss, (y, peer) in cases.items():
        task = "binary" if loss == "logistic" else "regression"
        model = streamcut.train(
            (X, y), loss=loss, task=task, C=1e7, intercept="free", tol=None, tol_relative=1e-10, max_passes=300
        )
        for asked, own in (
            ({}, {"cov_type": "nonrobust"}),
            ({"robust": True}, {"cov_type": "HC0"}),
            ({"clusters": clusters}, {"cov_type": "cluster", "cov_kwds": {"groups": clusters}}),
        ):
            found = streamcut.standard_errors(model, (X, y), **asked)
            fitted = peer(y).fit(**own) if loss == "squared" else peer(y).fit(disp=0, tol=1e-12, maxiter=100, **own)
            np.testing.assert_allclose(0.5 * (found.low + found.high), fitted.bse, rtol=1e-6)
            np.testing.assert_allclose(0.5 * (found.z_low + found.z_high), fitted.tvalues, rtol=2e-5, atol=1e-6)
            if loss != "squared":  # whose p are of Student's t there
                np.testing.assert_allclose(0.5 * (found.p_low + found.p_high), fitted.pvalues, atol=1e-5)
                interval = np.column_stack([found.interval_low, found.interval_high])
                np.testing.assert_allclose(interval, fitted.conf_int(), rtol=1e-4, atol=1e-5)


def test_scaled_features_have_the_errors_of_their_own_units():
    X, y, _, clusters = drawn("logistic", 1, 300)
    options = {"loss": "logistic", "tol": None, "tol_relative": 1e-9, "max_passes": 300}
    scaled = streamcut.train((X, y), scale="std", C=1e5, **options)
    plain = streamcut.train((X, y), C=1e9, **options)
    for asked in ({}, {"robust": True}, {"clusters": clusters}):
        one, other = (streamcut.standard_errors(model, (X, y), **asked) for model in (scaled, plain))
        np.testing.assert_allclose(one.low, other.low, rtol=1e-3)
        assert np.all(one.penalty < 1e-3)


def test_what_has_no_errors_is_refused():
    X, y, _, clusters = drawn("logistic", 1)
    hinge, logistic = streamcut.train((X, y)), streamcut.train((X, y), loss="logistic", tol_relative=1e-8)
    with pytest.raises(UsageError, match="no likelihood"):
        streamcut.standard_errors(hinge, (X, y))
    with pytest.raises(UsageError, match=r"trained[-_]on"):
        streamcut.standard_errors(streamcut.locate(logistic, (X, y)), robust=True)
    with pytest.raises(UsageError, match="fingerprints differ"):
        streamcut.standard_errors(logistic, (X[::-1], y))
    for wrong, said in (
        ("city", "neither 'qid'"),
        ("qid", "have none"),
        (clusters[:-1], "40 rows"),
        (0 * clusters, "1 clusters"),
    ):
        with pytest.raises(UsageError, match=said):
            streamcut.standard_errors(logistic, (X, y), clusters=wrong)


def test_the_command_prints_them(tmp_path, run):
    X, y, _, clusters = drawn("logistic", 2, 200)
    with streamcut.create(tmp_path / "rows.zarr") as made:
        made.append(X, y)
    store, model, names = (str(tmp_path / name) for name in ("rows.zarr", "m.npz", "sites.txt"))
    run("train", store, "--loss", "logistic", "--intercept", "free", "--tol-relative", "1e-9", "--model", model)
    (tmp_path / "sites.txt").write_text("".join(f"site {k}\n" for k in clusters))
    for flags, asked in (
        ([], {}),
        (["--robust"], {"robust": True}),
        (["--cluster", names], {"clusters": clusters}),
    ):
        code, out, _ = run("weights", model, "--standard-errors", "--trained-on", store, "--sort", "feature", *flags)
        assert code == 0
        lines = list(csv.DictReader(io.StringIO(out)))
        found = streamcut.standard_errors(model, store, **asked)
        assert lines[0]["name"] == "(intercept)"
        for line, j in zip(lines, [-1, 0, 1, 2, 3], strict=True):
            for name in ("low", "high", "z_low", "z_high", "p_low", "p_high", "interval_low", "interval_high", "penalty"):
                column = {"low": "error_low", "high": "error_high"}.get(name, name)
                assert float(line[column]) == getattr(found, name)[j]
    code, _, wrong = run("weights", model, "--robust")
    assert code == 2
    assert "--standard-errors" in wrong


def test_a_report_shows_them(tmp_path, run):
    X, y, _, _ = drawn("logistic", 2, 200)
    with streamcut.create(tmp_path / "rows.zarr") as made:
        made.append(X, y)
    store, model, path = (str(tmp_path / name) for name in ("rows.zarr", "m.npz", "m.html"))
    run("train", store, "--loss", "logistic", "--intercept", "free", "--tol-relative", "1e-9", "--model", model)
    trained = load_model(model)
    given = ["report", model, "-o", path, "--force"]
    for flags, asked, said in (
        ([], {}, "if the model is true"),
        (["--robust"], {"robust": True}, "Robust standard errors"),
    ):
        assert run(*given, "--standard-errors", "--trained-on", store, *flags)[0] == 0
        text = (tmp_path / "m.html").read_text()
        assert said in text
        numbers = json.loads(re.search(r'id="numbers">(.*)</script>', text)[1])["standard_errors"]
        found = streamcut.standard_errors(model, store, **asked)
        order = {"(intercept)": 4, "1": 0, "2": 1, "3": 2, "4": 3}
        assert sorted(order[each["feature"]] for each in numbers) == [0, 1, 2, 3, 4]
        assert [abs(each["z"]) for each in numbers] == sorted((abs(each["z"]) for each in numbers), reverse=True)
        for each in numbers:
            j, weight = order[each["feature"]], each["weight"]
            assert weight == (trained.intercept if j == 4 else trained.weights[j])
            assert each["standard error"] == found.high[j]
            assert each["p"] == found.p_high[j]
            assert each["95 % from"] == found.interval_low[j] < weight < each["to"] == found.interval_high[j]
    assert run(*given)[0] == 0
    assert "Standard errors" not in (tmp_path / "m.html").read_text()
    for bad, why in (
        (["report", model, "-o", path, "--force", "--cluster", "qid"], "--standard-errors"),
        (["report", model, str(tmp_path / "m.html"), "-o", path, "--standard-errors"], "comparison"),
        (["report", model, "-o", store, "--force", "--standard-errors", "--trained-on", store], "--output"),
    ):
        code, _, wrong = run(*bad)
        assert code == 2
        assert why in wrong
