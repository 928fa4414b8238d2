"""What holds of every training. One law a test, one training a case; `problems.py` has the trainings and what they minimise.

* No claim is false: the lower bound is at most the optimum, and the objective is what the weights have, but for rounding.
* "Converged" means that the gap is what was asked for, and nothing else is called so.
* Threads, file formats and rows in memory (in the same shards) change no bit, and one command run twice gives the same bits.
* A training that was stopped and resumed ends with the bits of one that was not.
* A row of weight 2 is the row twice, and a row of weight 0 is none, for class weights as well.
* A model is its file: once loaded, it predicts the same for rows of a store, of a text file and of a matrix.
* `verify` accepts what is true and refutes what is not.
* Few passes: a small problem is not merely solved.
* Others minimise the same: the answers are those of scikit-learn.
* Everything ends, whatever the numbers are and however they are spelt: `test_values.py`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from laws.problems import KERNELS, ROW_LOSSES, ROWS, TRAININGS, objective
from reference.rows import dump
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, PoissonRegressor, Ridge
from sklearn.svm import SVC, LinearSVC, LinearSVR

import streamcut
from streamcut import sklearn as estimators

ALL = {**TRAININGS, **KERNELS}
CERTIFIED = {**TRAININGS, **{name: KERNELS[name] for name in KERNELS if name.startswith("smo")}}
SETTINGS = {"cut", "degree", "epochs", "k", "lanes", "maintenance", "normalisation", "quantile", "row_cache", "samples"}  # --set
ROUNDING = 1e-9  # of an objective: far more than float64 loses here, far less than any tolerance asked for


def certificates(model) -> list:
    return model.certificates


def claims(model) -> tuple[float, float]:
    """The objective and the lower bound, summed over the problems of one-vs-rest."""
    return sum(c.primal for c in certificates(model)), sum(c.lower_bound for c in certificates(model))


def bits(model, path) -> dict[str, object]:
    """All numbers of the model's file, and what it claims."""
    streamcut.save_model(model, path)
    with np.load(path) as file:
        arrays = {name: file[name].tobytes() for name in file.files if name not in ("meta.json", "recipe")}
    return {**arrays, "claims": claims(model) if certificates(model) != [None] else None}


def short(name: str) -> dict[str, object]:
    """The options of a training of few passes."""
    return {**ALL[name].options, **({} if ALL[name].passes is None else {"max_passes": 6})}


@cache
def optimum(rows: str, options: tuple) -> tuple[float, float]:
    """F of the weights of a tight training by the solver chosen by default, and its lower bound."""
    model = streamcut.train(ROWS[rows].in_memory(), **dict(options), tol=None, tol_relative=1e-6)
    return objective(model, ROWS[rows], dict(options)), claims(model)[1]


def problem(options: dict) -> tuple:
    """The options that say what is minimised."""
    return tuple((k, v) for k, v in options.items() if k not in ("solver", "cut", "row_cache", "lanes") or v == "smo")


@pytest.mark.parametrize("name", CERTIFIED)
def test_no_claim_is_false(name, store):
    rows, options, _ = CERTIFIED[name]
    model = streamcut.train(store(rows), **options, tol=None, tol_relative=1e-2)
    F, (primal, bound) = objective(model, ROWS[rows], options), claims(model)
    best, tight_bound = optimum(rows, problem(options))
    for step in model.history:
        assert step["lower_bound"] <= best * (1 + ROUNDING)
        assert best * (1 - 1e-6) <= step["primal"]
    assert primal * (1 - ROUNDING) <= F <= primal * (1 + 1e-12)
    assert bound <= best * (1 + ROUNDING)
    assert best * (1 - 1e-5) <= tight_bound <= best * (1 + ROUNDING), "a bound that is false, or of no use"
    assert best <= F * (1 + 1e-6)


@pytest.mark.parametrize("tolerance", [{"tol": 1e-3, "tol_relative": None}, {"tol": None, "tol_relative": 1e-4}, {}], ids=str)
@pytest.mark.parametrize("name", CERTIFIED)
def test_converged_means_that_what_was_asked_was_reached(name, tolerance, store):
    rows, options, passes = CERTIFIED[name]
    asked = {"tol": 1e-3, "tol_relative": 1e-2, **tolerance}
    for limit in ({}, {"max_passes": 3}) if passes else ({},):
        model = streamcut.train(store(rows), **options, **tolerance, **limit)
        for certificate in certificates(model):
            gap, allowed = certificate.primal - certificate.lower_bound, []
            if asked["tol"] is not None:
                allowed.append(asked["tol"] * certificate.c_bar * certificate.unit)
            if asked["tol_relative"] is not None:
                allowed.append(asked["tol_relative"] * certificate.primal)
            assert certificate.converged == (certificate.stop_reason == "converged") == (gap <= min(allowed) * (1 + 1e-12))
        assert model.converged == all(certificate.converged for certificate in certificates(model))
        assert model.converged or limit, "every training of the table converges"


@pytest.mark.parametrize("name", TRAININGS)
def test_a_tolerance_is_in_units_of_mean_loss(name, store):
    """C̄ is C times the sum of the weights; the unit is 1, for numbers about the mean loss of the best constant."""
    rows, options, _ = TRAININGS[name]
    _, y, _, weight = ROWS[rows]
    u = (np.ones(len(y)) if weight is None else weight) * np.where(y > 0, options.get("positive_weight", 1.0), 1.0)
    unit = 1.0
    if options.get("task") == "regression":
        loss = ROW_LOSSES[options["loss"]]
        unit = min(np.mean(loss(constant, y)) for constant in np.linspace(y.min(), y.max(), 1001))
    for certificate in certificates(streamcut.train(store(rows), **options, max_passes=2)):
        assert options.get("task") == "one-class" or certificate.c_bar == pytest.approx(options.get("C", 1.0) * u.sum())
        assert certificate.unit == pytest.approx(unit, rel=0.1)


@pytest.mark.parametrize("name", ALL)
def test_threads_and_files_change_no_bit(name, store, tmp_path):
    rows, cut = ALL[name].rows, {"shard_nnz": 150}
    ways = [
        (store(rows, **cut), 1),
        (store(rows, **cut), 3),
        (store(rows, **cut, backend="hdf5"), 2),
        (ROWS[rows].in_memory(**cut), 1),
    ]
    first, *others = (bits(streamcut.train(data, **short(name), workers=n), tmp_path / f"{n}.npz") for data, n in ways)
    for other in others:
        assert other == first


@pytest.mark.parametrize("name", ALL)
def test_a_training_that_was_stopped_ends_as_if_it_had_not_been(name, store, tmp_path, run):
    data, options, seen = store(ALL[name].rows, shard_nnz=150), short(name), []
    whole = streamcut.train(data, **options)
    flags = [f"--set={o}={value}" if o in SETTINGS else f"--{o.replace('_', '-')}={value}" for o, value in options.items()]
    flags += [f"--checkpoint={tmp_path / 'run'}", "--checkpoint-every=0", "-q", "-o", tmp_path / "resumed.npz"]
    checkpoint = streamcut.CheckpointOptions(str(tmp_path / "run"), every=0.0)
    try:
        streamcut.train(data, **options, checkpoint=checkpoint, on_iteration=seen.append, stop=lambda: len(seen) >= 2)
    except KeyboardInterrupt:
        assert len(seen) < 2, "there was a model to return"
    assert list((tmp_path / "run").glob("*.checkpoint"))
    assert run("train", data, "--resume", *flags)[0] == 0
    assert bits(streamcut.load_model(tmp_path / "resumed.npz"), tmp_path / "a.npz") == bits(whole, tmp_path / "b.npz")


@pytest.mark.process
def test_memory_that_cuts_the_row_cache_short_does_not_choose_the_bits(tmp_path):
    """One command twice, and stopped and resumed: `train` with 2 MB more than the least, where the cache would take 7."""
    rng, n = np.random.default_rng(0), 200_000
    features = np.sort(rng.integers(0, 100, (n, 2)) * 2 + [0, 1]).ravel()
    X = sp.csr_array((rng.standard_normal(2 * n).astype(np.float32), features, np.arange(0, 2 * n + 1, 2)), (n, 200))
    with streamcut.create(tmp_path / "tall.zarr", shard_nnz=100_000) as out:
        out.append(X, np.where(X @ rng.standard_normal(200) + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0))

    def train(memory: str, name: str, *flags: str) -> subprocess.CompletedProcess:
        command = ["train", "tall.zarr", "-o", f"{name}.npz", "-q", "--solver=bundle-dca", "--workers=1", f"--memory={memory}"]
        return subprocess.run(
            [sys.executable, "-P", "-m", "streamcut", *command, *flags], cwd=tmp_path, capture_output=True, text=True
        )

    least = re.search(r"at least (\d+)MB", train("1MB", "refused").stderr)[1]
    memory = f"{int(least) + 2}MB"
    checkpoint = ("--checkpoint=run", "--checkpoint-every=0s")
    runs = [
        train(memory, "whole", "--max-passes=4"),
        train(memory, "again", "--max-passes=4"),
        train(memory, "resumed", "--max-passes=2", *checkpoint),
        train(memory, "resumed", "--max-passes=4", *checkpoint, "--resume", "--force"),
    ]
    assert [done.returncode for done in runs] == [0] * 4, runs[-1].stderr
    whole, *others = (streamcut.load_model(tmp_path / f"{name}.npz").weights for name in ("whole", "again", "resumed"))
    assert all(np.array_equal(whole, other) for other in others)


@pytest.mark.parametrize(
    "name", [name for name, training in TRAININGS.items() if training.rows in ("numbers", "classes", "counts")]
)
def test_a_row_of_weight_two_is_the_row_twice(name):
    rows, options, _ = TRAININGS[name]
    times = np.random.default_rng(0).integers(0, 3, len(ROWS[rows].y))
    weighted = ROWS[rows]._replace(weight=times.astype(float))
    repeated = ROWS[rows][np.repeat(np.arange(len(times)), times)]
    models = [streamcut.train(each.in_memory(), **options, tol=None, tol_relative=1e-6) for each in (weighted, repeated)]
    for model in models:
        F = objective(model, weighted, options)
        assert objective(model, repeated, options) == pytest.approx(F, rel=1e-12)
        assert pytest.approx(claims(model)[0], rel=ROUNDING) == F
    if "l1_only" not in options:  # F is strongly convex: ‖w − w*‖ ≤ √(2·gap)
        apart = np.linalg.norm(models[0].weights - models[1].weights)
        assert apart <= sum(np.sqrt(2 * (primal - bound)) for primal, bound in map(claims, models))


@pytest.mark.parametrize(
    ("estimator", "options"),
    [
        ("LinearSVM", {"loss": "squared-hinge", "tol": 1e-9}),
        ("LogisticRegression", {"tol": 1e-9}),
        ("LinearSVM", {"loss": "logistic", "strategy": "one-vs-rest", "tol": 1e-9}),
        ("KernelSVM", {"kernel": "rbf", "gamma": 0.5, "tol": 1e-6}),
    ],
)
def test_balanced_classes_count_the_weights_of_rows(estimator, options):
    X, y, _, _ = ROWS["classes" if "strategy" in options else "weighted"]
    times = np.random.default_rng(0).integers(0, 4, len(y)) * np.where(y > 0, 3, 1)
    at = np.repeat(np.arange(len(y)), times)
    make = getattr(estimators, estimator)
    weighted = make(class_weight="balanced", **options).fit(X, y, sample_weight=times.astype(float))
    repeated = make(class_weight="balanced", **options).fit(X[at], y[at])
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=2e-2)


@pytest.mark.parametrize("name", ALL)
def test_a_model_is_its_file(name, store, tmp_path):
    rows, options = ALL[name].rows, short(name)
    X, y, qid, _ = ROWS[rows]
    model = streamcut.train(store(rows), **options)
    streamcut.save_model(model, tmp_path / "m.npz")
    loaded = streamcut.load_model(tmp_path / "m.npz")
    dump(tmp_path / "rows.svm", X, y, qid)
    expected = model.predict(X, qid=qid) if options.get("task") == "sequence" else model.predict(X)
    for source in (store(rows, shard_nnz=150), str(tmp_path / "rows.svm")):
        predicted = streamcut.predict(loaded, source)
        np.testing.assert_allclose(np.asarray(predicted, float), np.asarray(expected, float), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in CERTIFIED if CERTIFIED[name].options.get("task") != "sequence"])
def test_verify_accepts_the_truth_and_refutes_a_lie(name, store, tmp_path, run):
    rows, options, _ = CERTIFIED[name]
    model = streamcut.train(store(rows), **options)

    def verdict(model) -> int:
        streamcut.save_model(model, tmp_path / "m.npz")
        return run("verify", tmp_path / "m.npz", store(rows))[0]

    assert verdict(model) == 0
    weights = "coefficients" if hasattr(model, "coefficients") else "weights"
    assert verdict(replace(model, **{weights: getattr(model, weights) * 1.05})) == 5
    if len(model.certificates) == 1 and hasattr(model, "intercept"):
        primal, _ = claims(model)
        assert verdict(replace(model, certificates=(replace(model.certificate, primal=0.999 * primal),))) == 5
        worse = replace(model, **{weights: getattr(model, weights) * 1.2})
        F, best = objective(worse, ROWS[rows], options), optimum(rows, problem(options))[0]
        assert best * (1 + 1e-6) < F
        between = replace(model.certificate, primal=F, lower_bound=0.5 * (F + best), tol=1.0, tol_relative=None)
        assert verdict(replace(worse, certificates=(between,))) == 5  # consistent, but weights reach less


def test_a_small_problem_takes_few_passes(store):
    """Speed without a clock: a quarter more than each training took when its line was written, and one."""
    found = {}
    for name, (rows, options, passes) in TRAININGS.items():
        for most, tolerance in zip(passes, ({}, {"tol": None, "tol_relative": 1e-5}), strict=True):
            model = streamcut.train(store(rows), **options, **tolerance, max_passes=2 * most)
            found[name, *tolerance] = model.history[-1]["passes"] / (1.25 * most + 1) if model.converged else np.inf
    assert {name: share for name, share in found.items() if share > 1} == {}


@pytest.mark.parametrize(
    ("rows", "theirs", "options"),
    [
        ("weighted", LogisticRegression(solver="newton-cholesky", tol=1e-10), {"loss": "logistic", "intercept": "free"}),
        ("weighted", LinearSVC(loss="squared_hinge", tol=1e-10, max_iter=100_000), {"loss": "squared-hinge"}),
        ("weighted", LinearSVC(loss="hinge", tol=1e-10, max_iter=1_000_000), {}),
        (
            "classes",
            LogisticRegression(fit_intercept=False, tol=1e-10, max_iter=10_000),
            {"loss": "softmax", "intercept": "none"},
        ),
        ("numbers", Ridge(alpha=1.0, tol=1e-12), {"loss": "squared", "intercept": "free"}),
        ("numbers", ElasticNet(alpha=3 / 240, l1_ratio=2 / 3, tol=1e-10), {"loss": "squared", "l1": 2.0, "intercept": "free"}),
        ("numbers", LinearSVR(epsilon=0.1, tol=1e-10, max_iter=1_000_000), {"loss": "epsilon-insensitive"}),
        ("numbers", Lasso(alpha=3 / 240, tol=1e-10), {"loss": "squared", "l1_only": 3.0, "intercept": "free"}),
        ("counts", PoissonRegressor(alpha=1 / 240, tol=1e-10, max_iter=10_000), {"loss": "poisson", "intercept": "free"}),
        ("weighted", SVC(kernel="rbf", gamma=0.5, tol=1e-8), {"kernel": "rbf", "gamma": 0.5, "solver": "smo"}),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else None,
)
def test_others_minimise_the_same(rows, theirs, options):
    X, y, _, weight = ROWS[rows]
    theirs.fit(X, y, sample_weight=weight)
    if rows in ("numbers", "counts"):
        options = {"task": "regression", **options}
    ours = streamcut.train(ROWS[rows].in_memory(), **options, tol=None, tol_relative=1e-8)
    if not hasattr(theirs, "decision_function"):
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=5e-3)
    else:
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=5e-3)
