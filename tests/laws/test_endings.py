"""Every training ends at its gap, in about as many passes as the same problem takes alone."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut

MOST = 150  # passes; the runs below take a tenth of them to half


def unscaled(rows=400, features=6, classes=3, seed=0):
    """(X, y): rows whose features differ in size by four orders of magnitude, with noisy linear classes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, features)) * 10.0 ** rng.uniform(-1.0, 3.0, features)
    scores = X / X.std(axis=0) @ rng.standard_normal((features, classes)) + rng.standard_normal((rows, classes))
    return X, scores.argmax(axis=1).astype(float)


@pytest.mark.parametrize(("loss", "C", "row_cache"), [("squared-hinge", 100.0, "auto"), ("logistic", 100.0, "0")])
def test_one_against_the_rest_does_not_diverge_where_nothing_bounds_dual_variables(loss, C, row_cache):
    rng = np.random.default_rng(1)
    X = (rng.random((600, 120)) < 0.25).astype(float)
    X[0, 0] = 2.0  # as the laws' rows have values and weights, for which kernels are compiled
    y = (X @ rng.standard_normal((120, 3)) + 0.3 * rng.standard_normal((600, 3))).argmax(axis=1).astype(float)
    options = {"loss": loss, "C": C, "row_cache": row_cache, "solver": "bundle-dca", "max_passes": MOST}
    assert streamcut.train((X, y, np.ones(600)), task="multiclass", strategy="one-vs-rest", **options).converged


def each_alone(X, y, **options):
    """The models of each class against the rest."""
    return [streamcut.train((X, np.where(y == label, 1.0, -1.0)), task="binary", **options) for label in np.unique(y)]


@pytest.mark.parametrize("intercept", ["regularised", "free"])
@pytest.mark.parametrize("loss", ["logistic", "squared-hinge"])
def test_one_against_the_rest_ends_on_unscaled_features_as_each_class_alone(loss, intercept):
    X, y = unscaled()
    options = {"loss": loss, "intercept": intercept}
    together = streamcut.train((X, y), task="multiclass", strategy="one-vs-rest", max_passes=MOST, **options)
    alone = each_alone(X, y, **options)
    assert together.converged
    assert together.history[-1]["passes"] == sum(model.history[-1]["passes"] for model in alone)
    for k, model in enumerate(alone):
        assert together.certificates[k].primal == model.certificate.primal
        np.testing.assert_array_equal(together.weights[:, k], model.weights)


def test_one_against_the_rest_by_newton_goes_on_wherever_it_was_stopped(tmp_path):
    X, y = unscaled()
    options = {"task": "multiclass", "strategy": "one-vs-rest", "loss": "logistic", "solver": "newton"}
    whole, passes = streamcut.train((X, y), **options), []

    def stop():
        return len(passes) >= 9

    def resumed(**more):
        passes.clear()
        kept = streamcut.CheckpointOptions(str(tmp_path / "run"), every=0.0, **more)
        return streamcut.train((X, y), checkpoint=kept, on_iteration=passes.append, stop=stop if not more else None, **options)

    with pytest.raises(KeyboardInterrupt):  # in the second class: the third has no model
        resumed()
    model = resumed(resume=True)
    np.testing.assert_array_equal(model.weights, whole.weights)
    assert [line["primal"] for line in model.history] == [line["primal"] for line in whole.history]
    assert 0 < len(passes) < len(whole.history) - 6
    limited = streamcut.train((X, y), max_passes=2, **options)
    assert limited.history[-1]["passes"] == 6
    assert streamcut.train((X, y), warm_start=whole, **options).history[-1]["passes"] == 3


def noisy(rows=400, seed=0):
    """(X, y) of two classes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, 3))
    return X, np.where(X[:, 0] + rng.standard_normal(rows) > 0.0, 1.0, -1.0)


@pytest.mark.parametrize("loss", ["logistic", "squared-hinge", "hinge"])
@pytest.mark.parametrize("Cs", [[1e-6, 1.0], [1e-8, 1.0]])
def test_a_grid_ends_however_far_apart_its_costs_are(loss, Cs):
    X, y = noisy()
    models, options = {}, {"loss": loss, "intercept": "free"}

    def keep(point, fold, tried):
        models[point["C"], fold] = tried

    found = streamcut.tune((X, y), {"C": Cs}, folds=3, max_passes=MOST, on_model=keep, **options)
    assert len(models) == 6
    assert all(tried.result["converged"] for tried in models.values())
    alone = streamcut.train((X, y), C=found.best.options["C"], **options).certificate
    here = found.model.certificate
    assert found.model.converged
    assert max(here.lower_bound, alone.lower_bound) <= min(here.primal, alone.primal)


def test_a_grid_takes_newtons_method_where_each_of_its_problems_would():
    X, y = unscaled(classes=2)
    found = streamcut.tune((X, y), {"C": [1.0, 100.0]}, folds=3, loss="logistic", max_passes=MOST)
    assert found.model.converged
    assert sum(row["passes"] for row in found.table) < 100


@pytest.mark.parametrize("loss", ["logistic", "squared-hinge", "huber", "squared"])
def test_wide_unscaled_features_converge(loss):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((500, 300)) * 10.0 ** rng.uniform(-2.0, 3.0, 300)
    t = X / X.std(axis=0) @ rng.standard_normal(300) + rng.standard_normal(500)
    y, task = (t, "regression") if loss in ("huber", "squared") else (np.where(t > 0.0, 1.0, -1.0), "binary")
    for more in ({"intercept": "free"}, {"l1": 0.5}):
        model = streamcut.train((X, y), task=task, loss=loss, max_passes=MOST, **more)
        assert model.converged, more


@pytest.mark.parametrize("more", [{}, {"intercept": "free"}, {"l1": 0.5}])
def test_huber_converges_where_targets_are_far_from_zero_and_features_unscaled(more):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((800, 150)) * 10.0 ** rng.uniform(-2.0, 3.0, 150)
    y = 1000.0 + 100.0 * (X / X.std(axis=0) @ rng.standard_normal(150)) + 50.0 * rng.standard_normal(800)
    assert streamcut.train((X, y), task="regression", loss="huber", max_passes=MOST, **more).converged


@pytest.mark.parametrize(("rows", "features", "far"), [(200, 5, 100.0), (200, 5, 1e6), (400, 100, 100.0)])
@pytest.mark.parametrize("loss", ["hinge", "epsilon-insensitive", "quantile"])
def test_kinks_and_a_free_intercept_converge_where_columns_are_far_from_zero(loss, rows, features, far):
    rng = np.random.default_rng(0)
    X = far + rng.standard_normal((rows, features))
    t = X[:, 0] - far + rng.standard_normal(rows)
    y, task = (np.where(t > 0.0, 1.0, -1.0), "binary") if loss == "hinge" else (t + 5.0, "regression")
    assert streamcut.train((X, y, np.ones(rows)), task=task, loss=loss, intercept="free", max_passes=MOST).converged


@pytest.mark.parametrize("more", [{"solver": "bundle-dca"}, {"solver": "bundle-dca", "l1": 0.5, "intercept": "free"}])
def test_a_stop_says_what_helps_where_features_differ_in_size(more):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 8)) * 10.0 ** np.linspace(-3.0, 3.0, 8)
    y = X / X.std(axis=0) @ np.ones(8) + rng.standard_normal(300)
    data = streamcut.rows(X, y, weight=np.ones(300))
    stopped = streamcut.train(data, task="regression", max_passes=5, **more)
    assert not stopped.converged
    assert "feature 7" in stopped.certificate.in_words()
    assert "scale std" in stopped.certificate.in_words()
    assert streamcut.train(data, task="regression", max_passes=MOST, scale="std", **more).converged


@pytest.mark.parametrize("loss", ["logistic", "squared-hinge"])
def test_one_column_far_from_zero_among_many_sparse_ones_ends(loss, tmp_path, caplog):
    """Dual ascent, whose steps cancel each other there, hands over to cutting planes, after a stop as without one."""
    rng = np.random.default_rng(0)
    X = sp.random_array((3000, 3000), density=10 / 3000, rng=rng, format="csr")
    X.data[:] = 1.0
    y = np.where(X @ rng.standard_normal(3000) + 0.3 * rng.standard_normal(3000) > 0.0, 1.0, -1.0)
    years = sp.csr_array(1000.0 + 2.0 * rng.random((3000, 1)))
    data, seen = streamcut.rows(sp.hstack([X, years]).tocsr(), y, weight=np.ones(3000)), []
    options = {"loss": loss, "solver": "bundle-dca", "max_passes": 60}
    with caplog.at_level("INFO", logger="streamcut.run"):
        whole = streamcut.train(data, **options)
    assert whole.converged
    assert "dual ascent gains little" in caplog.text
    for stop in (5, whole.history[-1]["passes"] - 2):  # before it hands over, and after
        checkpoint = streamcut.CheckpointOptions(str(tmp_path / f"{stop}"), every=0.0)
        streamcut.train(
            data, **options, checkpoint=checkpoint, on_iteration=seen.append, stop=lambda stop=stop: len(seen) >= stop
        )
        resumed = streamcut.train(data, **options, checkpoint=replace(checkpoint, resume=True))
        assert (resumed.weights.tobytes(), resumed.certificate) == (whole.weights.tobytes(), whole.certificate)
        assert len(resumed.history) == len(whole.history)
        seen.clear()


def test_many_classes_trained_together_end_although_dual_variables_are_stored_small():
    rng = np.random.default_rng(0)
    X = sp.random_array((3000, 2000), density=0.01, rng=rng, format="csr")
    X = sp.csr_array(X.multiply(1.0 / np.sqrt(X.multiply(X).sum(axis=1)).reshape(-1, 1)))
    words = rng.standard_normal((2000, 60)) * (rng.random((2000, 60)) < 0.1)  # of each class
    y = (X @ words + 0.01 * rng.standard_normal((3000, 60))).argmax(axis=1).astype(float)
    assert streamcut.train((X, y), task="multiclass", C=10.0, tol_relative=1e-3, max_passes=40).converged


@pytest.mark.parametrize(("loss", "C"), [("squared-hinge", 1.0), ("logistic", 30.0)])
def test_wide_sparse_rows_take_few_passes_with_a_smooth_loss(loss, C):
    rng, rows, features, entries = np.random.default_rng(0), 2000, 20_000, 80
    frequency = np.arange(1.0, features + 1.0) ** -0.9
    words = rng.choice(features, size=(rows, entries), p=frequency / frequency.sum()).ravel()
    X = sp.csr_array(sp.coo_array((np.ones(rows * entries), (np.repeat(np.arange(rows), entries), words)), (rows, features)))
    y = (X @ rng.standard_normal((features, 3))).argmax(axis=1).astype(float)
    options = {"loss": loss, "C": C, "tol_relative": 1e-3, "max_passes": MOST}
    model = streamcut.train((X, np.where(y == 1.0, 1.0, -1.0)), **options)
    assert model.history[-1]["passes"] <= 9
