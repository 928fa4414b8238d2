"""Standard errors: statsmodels' figures, and what the command prints."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

import streamcut
from streamcut.errors import UsageError


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
            np.testing.assert_allclose(found.error, fitted.bse, rtol=1e-6)
            np.testing.assert_allclose(found.z, fitted.tvalues, rtol=2e-5, atol=1e-6)
            if loss != "squared":  # whose p are of Student's t there
                np.testing.assert_allclose(found.p, fitted.pvalues, atol=1e-5)
                interval = np.column_stack([found.interval_low, found.interval_high])
                np.testing.assert_allclose(interval, fitted.conf_int(), rtol=1e-4, atol=1e-5)


def test_scaled_features_have_the_errors_of_their_own_units():
    X, y, _, clusters = drawn("logistic", 1, 300)
    options = {"loss": "logistic", "tol": None, "tol_relative": 1e-9, "max_passes": 300}
    scaled = streamcut.train((X, y), scale="std", C=1e5, **options)
    plain = streamcut.train((X, y), C=1e9, **options)
    for asked in ({}, {"robust": True}, {"clusters": clusters}):
        one, other = (streamcut.standard_errors(model, (X, y), **asked) for model in (scaled, plain))
        np.testing.assert_allclose(one.error, other.error, rtol=1e-3)


def test_what_has_no_errors_is_refused():
    X, y, _, clusters = drawn("logistic", 1)
    hinge, logistic = streamcut.train((X, y)), streamcut.train((X, y), loss="logistic", tol_relative=1e-8)
    with pytest.raises(UsageError, match="no likelihood"):
        streamcut.standard_errors(hinge, (X, y))
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
    run("train", store, "--loss", "logistic", "--intercept", "free", "--tol-relative", "1e-9", "--output", model)
    (tmp_path / "sites.txt").write_text("".join(f"site {k}\n" for k in clusters))
    for flags, asked in (
        ([], {}),
        (["--robust"], {"robust": True}),
        (["--cluster", names], {"clusters": clusters}),
    ):
        code, out, _ = run("explain", model, "--standard-errors", "--trained-on", store, "--sort", "feature", *flags)
        assert code == 0
        lines = list(csv.DictReader(io.StringIO(out)))
        found = streamcut.standard_errors(model, store, **asked)
        assert lines[0]["name"] == "(intercept)"
        for line, j in zip(lines, [-1, 0, 1, 2, 3], strict=True):
            for name in found._fields:
                assert float(line[name]) == getattr(found, name)[j]
    code, _, wrong = run("explain", model, "--robust")
    assert code == 2
    assert "--standard-errors" in wrong
