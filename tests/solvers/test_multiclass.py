"""Crammer-Singer: kernels, line search and solvers against slow versions, LIBLINEAR, and what must never change the answer."""

import json
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import multiclass as slow
from sklearn.datasets import dump_svmlight_file

import streamcut
from streamcut.bundle.line_search import minimise_along_line
from streamcut.compiled import multiclass
from streamcut.errors import BadInputError, UsageError
from streamcut.execution.feed import Feed
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.row_cache import CacheSize
from streamcut.execution.runner import Runner
from streamcut.exports.export import export
from streamcut.foundation.chunk import Chunk
from streamcut.io.memory import MemoryDataset
from streamcut.losses.classes import ClassesRisk
from streamcut.losses.crammer_singer import CrammerSinger, project
from streamcut.models.files import load_model, save_model
from streamcut.oracles.dual.classes import MulticlassDualOracle, row_bytes
from streamcut.oracles.dual.passes import Ascent
from streamcut.training import train

pytestmark = pytest.mark.smoke

SOLVERS = ["cpa", "ocas", "bundle-dca"]
LABELS = (-2.0, 1.0, 3.5, 7.0)
HINGE = CrammerSinger(len(LABELS))


def problem(n=150, d=8, *, seed=0, weights=False, classes=4):
    """Noisy sparse rows of several classes; some have no features."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.5, format="csr", rng=rng, data_sampler=rng.standard_normal)
    scores = X @ rng.standard_normal((d, classes)) + 0.5 * rng.standard_normal((n, classes))
    return X, np.asarray(LABELS[:classes])[scores.argmax(axis=1)], rng.uniform(0.2, 3.0, n) if weights else None


def dense(X, bias=1.0):
    X = X.toarray()
    return np.hstack([X, np.full((len(X), 1), bias)]) if bias else X


@cache
def enclosed_optimum(weights, bias):
    """(primal, dual) around min F of `problem(90, weights=weights, seed=3)` at C = 0.8."""
    X, y, u = problem(90, weights=weights, seed=3)
    return slow.optimum(dense(X, bias), np.searchsorted(LABELS, y), 4, 0.8, np.ones(len(y)) if u is None else u, 1e-6)


def rows_of(X, y):
    X = sp.csr_array(X)
    return Chunk(X.indptr.astype(np.int64), X.indices, X.data, y)


class TestKernels:
    @pytest.mark.parametrize("bias", [0.0, 0.5])
    @pytest.mark.parametrize("weights", [False, True])
    def test_scores_losses_and_cut(self, bias, weights):
        X, y, u = problem(weights=weights)
        rng, D = np.random.default_rng(1), X.shape[1] + (bias != 0)
        W, target = rng.standard_normal((D, 4)), np.searchsorted(LABELS, y)
        chunk, Z, found = rows_of(X, y), np.empty((len(y), 4)), np.empty(len(y))
        multiclass.scores(chunk.indptr, chunk.indices, chunk.data, W, bias, Z)
        np.testing.assert_allclose(Z, dense(X, bias) @ W, atol=1e-12)
        assert multiclass.losses(HINGE, target, Z, found) == -1
        np.testing.assert_allclose(found, slow.losses(target, Z), atol=1e-12)
        rival, a = np.empty(len(y), np.int64), np.zeros((D, 4))
        multiclass.rivals(HINGE, target, np.zeros_like(Z), Z, 1.0, rival)
        multiclass.scatter(chunk.indptr, chunk.indices, chunk.data, target, rival, u, bias, 0.0, a)
        every = np.ones(len(y)) if u is None else u
        expected, offset = slow.cut(W, dense(X, bias), target, every)
        np.testing.assert_allclose(a / every.sum(), expected, atol=1e-12)
        assert every[rival != target].sum() / every.sum() == pytest.approx(offset)
        Z[3, 2], Z[5, 0] = np.inf, np.nan
        assert multiclass.losses(HINGE, target, Z, found) == 3

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.floats(-5, 5), min_size=2, max_size=8))
    def test_projection_on_the_simplex(self, values):
        point = np.array(values)
        expected = slow.project_on_simplex(point)
        project(point)
        np.testing.assert_allclose(point, expected, atol=1e-9)
        assert point.sum() == pytest.approx(1.0)

    @settings(max_examples=60, deadline=None)
    @given(st.integers(0, 10**6), st.floats(1e-3, 10), st.floats(-5, 1), st.sampled_from([1, 0.25]))
    def test_line_search(self, seed, A0, B0, grid):
        """Coarse values make ties and breakpoints that coincide."""
        rng = np.random.default_rng(seed)
        n, K = 12, 4
        target = rng.integers(0, K, n)
        z_b, z = (grid * np.round(rng.standard_normal((n, K)) * 2 / grid) for _ in range(2))
        u = rng.uniform(0.5, 2.0, n)

        class Rows:
            def slope_at_zero(self):
                out = np.empty(n)
                multiclass.slopes_at_zero(HINGE, target, z_b, z, out)
                return float(u @ out)

            def histogram(self, edges):
                jumps, counts = np.zeros(len(edges) - 1), np.zeros(len(edges) - 1, np.int64)
                for half in (slice(0, n // 2), slice(n // 2, n)):
                    multiclass.breakpoint_histogram(HINGE, target[half], z_b[half], z[half], u[half], edges, jumps, counts)
                return jumps, counts

            def breakpoints(self, low, high, count):
                k, jump = np.empty(count), np.empty(count)
                assert multiclass.breakpoints_between(HINGE, target, z_b, z, u, low, high, k, jump) == count
                return k, jump

        k = minimise_along_line(A0, B0, 0.7, Rows())
        expected = slow.line_search_by_bisection(A0, B0, 0.7, target, z_b, z, u)
        assert k == pytest.approx(expected, rel=1e-7, abs=1e-9)


class TestCertificate:
    @pytest.mark.thirds
    @pytest.mark.parametrize("bias", [0.0, 1.0])
    @pytest.mark.parametrize("weights", [False, True])
    @pytest.mark.parametrize("solver", SOLVERS)
    def test_encloses_the_optimum(self, solver, weights, bias):
        X, y, u = problem(90, weights=weights, seed=3)
        model = train(
            MemoryDataset(X, y, weight=u), task="multiclass", solver=solver, C=0.8, bias=bias, tol=1e-3, max_passes=2000
        )
        value, dual = enclosed_optimum(weights, bias)
        found = model.certificates[0]
        assert model.converged
        assert found.lower_bound <= value * (1 + 1e-12)
        assert found.primal >= dual * (1 - 1e-12)
        assert found.gap <= 1e-3 * found.c_bar
        every = np.ones(len(y)) if u is None else u
        recomputed = slow.primal(model.augmented_weights, dense(X, bias), np.searchsorted(LABELS, y), 0.8, every)
        assert recomputed == pytest.approx(found.primal, rel=1e-11)

    def test_exact_cuts(self):
        X, y, _ = problem(90, seed=3)
        model = train(MemoryDataset(X, y), task="multiclass", solver="ocas", cut="exact", C=0.8, max_passes=2000)
        value, dual = enclosed_optimum(False, 1.0)
        assert model.converged
        assert model.certificates[0].lower_bound <= value
        assert model.certificates[0].primal >= dual

    def test_two_classes_are_the_binary_problem_with_half_the_norm(self):
        """w_1 = −w_0 = w/2 of the hinge loss with margin 1 between them: F of the binary problem at 2C is twice this one."""
        X, y, _ = problem(100, classes=2)
        ours = train(MemoryDataset(X, y), task="multiclass", C=0.5, tol=1e-5, tol_relative=None, max_passes=3000)
        binary = train(MemoryDataset(X, y), C=1.0, tol=1e-6, tol_relative=None)
        assert binary.certificate.lower_bound <= 2 * ours.certificates[0].primal
        assert 2 * ours.certificates[0].lower_bound <= binary.certificate.primal

    @pytest.mark.parametrize(("name", "C"), [("dna", 1.0), ("letter", 0.1)])
    def test_liblinear_is_inside(self, load, name, C):
        liblinear = pytest.importorskip("liblinear.liblinearutil")
        X, y = load(name)
        reference = liblinear.train(liblinear.problem(y, X), liblinear.parameter(f"-s 4 -c {C} -B 1 -e 1e-4 -q"))
        labels = np.unique(y)
        W = np.ctypeslib.as_array(reference.w, ((X.shape[1] + 1) * len(labels),)).reshape(-1, len(labels))
        W = W[:, np.argsort(reference.get_labels())]
        theirs = slow.primal(W, dense(sp.csr_array(X)), np.searchsorted(labels, y), C, np.ones(len(y)))
        model = train(MemoryDataset(X, y), task="multiclass", C=C)
        assert model.converged
        assert model.certificates[0].lower_bound <= theirs * (1 + 1e-9)
        assert model.certificates[0].primal >= theirs * (1 - 1e-3)  # theirs is this close to the optimum


class TestInvariance:
    @pytest.mark.parametrize(("solver", "more"), [*((solver, {}) for solver in SOLVERS), ("bundle-dca", {"row_cache": "0"})])
    def test_workers_and_shards_change_no_bit(self, solver, more):
        X, y, u = problem(2000, 30, weights=True, seed=1)
        options = {"task": "multiclass", "solver": solver, "lanes": 3, "max_passes": 12, "max_cuts": 6, **more}
        expected = train(MemoryDataset(X, y, weight=u), **options, scheduler="sync")
        for shard_nnz, workers in ((1 << 20, 3), (4000, 2)):
            model = train(MemoryDataset(X, y, weight=u, shard_nnz=shard_nnz), **options, workers=workers)
            np.testing.assert_array_equal(model.weights, expected.weights)
            assert model.certificates == expected.certificates

    @pytest.mark.parametrize("solver", ["cpa", "ocas"])
    def test_weight_two_is_the_row_twice(self, solver):
        X, y, _ = problem(60, seed=5)
        options = {"task": "multiclass", "solver": solver, "max_passes": 40, "tol": 1e-6}
        twice = train(MemoryDataset(sp.vstack([X, X]), np.tile(y, 2)), **options)
        weighted = train(MemoryDataset(X, y, weight=np.full(60, 2.0)), **options)
        assert weighted.certificates[0].primal == pytest.approx(twice.certificates[0].primal, rel=1e-6)

    @pytest.mark.parametrize(("solver", "more"), [("ocas", {}), ("bundle-dca", {}), ("bundle-dca", {"row_cache": "0"})])
    def test_stopped_and_resumed_is_uninterrupted(self, solver, more, tmp_path):
        from streamcut.config import CheckpointOptions

        X, y, _ = problem(300, 20, seed=2)
        options = {"task": "multiclass", "solver": solver, "max_cuts": 6, "tol": 1e-7, "tol_relative": None, "C": 10.0, **more}
        whole = train(MemoryDataset(X, y), **options, max_passes=20)
        train(MemoryDataset(X, y), **options, max_passes=9, checkpoint=str(tmp_path))
        resumed = train(MemoryDataset(X, y), **options, max_passes=20, checkpoint=CheckpointOptions(str(tmp_path), resume=True))
        np.testing.assert_array_equal(resumed.weights, whole.weights)

    def test_cached_rows_save_passes(self):
        X, y, _ = problem(1500, 20, seed=7)
        options = {"task": "multiclass", "solver": "bundle-dca", "tol": 1e-4, "tol_relative": None, "C": 10.0}
        without, some = (train(MemoryDataset(X, y), row_cache=size, **options) for size in ("0", "30%"))
        assert without.converged
        assert some.converged
        assert some.certificates[0].lower_bound <= without.certificates[0].primal
        assert without.certificates[0].lower_bound <= some.certificates[0].primal
        assert some.history[-1]["passes"] < 0.7 * without.history[-1]["passes"]

    def test_an_order_of_lanes_is_one_of_rows(self):
        """The number of lanes is that of the data, never of threads."""
        X, y, _ = problem(500)
        data = MemoryDataset(X, y)
        for workers in (1, 4):
            model = train(data, task="multiclass", workers=workers, max_passes=3)
            assert model.parameters["lanes"] == len(plan_lanes(data.manifest.statistics, 1))


@pytest.fixture(scope="module")
def trained():
    """(model, rows, labels of which some are not those that it was trained on)."""
    X, y, _ = problem()
    return train(MemoryDataset(X, y), task="multiclass"), X, np.where(np.arange(len(y)) % 9, y, LABELS[0])


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_both_cuts_are_what_rows_remember(seed, ones):
    """Whatever w and the mixture: each cut is Σ π (e_k − e_t) xᵀ of the shares in its slot, and those are feasible."""
    X, y, u = problem(60, seed=seed % 7, weights=True)
    if ones:
        X.data[:] = 1.0
    data, target, rng = MemoryDataset(X, y, weight=u), np.searchsorted(LABELS, y), np.random.default_rng(seed)
    size = CacheSize.planned(data.manifest, 20_000, 2, row_bytes(4))
    with Runner(Feed(data, frozenset([0])), plan_lanes(data.manifest.statistics, 2)) as runner:
        oracle = MulticlassDualOracle(runner, ClassesRisk(LABELS), C=1.0, bias=1.0, cuts=6, size=size, sweeps=3)
        for number in range(3):
            w, mixture = rng.standard_normal(oracle.dimension), np.zeros(6)
            mixture[: 2 * number] = rng.dirichlet(np.ones(2 * number)) if number else 0.0
            slots = 2 * number, 2 * number + 1
            cuts = oracle.ascend(Ascent(w, mixture, *slots, 1.0, 0.0), first=number == 0)
            for cut, slot in zip(cuts, slots, strict=True):
                share = (runner.rows["codes"][:, slot] / 65535.0) ** 2
                assert (share[np.arange(60), target] == 0.0).all()
                assert (share.sum(axis=1) <= 1.0 + 1e-15).all()
                share[np.arange(60), target] = -share.sum(axis=1)
                expected = dense(X).T @ (share * u[:, None]) / u.sum()
                np.testing.assert_allclose(cut.a.reshape(-1, 4), expected, atol=1e-12)
                assert cut.b == pytest.approx(-(share[np.arange(60), target] @ u) / u.sum())
            expected, _ = slow.cut(w.reshape(-1, 4), dense(X), target, u)
            np.testing.assert_allclose(cuts[0].a.reshape(-1, 4), expected, atol=1e-12)


class TestModel:
    def test_file_and_prediction(self, trained, tmp_path):
        model, X, _ = trained
        save_model(model, tmp_path / "m.npz")
        again = load_model(tmp_path / "m.npz")
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
        np.testing.assert_allclose(model.decision_function(X), dense(X) @ model.augmented_weights, atol=1e-12)
        np.testing.assert_array_equal(again.predict(X), np.asarray(LABELS)[(dense(X) @ model.augmented_weights).argmax(axis=1)])
        assert (again.certificates, again.labels, again.result()) == (model.certificates, LABELS, model.result())

    def test_measures_are_those_of_scikit_learn(self, trained):
        from sklearn import metrics

        model, X, y = trained
        u = np.random.default_rng(0).uniform(0.1, 2.0, len(y))
        found, said = streamcut.evaluate(model, (X, y, u)), model.predict(X)
        true, predicted = np.searchsorted(LABELS, y), np.searchsorted(LABELS, said)
        labels = {"sample_weight": u, "labels": range(4), "y_true": true, "y_pred": predicted}
        assert found.accuracy == found.micro_f1 == pytest.approx(metrics.accuracy_score(true, predicted, sample_weight=u))
        assert found.macro_f1 == pytest.approx(metrics.f1_score(**labels, average="macro"))
        assert found.balanced_accuracy == pytest.approx(metrics.recall_score(**labels, average="macro"))
        np.testing.assert_allclose(found.confusion_matrix, metrics.confusion_matrix(**labels))
        each = metrics.precision_recall_fscore_support(**labels)
        np.testing.assert_allclose([[c[m] for c in found.classes] for m in ("precision", "recall", "f1", "support")], each)
        expected = u @ slow.losses(true, dense(X) @ model.augmented_weights) / u.sum()
        assert found.mean_loss == pytest.approx(expected)
        json.dumps(found.measures(), allow_nan=False)

    def test_absent_classes_have_no_recall(self, trained):
        model, X, y = trained
        found = streamcut.evaluate(model, (X[y == 1.0], y[y == 1.0]))
        assert [c["recall"] is None for c in found.classes] == [True, False, True, True]
        assert found.balanced_accuracy == found.accuracy

    def test_unknown_labels_are_named(self, trained):
        model, X, y = trained
        with pytest.raises(BadInputError, match=r"row 0 .* label 9, but the model knows only -2, 1, 3.5, 7"):
            streamcut.evaluate(model, (X, np.full(len(y), 9.0)))

    @pytest.mark.parametrize("strategy", ["crammer-singer", "one-vs-rest"])
    def test_liblinear_reads_the_export(self, strategy, tmp_path):
        liblinear = pytest.importorskip("liblinear.liblinearutil")
        X, y, _ = problem(80)
        y = np.searchsorted(LABELS, y) * 2.0 - 3.0
        model = train(MemoryDataset(X, y), task="multiclass", strategy=strategy)
        export(model, tmp_path / "m.liblinear")
        theirs = liblinear.load_model(str(tmp_path / "m.liblinear"))
        said, _, scores = liblinear.predict([], sp.csr_matrix(X), theirs, "-q")
        np.testing.assert_array_equal(said, model.predict(X))
        np.testing.assert_allclose(scores, model.decision_function(X), atol=1e-12)


class TestRefusals:
    def test_one_class(self):
        with pytest.raises(BadInputError, match="needs two classes"):
            train(MemoryDataset(np.eye(3), np.ones(3)), task="multiclass")

    def test_labels_that_are_no_classes(self):
        with pytest.raises(BadInputError, match="more than 4096 different labels"):
            train(MemoryDataset(np.ones((5000, 1)), np.arange(5000.0)), task="multiclass")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"solver": "bundle-dca", "row_cache": "100B"}, "row_cache: 100B is too little for a row in each of 1 lanes"),
            ({"positive_label": 1.0}, "positive_label"),
            ({"strategy": "one-vs-rest", "target": 1.0}, "target: "),
        ],
    )
    def test_options_that_mean_nothing_here(self, options, message):
        X, y, _ = problem(20)
        with pytest.raises(UsageError, match=message):
            train(MemoryDataset(X, y), task="multiclass", **options)

    def test_memory_says_what_classes_cost(self):
        X, y, _ = problem(20)
        from streamcut.errors import MemoryBudgetError

        with pytest.raises(MemoryBudgetError, match=r"weights and sums 5 × 36 features, others in scratch files"):
            train(MemoryDataset(X, y), task="multiclass", memory="50MB")


def test_command_line(run, tmp_path):
    X, y, _ = problem()
    with open(tmp_path / "rows.svm", "w") as file:
        dump_svmlight_file(X, y, file.name, zero_based=False)
    assert run("convert", tmp_path / "rows.svm", tmp_path / "rows.zarr")[0] == 0
    code, _, told = run("train", tmp_path / "rows.zarr", "--task", "multiclass", "--model", tmp_path / "m.npz")
    assert code == 0
    assert "Converged" in told
    code, shown, _ = run("evaluate", tmp_path / "m.npz", tmp_path / "rows.svm")
    assert code == 0
    assert [line.split()[0] for line in shown.splitlines()[-4:]] == ["-2", "1", "3.5", "7"]
    assert "confusion" not in shown
    code, shown, _ = run("evaluate", tmp_path / "m.npz", tmp_path / "rows.svm", "--json")
    assert np.trace(json.loads(shown)["confusion_matrix"]) == pytest.approx(json.loads(shown)["accuracy"] * len(y))
    code, shown, _ = run("verify", tmp_path / "m.npz")
    assert code == 0
