"""Proved predictions: what is claimed of the exact optimum is true of the optimum in 300 bits, however the model was made."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from flint import arb
from kit.nights import by_night
from reference import exact_bounds
from reference.located import Exact, precision

import streamcut
from streamcut.errors import BadInputError, MemoryBudgetError, StreamcutError, UsageError
from streamcut.io.memory import MemoryDataset

linear_model = pytest.importorskip("sklearn.linear_model")
SMOOTH = ("logistic", "squared-hinge", "smoothed-hinge", "squared", "huber", "squared-epsilon-insensitive", "poisson")


def judged(model, exact: Exact, v: list[arb], X, rows, answers) -> tuple[int, int]:
    """(rows, labels proved), after every claim about `rows` was held against the optimum v."""
    for i in range(len(rows)):
        s = sum((arb(float(x)) * w for x, w in zip(rows[i], v, strict=True)), arb(0))
        if model.task == "binary":
            if answers.proved[i]:
                assert bool(answers.labels[i] == model.labels[1]) == bool(s > 0), "a false label"
            value = 1 / (1 + (-s).exp()) if model.has_probabilities else s
        else:
            value = s.exp() if model.parameters["loss"] == "poisson" else s
        assert not value < arb(float(answers.low[i])) or not np.isfinite(answers.low[i])
        assert not value > arb(float(answers.high[i])) or not np.isfinite(answers.high[i])
    return len(rows), int(answers.proved.sum())


def held(model, exact: Exact, v: list[arb]) -> None:
    """Its standard errors are between the bounds."""
    if model.optimum is None or model.optimum.low is None or model.parameters["loss"] == "squared":
        return
    for j, square in enumerate(exact.inverse_diagonal(v)):
        error = (arb(model.C) * square).sqrt() * (abs(model.bias) if model.bias and j == len(v) - 1 else 1)
        assert not error < arb(float(model.optimum.low[j]))
        assert not error > arb(float(model.optimum.high[j]))


@pytest.mark.parametrize("loss", by_night(SMOOTH, SMOOTH[1:]))
def test_claims_about_badly_scaled_problems(loss):
    """Of the certificate alone, and of the rows: scores, labels and errors of the optimum are where they are said to be."""
    count = proved = by_ball = skipped = 0
    for seed in range(24):
        given = exact_bounds.problem(loss, 5000 + seed, rows=20, features=5)
        rng = np.random.default_rng(seed)
        data = MemoryDataset(given.X, given.y, weight=given.weight)
        options = {"loss": loss, "C": given.C, "bias": given.bias, **given.own, "tol": None}
        task = "regression" if given.positive_weight == 1.0 and loss in SMOOTH[3:] else "binary"
        labels = np.unique(given.y)
        if task == "binary":
            if len(labels) != 2:
                continue
            options |= {"positive_weight": given.positive_weight, "positive_label": float(labels[1])}
        options |= {"tol_relative": float(10.0 ** -rng.integers(1, 12)), "max_passes": int(rng.integers(1, 60)), "task": task}
        try:
            model = exact_bounds.solved(data, options)
        except StreamcutError:
            continue
        X = np.column_stack([np.asarray(given.X, float), np.full(len(given.y), given.bias)]) if given.bias else given.X
        u = np.ones(len(given.y)) if given.weight is None else np.asarray(given.weight, float)
        positive = float(labels[-1])
        u = np.where(given.y == positive, given.positive_weight, 1.0) * u if task == "binary" else u
        with precision():
            exact = Exact(loss, given.own, X, given.y, u, given.C, np.ones(X.shape[1]), positive)
            v = exact.optimum(model.augmented_weights)
            if v is None:
                skipped += 1
                continue
            rows = np.vstack([X, X * rng.uniform(-2, 2, (len(X), 1)) if not given.bias else X])
            plain = rows[:, : model.n_features]
            found = streamcut.predict(model, plain, certified=True)
            judged(model, exact, v, X, rows, found)
            by_ball += int(found.proved.sum())
            try:
                located = streamcut.locate(model, data)
            except UsageError as error:
                assert "proved nothing" in str(error) or "objective" in str(error), error  # noqa: PT017
                continue
            answers = streamcut.predict(located, sp.csr_array(plain), certified=True)
            n, labels_proved = judged(model, exact, v, X, rows, answers)
            held(located, exact, v)
            count, proved = count + n, proved + labels_proved
    assert count > 100, (count, skipped)
    assert proved >= 0.3 * count, (proved, by_ball, count)


@pytest.mark.thirds
@pytest.mark.parametrize("many", [4096, 0], ids=["few features", "many"])
@pytest.mark.parametrize("loss", SMOOTH)
def test_claims_about_free_intercepts(loss, many, monkeypatch):
    """With many features there is no matrix: by balls, and what rows say of the intercept."""
    from kit.certify import OWN, foreign, least, rows

    from streamcut.locating import locate

    monkeypatch.setattr(locate, "MANY", many)
    count = proved = 0
    for seed in range(14):
        rng = np.random.default_rng(seed)
        task = "labels" if loss in SMOOTH[:3] else "counts" if loss == "poisson" else "numbers"
        X, y = rows(seed, n=30, d=3, task=task)
        C = float(10.0 ** rng.integers(-2, 2))
        start = rng.normal(size=4) * 0.01
        v0 = least(loss, X, y, C, np.ones(len(y)), start, True)
        off = v0 + rng.normal(size=4) * 10.0 ** -rng.integers(1, 7) * 0.1
        found = streamcut.certify(
            foreign(off[:3], float(off[3]), C, loss, task), (X, y), int(rng.integers(2, 14)), intercept="free"
        )
        model, ones = found.better, np.column_stack([X, np.ones(len(y))])
        if seed % 2:
            own: dict = {"task": "binary" if task == "labels" else "regression", **OWN.get(loss, {})}
            rule = {"tol": None, "tol_relative": float(10.0 ** -rng.integers(3, 9)), "max_passes": 200}
            model = streamcut.train((X, y), loss=loss, intercept="free", C=C, **own, **rule)
        with precision():
            exact = Exact(loss, OWN.get(loss, {}), ones, y, np.ones(len(y)), C, [1, 1, 1, 0])
            v = exact.optimum(v0)
            if v is None:
                continue
            answers = streamcut.predict(model, X, certified=True, trained_on=(X, y))
            n, labels_proved = judged(model, exact, v, X, ones, answers)
            count, proved = count + n, proved + labels_proved
            if many and not answers.advice.startswith("proved nothing"):
                held(streamcut.locate(model, (X, y)), exact, v)
    assert count > 100
    assert proved > (0.3 if many else 0.05) * count, (proved, count)


@pytest.fixture
def store(tmp_path):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 6)) * [1, 1, 5, 0.1, 1, 1]
    y = np.where(X[:, 0] + 0.4 * X[:, 2] + rng.normal(size=400) > 0.3, 1.0, -1.0)
    text = "".join(
        f"{label:g} " + " ".join(f"{j + 1}:{value!r}" for j, value in enumerate(row)) + "\n"
        for label, row in zip(y.tolist(), X.tolist(), strict=True)
    )
    (tmp_path / "rows.svm").write_text(text)
    streamcut.convert(tmp_path / "rows.svm", tmp_path / "rows.zarr", dtype="float64", shard_nnz=500)
    return X, y, tmp_path / "rows.zarr"


def test_a_located_model_survives_its_file_and_shards_change_little(store, tmp_path):
    X, y, place = store
    model = streamcut.train(place, loss="logistic", tol_relative=1e-5, tol=None)
    located = streamcut.locate(model, place)
    streamcut.save_model(located, tmp_path / "m.npz")
    again = streamcut.predict(tmp_path / "m.npz", X, certified=True)
    direct = streamcut.predict(model, sp.csr_array(X), certified=True, trained_on=str(place))
    assert (again.low == direct.low).all()
    assert (again.proved == direct.proved).all()
    assert again.share > 0.95
    low, high = located.standard_errors()
    assert all((a == b).all() for a, b in zip((low, high), model.standard_errors(place), strict=True))
    assert (low <= high).all()
    other = streamcut.locate(streamcut.train((X, y), loss="logistic", tol_relative=1e-5, tol=None), (X, y))
    assert other.optimum.high == pytest.approx(high, rel=1e-3)
    assert streamcut.load_model(tmp_path / "m.npz").describe()["located"]


def test_scaled_features_are_scaled_back(store):
    X, y, place = store
    model = streamcut.train(place, loss="logistic", scale="max-abs", tol_relative=1e-5, tol=None)
    with pytest.raises(UsageError, match="scaled features"):
        streamcut.predict(model, X, certified=True)
    found = streamcut.predict(model, X, certified=True, trained_on=place)
    assert found.share > 0.95
    scaled = X / np.abs(X).max(axis=0)
    inner = streamcut.train((scaled, y), loss="logistic", tol_relative=1e-12, tol=None)
    truth = streamcut.predict(inner, scaled, output="probabilities")
    assert ((found.low - 1e-9 <= truth) & (truth <= found.high + 1e-9)).all()
    close = streamcut.locate(streamcut.train((scaled, y), loss="logistic", tol_relative=1e-8, tol=None), (scaled, y))
    expected = close.standard_errors()[0] / np.append(np.abs(X).max(axis=0), 1.0)
    low, high = model.standard_errors(place)
    assert (low <= expected * (1 + 1e-3)).all()
    assert (expected <= high).all()


def test_what_proves_nothing_says_what_would(store):
    X, y, place = store
    hinge = streamcut.train(place, loss="hinge", tol_relative=1e-3, tol=None)
    assert streamcut.predict(hinge, X, certified=True).share > 0.0
    with pytest.raises(UsageError, match="'hinge' has no curvature"):
        streamcut.predict(hinge, X, certified=True, trained_on=place)
    rough = streamcut.train(place, loss="logistic", C=100.0, max_passes=1)
    found = streamcut.predict(rough, X, certified=True)
    assert "train with tol_relative=" in found.advice
    assert "--trained-on" in found.advice
    early = linear_model.LogisticRegression(solver="saga", max_iter=1, C=100.0).fit(X, y)
    better = streamcut.certify(early, (X, y), 1).better
    with pytest.raises(UsageError, match="free intercept"):
        streamcut.predict(better, X, certified=True)
    far = streamcut.train((X, y), loss="logistic", C=100.0, l1=0.5, max_passes=1)
    wide = streamcut.predict(far, X, certified=True, trained_on=(X, y))
    assert wide.share == 0.0
    assert len(wide.labels) == len(X)
    assert "proved nothing: gap" in wide.advice


def test_the_optimum_is_known_whatever_the_gap(store):
    """Newton's method goes there from a model that is far from it; labels that the optimum gives otherwise are not proved."""
    X, _, place = store
    best = streamcut.train(place, loss="logistic", C=10.0, tol_relative=1e-12, tol=None)
    rough = streamcut.train(place, loss="logistic", C=10.0, solver="bundle-dca", max_passes=1, tol=None, tol_relative=1e-9)
    assert rough.certificate.gap > 0.05 * rough.certificate.primal
    found = streamcut.predict(rough, X, certified=True, trained_on=place)
    truth = streamcut.predict(best, X)
    assert (found.proved == (found.labels == truth)).mean() > 0.99
    assert not (found.proved & (found.labels != truth)).any()
    assert (found.labels != truth).any()
    low, high = rough.standard_errors(place)
    assert (high <= low * (1.0 + 1e-4)).all()
    worst = replace(best.certificate, primal=1e6)
    turned = replace(best, weights=-best.weights, intercept=-best.intercept, certificate=worst)
    told = streamcut.predict(turned, X, certified=True, trained_on=place)
    assert told.share < 0.01
    assert "the other label; train further" in told.advice


def test_a_free_intercept_is_found_however_far_the_rows_are_from_0():
    rng = np.random.default_rng(0)
    X = rng.uniform(-128.0, 128.0, (4000, 3))
    y = np.where(X @ np.array([0.04, -0.05, 0.03]) + rng.logistic(size=4000) > 0.0, 1.0, -1.0)
    options = {"loss": "logistic", "C": 10.0, "intercept": "free", "tol": None}
    rough = streamcut.train((X + 1e4, y), solver="bundle-dca", max_passes=1, tol_relative=1e-9, **options)
    found = streamcut.predict(rough, X + 1e4, certified=True, trained_on=(X + 1e4, y))
    truth = streamcut.predict(streamcut.train((X, y), tol_relative=1e-12, **options), X)
    assert (found.proved == (found.labels == truth)).mean() > 0.99
    assert not (found.proved & (found.labels != truth)).any()


def test_many_features_have_balls(monkeypatch):
    """Rows of text, which are of length 1: the ball proves most of them, and a free intercept is bounded by the rows."""
    from streamcut.locating import locate

    monkeypatch.setattr(locate, "MANY", 100)
    random = np.random.default_rng(5)
    X = sp.random_array((600, 300), density=0.05, rng=random, format="csr")
    X = sp.csr_array(sp.diags_array(1.0 / np.sqrt(np.maximum(X.multiply(X).sum(axis=1), 1e-9))) @ X)
    y = np.where(X @ random.normal(size=300) + 0.02 * random.normal(size=600) > 0.1, 1.0, -1.0)
    for options in ({"intercept": "free"}, {"bias": 1.0}):
        model = streamcut.train((X, y), loss="logistic", tol_relative=1e-5, tol=None, solver="bundle-dca", **options)
        best = streamcut.train((X, y), loss="logistic", solver="newton", tol_relative=1e-12, tol=None, **options)
        found = streamcut.predict(model, X, certified=True, trained_on=(X, y))
        assert found.share > 0.9, options
        assert (found.labels == streamcut.predict(best, X))[found.proved].all()
        exact = streamcut.predict(best, X, output="probabilities")
        assert ((found.low <= exact) & (exact <= found.high)).all()
    scaled = streamcut.train((X, y), loss="logistic", scale="max-abs")
    with pytest.raises(UsageError, match="which were scaled"):
        streamcut.predict(scaled, X, certified=True, trained_on=(X, y))


def test_refused_by_name(store, tmp_path):
    X, y, place = store
    model = streamcut.train(place, loss="logistic", tol_relative=1e-5, tol=None)
    with pytest.raises(UsageError, match="fingerprints differ"):
        streamcut.locate(model, (X, -y))
    with pytest.raises(UsageError, match="a kernel model"):
        streamcut.locate(streamcut.train((X[:40], y[:40]), kernel="rbf"), (X[:40], y[:40]))
    with pytest.raises(UsageError, match="'squared-hinge' is no likelihood"):
        streamcut.train((X, y), loss="squared-hinge", tol_relative=1e-5, tol=None).standard_errors((X, y))
    with pytest.raises(UsageError, match="certified=True"):
        streamcut.predict(model, X, trained_on=place)
    with pytest.raises(UsageError, match="labels with bounds"):
        streamcut.predict(model, X, certified=True, output="scores")
    with pytest.raises(BadInputError, match="6 features"):
        streamcut.predict(model, X[:, :5], certified=True)
    streamcut.export(model, tmp_path / "small.npz", to="compact")
    with pytest.raises(UsageError, match="rounded"):
        streamcut.predict(tmp_path / "small.npz", X, certified=True)
    wide = sp.csr_array((np.ones(4), ([0, 1, 2, 3], [0, 1, 2, 29_999])), (4, 30_000))
    model = streamcut.train((wide, [1.0, -1.0, 1.0, -1.0]), loss="logistic")
    with pytest.raises(MemoryBudgetError, match=r"matrices of 30,001 × 30,001 numbers, 7\.20 GB each.*balls round"):
        streamcut.locate(model, (wide, [1.0, -1.0, 1.0, -1.0]), memory="4GB")
    assert len(streamcut.predict(model, wide, certified=True, trained_on=(wide, [1.0, -1.0, 1.0, -1.0])).low) == 4


def test_weights_that_were_changed_are_not_located(store):
    X, _, place = store
    located = streamcut.locate(streamcut.train(place, loss="logistic", tol_relative=1e-5, tol=None), place)
    with pytest.raises(UsageError, match="locate it again"):
        streamcut.predict(replace(located, weights=located.weights * 1.5), X, certified=True)


def test_the_command(store, run, tmp_path):
    X, _, place = store
    model = streamcut.train(place, loss="logistic", tol_relative=1e-5, tol=None)
    streamcut.save_model(model, tmp_path / "m.npz")
    code, out, err = run("predict", tmp_path / "m.npz", place, "--certified", "--trained-on", place)
    assert (code, err) == (0, "")
    expected = streamcut.predict(model, X, certified=True, trained_on=place)
    table = np.array([line.split() for line in out.splitlines()], float)
    assert (table == np.column_stack([expected.labels, expected.proved, expected.low, expected.high])).all()
    code, _, err = run("predict", tmp_path / "m.npz", place, "--certified", "-o", tmp_path / "a.csv")
    assert code == 0
    assert (tmp_path / "a.csv").read_text().splitlines()[0] == '"label","proved","low","high"'
    assert run("predict", tmp_path / "m.npz", place, "--trained-on", place)[0] == 2
