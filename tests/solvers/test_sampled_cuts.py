"""Sampled cuts: exact when the sample is everything, close when it is not, and the same bits whoever computes."""

import contextlib
import itertools
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from reference import sampled as slow
from reference import viterbi

import streamcut
from streamcut.bundle.gram_bundle import GramBundle
from streamcut.compiled import splitmix
from streamcut.config import CheckpointOptions
from streamcut.errors import UsageError
from streamcut.execution.feed import Feed
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.runner import Runner
from streamcut.foundation.chunk import Chunk
from streamcut.io.memory import MemoryDataset
from streamcut.kernels import vectors
from streamcut.kernels.kernel import Kernel
from streamcut.kernels.vectors import Vectors
from streamcut.losses.sampled import SampledHinge
from streamcut.models.checkpoint import open_checkpoint
from streamcut.models.files import load_model, save_model
from streamcut.oracles.kernel_columns import take
from streamcut.oracles.sampled import SampledOracle
from streamcut.oracles.sampled_passes import Expansion
from streamcut.prediction import predict
from streamcut.solvers.papers import sampled_constant, sampled_linear
from streamcut.solvers.papers.sampled_cuts import SampledRun
from streamcut.solvers.progress import Progress, StoppingRule
from streamcut.training import train

SOLVERS = ("sampled-linear", "sampled-constant")
RBF = {"kernel": "rbf", "gamma": 0.5}


@cache
def rings(n=120, seed=0):
    """(X, y): two classes that no line parts."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, 3)) > 0.2, rng.standard_normal((n, 3)), 0.0)
    return X, np.where(X[:, 0] ** 2 + np.sin(2 * X[:, 1]) + 0.3 * rng.standard_normal(n) > 0.8, 2.0, 1.0)


@cache
def optimum(kernel, bias):
    X, y = rings()
    sign = np.where(y == 2.0, 1.0, -1.0)
    return slow.hinge_optimum(kernel.matrix(X, X) + bias**2, sign, 0.7, 400)[1]


def coefficients_of(model, X):
    """The model's coefficients by row of X."""
    rows = {row.tobytes(): i for i, row in enumerate(X)}
    places = [rows[vector.tobytes()] for vector in model.support.toarray()]
    found = np.zeros((len(X), *model.coefficients.shape[1:]))
    found[places] = model.coefficients
    return found


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("kernel", "bias"), [(Kernel("rbf", 0.5), 0.0), (Kernel("poly", 0.5, 2, 1.0), 0.0), (Kernel("linear"), 1.0)]
)
def test_samples_of_all_rows_reach_the_kernel_machines_optimum(solver, kernel, bias):
    X, y = rings()
    own = {} if kernel.name == "linear" else {"gamma": kernel.gamma}
    own |= {"degree": 2, "coef0": 1.0} if kernel.name == "poly" else {}
    model = train(MemoryDataset(X, y), solver=solver, kernel=kernel.name, C=0.7, bias=bias, samples=len(y), tol=1e-4, **own)
    K, sign = kernel.matrix(X, X) + bias**2, np.where(y == 2.0, 1.0, -1.0)
    F = slow.hinge_primal(K, sign, 0.7, coefficients_of(model, X))
    best = optimum(kernel, bias)
    assert model.converged
    assert model.certificate.primal - model.certificate.raised == pytest.approx(F, rel=1e-12)
    assert model.facts["primal_estimate"] == pytest.approx(F, rel=1e-5)
    assert model.certificate.lower_bound <= best * (1 + 1e-12)
    assert model.facts["bound_estimate"] <= best * (1 + 1e-6)  # exact cuts bound the optimum
    assert best * (1 - 1e-6) <= F <= best + 1.1e-4 * 0.7 * len(y)


def test_samples_of_all_rows_reach_libsvm():
    from sklearn.svm import SVC

    X, y = rings()
    K = Kernel("rbf", 0.5).matrix(X, X)
    machine = SVC(C=0.7, kernel="precomputed", tol=1e-8).fit(K, y)
    f, coefficients = machine.decision_function(K), np.zeros(len(y))
    coefficients[machine.support_] = machine.dual_coef_[0]
    sign = np.where(y == 2.0, 1.0, -1.0)
    theirs = 0.5 * coefficients @ K @ coefficients + 0.7 * np.maximum(0.0, 1.0 - sign * f).sum()
    # a large constant term all but frees the bias, which LIBSVM does not regularise
    model = train(MemoryDataset(X, y), solver="sampled-linear", C=0.7, bias=30, samples=len(y), tol=1e-5, **RBF)
    assert model.certificate.primal == pytest.approx(theirs, rel=1e-3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_samples_of_some_rows_come_close(solver):
    X, y = rings(600)
    Xt, yt = rings(2000, seed=1)
    exact = train(MemoryDataset(X, y), solver=solver, bias=0, samples=600, **RBF)
    some = train(MemoryDataset(X, y), solver=solver, bias=0, samples=150, **RBF)
    errors = [np.mean(model.predict(Xt) != yt) for model in (exact, some)]
    assert exact.converged
    assert (some.stop_reason, some.converged) == ("samples", False)
    assert errors[1] <= errors[0] + 0.02
    other = train(MemoryDataset(X, y), solver=solver, bias=0, samples=150, seed=1, **RBF)
    assert other.coefficients.tobytes() != some.coefficients.tobytes()


def test_kernel_values_are_counted():
    X, y = rings()
    n, r, common = len(y), 30, {"bias": 0, "tol": 1e-2, **RBF}
    linear = train(MemoryDataset(X, y), solver="sampled-linear", samples=r, **common)
    cuts = linear.facts["iterations"] - 1
    assert linear.facts["kernel_evaluations"] <= cuts * (n * r + r * r)  # O(T m r)
    assert linear.facts["kernel_evaluations"] > 0.9 * cuts * n * r
    counts = []
    for rows in (n, 5 * n):  # O(T² r²), whatever m is
        X, y = rings(rows)
        constant = train(MemoryDataset(X, y), solver="sampled-constant", samples=r, max_passes=2, **common).facts
        T = constant["iterations"]
        assert constant["kernel_evaluations"] <= r * r * (T * (T - 1) / 2 + T)
        counts.append(constant["kernel_evaluations"])
    assert max(counts) <= 3 * min(counts)


def test_several_classes_with_all_rows_reach_their_optimum():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((90, 3))
    y = np.digitize(np.sin(2 * X[:, 0]) + X[:, 1], [-0.5, 0.5]).astype(float)
    K, target = Kernel("rbf", 0.5).matrix(X, X), y.astype(int)
    found = [
        train(MemoryDataset(X, y), task="multiclass", solver=solver, bias=0, samples=90, tol=1e-3, **RBF) for solver in SOLVERS
    ]
    F = [slow.multiclass_primal(K, target, 1.0, coefficients_of(model, X)) for model in found]
    for model, value in zip(found, F, strict=True):
        assert model.certificate.primal - model.certificate.raised == pytest.approx(value, rel=1e-12)
        assert model.certificate.lower_bound <= min(F)
        assert model.certificate.gap <= 1e-3 * 90
        assert model.converged


def words(count=40, seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 6, count)
    y = np.concatenate([(rng.integers(3) + np.arange(n)) % 3 for n in lengths])
    angle = 2 * np.pi * (y + 0.8 * rng.standard_normal(len(y))) / 6
    return sp.csr_array(np.stack([np.cos(2 * angle), np.sin(2 * angle)], 1)), y + 1.0, np.repeat(np.arange(count), lengths)


@pytest.mark.parametrize("solver", SOLVERS)
def test_sequences_with_a_linear_kernel_are_linear_sequences(solver):
    X, y, qid = words()
    data = MemoryDataset(X, y, qid=qid)
    linear = train(data, task="sequence", bias=0, C=0.5, tol=1e-4, tol_relative=None)
    kernel = train(data, task="sequence", bias=0, C=0.5, tol=1e-3, solver=solver, samples=1000)
    inner = kernel.emissions
    assert inner.certificate.primal == pytest.approx(linear.certificate.primal, abs=1.2e-3 * 0.5 * len(y))
    assert inner.certificate.lower_bound <= linear.certificate.primal
    assert linear.certificate.lower_bound <= inner.certificate.primal
    assert kernel.converged
    weights = inner.support.T @ inner.coefficients
    w = np.concatenate((weights.ravel(), kernel.transitions.ravel()))
    starts = np.concatenate(([0], np.flatnonzero(np.diff(qid)) + 1, [len(y)]))
    assert inner.certificate.primal == pytest.approx(
        viterbi.primal(w, X.toarray(), (y - 1).astype(int), starts, 0.5, 3), rel=1e-10
    )


def test_sequence_model_comes_back_from_its_file(tmp_path):
    X, y, qid = words()
    model = train(MemoryDataset(X, y, qid=qid), task="sequence", solver="sampled-linear", samples=10, tol=1e-2, **RBF)
    save_model(model, tmp_path / "m.npz")
    again = load_model(tmp_path / "m.npz")
    assert np.array_equal(predict(again, MemoryDataset(X, y, qid=qid)), model.predict(X, qid=qid))
    assert again.transitions.tobytes() == model.transitions.tobytes()


@pytest.mark.parametrize("solver", SOLVERS)
def test_shards_and_workers_change_no_bit(solver):
    X, y = rings(400)

    def bits(shard_nnz, workers):
        data = MemoryDataset(X, y, shard_nnz=shard_nnz)
        statistics = data.manifest.statistics
        task, kernel = SampledHinge(2.0), Kernel("rbf", 0.5)
        with Runner(Feed(data, frozenset()), plan_lanes(statistics, 4), workers) as runner:
            oracle = SampledOracle(
                runner, task, kernel, C=1.0, bias=1.0, samples=60, max_cuts=50, seed=3, keep_scores=solver == "sampled-linear"
            )
            algorithm = sampled_linear if solver == "sampled-linear" else sampled_constant
            solution = algorithm.solve(oracle, SampledRun(Progress(StoppingRule())), epsilon=1e-2)
        support, coefficients = oracle.answer(solution.bundle, solution.mixture)
        return support.numbers.tobytes(), coefficients.tobytes(), solution.primal_estimate

    want = bits(1 << 20, 1)
    assert bits(100, 1) == want
    assert bits(300, 3) == want


@pytest.fixture(scope="module", params=["binary", "multiclass", "sequence"])
def stored_alike(request, tmp_path_factory):
    """The same rows in stores of three shard sizes, Zarr and HDF5; values of the first shards are all 1, or small integers."""
    folder, task, n = tmp_path_factory.mktemp("alike"), request.param, 900
    rng = np.random.default_rng(2)
    X = sp.random_array((n, 12), density=0.4, format="csr", rng=rng, dtype=np.float32)
    X.data[: X.indptr[300]] = 1.0
    X.data[X.indptr[300] : X.indptr[600]] = np.round(3 * X.data[X.indptr[300] : X.indptr[600]])
    classes = 2 if task == "binary" else 3
    y = np.argmax(X @ rng.standard_normal((12, classes)) + 0.3 * rng.standard_normal((n, classes)), axis=1).astype(float)
    qid = np.repeat(np.arange(n), rng.integers(1, 6, n))[:n] if task == "sequence" else None
    weight = None if task == "sequence" else rng.uniform(0.1, 2.0, n)
    for number, (backend, shard_nnz) in enumerate((("zarr", 1 << 20), ("zarr", 500), ("hdf5", 1300))):
        with streamcut.create(folder / str(number), backend=backend, shard_nnz=shard_nnz) as out:
            out.append(X, y, qid=qid, weight=weight)
    return task, [folder / str(number) for number in range(3)]


@pytest.mark.thirds
@pytest.mark.parametrize("solver", SOLVERS)
def test_shard_sizes_and_backends_change_no_bit(solver, stored_alike):
    task, stores = stored_alike
    how = {"task": task, "solver": solver, "samples": 40, "tol": 2e-2, "max_passes": 60, **RBF}
    want = None
    for store in stores:
        found = everything(train(store, **how))
        want = want or found
        assert found == want


def test_sparse_rows_score_like_dense_ones():
    rng = np.random.default_rng(5)
    X = sp.random_array((40, 30), density=0.2, format="csr", rng=rng)
    chunk = MemoryDataset(X, np.ones(40)).read(0)
    rows = np.array([3, 7, 7, 20, 39])
    columns, factors = rng.integers(0, 3, (5, 2)).astype(np.int32), rng.standard_normal((5, 2))
    some, kernel = take(chunk, rows), Kernel("rbf", 0.3)
    expansion = Expansion(rows, some, columns, factors, np.array([1.0, 2.0, 3.0]), np.zeros(0), rows, np.ones(5))
    C = np.zeros((5, 3))
    np.add.at(C, (np.arange(5)[:, None], columns), factors)
    want = kernel.matrix(X, X[rows]) @ C + [1.0, 2.0, 3.0]
    assert np.allclose(expansion.scores(Vectors(kernel, some, 30), chunk), want, rtol=1e-12)
    assert np.allclose(expansion.scores_of(Vectors(kernel, chunk, 30), 40), want, rtol=1e-12)


def test_keys_are_spread_evenly():
    out = np.empty(100_000, np.uint64)
    splitmix.keys(np.arange(100_000), 7, out)
    shares = np.bincount((out >> np.uint64(60)).astype(int), minlength=16) / len(out)
    assert np.all(np.abs(shares - 1 / 16) < 0.005)
    assert len(np.unique(out)) == len(out)


def test_a_full_bundle_drops_the_least_cut():
    bundle = GramBundle(1.0, 2)
    bundle.add(bundle.make_room(), 1.0, np.zeros(0), 1.0)
    bundle.add(bundle.make_room(), 0.9, np.zeros(1), 1.0)
    bundle.solve(1e-12)
    assert len(bundle) == 2
    slot = bundle.make_room()
    assert (slot, bundle.slots.tolist()) == (1, [0])
    bundle.add(slot, 0.5, np.zeros(1), 1.0)
    solution = bundle.solve(1e-12)
    assert solution.dual == pytest.approx(0.5 * solution.square + solution.xi, abs=1e-9)


def test_a_bundle_follows_a_best_point_and_keeps_its_cuts():
    rng = np.random.default_rng(0)
    bundle, w_b, steps = GramBundle(2.0, 60), np.zeros(6), np.array([0.0, 0.3, 1.0])
    slopes = np.zeros((60, 6))  # by slot
    for t in range(40):
        slot = bundle.make_room()
        slopes[slot] = rng.standard_normal(6)
        bundle.add(slot, 1.0 + 0.1 * t, slopes[bundle.slots] @ slopes[slot], slopes[slot] @ slopes[slot])
        bundle.solve(1e-9)
        live, w = slopes[bundle.slots], -bundle.mixture @ slopes[bundle.slots]
        assert np.allclose(-bundle.best @ live, w_b, atol=1e-3)
        assert np.allclose(bundle.squares(steps), [np.sum((w_b + k * (w - w_b)) ** 2) for k in steps], rtol=1e-3)
        if t < 4:
            bundle.move_best(0.3)
            w_b = w_b + 0.3 * (w - w_b)
    assert len(bundle) > np.count_nonzero(bundle.mixture)  # cuts that the master problem has done without for long
    bundle.move_best(1.0)
    bundle.solve(1e-9)
    assert len(bundle) < 40
    assert np.allclose(bundle.best, bundle.mixture)


@pytest.mark.parametrize("task", ["binary", "multiclass", "sequence"])
def test_the_best_point_is_no_estimate(task):
    if task == "sequence":
        X, y, qid = words()
        data = MemoryDataset(X, y, qid=qid)
    else:
        X, y = rings(300)
        data = MemoryDataset(X, y)
    model = train(data, task=task, solver="sampled-linear", samples=15, C=3.0, tol=2e-2, **RBF)
    inner = model.emissions if task == "sequence" else model
    values = [line["primal_estimate"] for line in inner.history]
    assert values[0] > 1.01 * values[-1]
    assert all(b <= a * (1 + 1e-4) for a, b in itertools.pairwise(values))
    assert inner.certificate.primal == pytest.approx(values[-1], rel=1e-5)  # of all rows, where cuts are of 15


@pytest.mark.parametrize("solver", SOLVERS)
def test_limits_leave_a_model(solver):
    X, y = rings(600)
    model = train(MemoryDataset(X, y), solver=solver, samples=20, max_passes=1, tol=1e-9, **RBF)
    assert (model.stop_reason, model.converged) == ("max_passes", False)
    assert model.n_support > 0
    with pytest.raises(KeyboardInterrupt):
        train(MemoryDataset(X, y), solver=solver, samples=20, stop=lambda: True, **RBF)


@pytest.mark.parametrize("solver", SOLVERS)
def test_weights_are_copies_of_rows(solver):
    X, y = rings()
    copies = np.random.default_rng(4).integers(0, 3, len(y))
    one = np.repeat(np.arange(len(y)), copies * np.where(y == 2.0, 2, 1))
    how = {"solver": solver, "C": 0.7, "bias": 0, "tol": 1e-4, **RBF}
    repeated = train(MemoryDataset(X[one], y[one]), samples=len(one), **how)
    weighted = train(MemoryDataset(X, y, weight=copies.astype(float)), samples=len(y), positive_weight=2.0, **how)
    ours, theirs = weighted.certificate, repeated.certificate
    assert (ours.primal, ours.lower_bound) == pytest.approx((theirs.primal, theirs.lower_bound), abs=2e-4 * 0.7 * len(one))
    kept = coefficients_of(weighted, X) != 0
    assert np.all(copies[kept] > 0)


def test_samples_of_weighted_classes_come_close():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 3))
    y = np.digitize(np.sin(2 * X[:, 0]) + X[:, 1], [-0.5, 0.5]).astype(float)
    data = MemoryDataset(X, y, weight=rng.uniform(0.2, 3.0, 300))
    how = {"task": "multiclass", "solver": "sampled-linear", "bias": 0, "tol": 1e-2, **RBF}
    exact, some = (train(data, samples=samples, **how).certificate.primal for samples in (300, 120))
    assert some == pytest.approx(exact, rel=0.1)


def checkpointed(solver, folder, task, **more):
    """Trained with checkpoints in `folder`, gone on with if there are any."""
    if task == "sequence":
        X, y, qid = words(150)
        data = MemoryDataset(X, y, qid=qid, shard_nnz=200)
    else:
        X, y = rings(400)
        data = MemoryDataset(X, y, weight=None if task == "binary" else 1.0 + X[:, 0] ** 2, shard_nnz=300)
    kept = CheckpointOptions(str(folder), every=0.0, resume=True) if folder is not None else None
    how = {"task": task, "solver": solver, "samples": 20, "tol": 1e-2, "checkpoint": kept, **RBF}
    return train(data, **how, **more)


@cache
def undisturbed(solver, task):
    return everything(checkpointed(solver, None, task))


def everything(model):
    """All that must not change, whatever happened in between."""
    inner = getattr(model, "emissions", model)
    path = [[value for name, value in line.items() if name != "seconds"] for line in inner.history]
    proved = inner.certificate, inner.point and (inner.point.coefficients.tobytes(), inner.point.dense.tobytes())
    return path, inner.facts, inner.support.data.tobytes(), inner.coefficients.tobytes(), str(model.stop_reason), proved


@pytest.mark.thirds
@pytest.mark.parametrize("task", ["binary", "multiclass", "sequence"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_run_that_was_stopped_goes_on_to_the_same_bits(solver, task, tmp_path):
    want = undisturbed(solver, task)
    reasons = [str(checkpointed(solver, tmp_path, task, max_passes=passes).stop_reason) for passes in (1, 2, 3, 9, 10, 14)]
    assert reasons[:2] == ["max_passes"] * 2
    assert everything(checkpointed(solver, tmp_path, task)) == want


def test_a_run_that_was_killed_in_a_pass_goes_on_to_the_same_bits(tmp_path):
    asked = iter(range(200))
    with contextlib.suppress(KeyboardInterrupt):
        stopped = checkpointed("sampled-linear", tmp_path, "binary", stop=lambda: next(asked, None) is None)
        assert stopped.stop_reason == "interrupted"
    kept = {path.name: path.read_bytes() for path in tmp_path.glob("*.checkpoint")}
    assert kept
    newest = max(tmp_path.glob("*.checkpoint"), key=lambda path: open_checkpoint(path).record["generation"])
    newest.write_bytes(kept[newest.name][:-1])  # the one before, written between two iterations, must do
    assert everything(checkpointed("sampled-linear", tmp_path, "binary")) == undisturbed("sampled-linear", "binary")


def test_what_sampled_cuts_refuse():
    X, y = rings()
    data = MemoryDataset(X, y)
    with pytest.raises(UsageError, match="tol"):
        train(data, solver="sampled-constant", tol=None, max_passes=3, **RBF)
    with pytest.raises(UsageError, match="tol_relative"):
        train(data, solver="sampled-constant", tol_relative=0.1, **RBF)
    with pytest.raises(UsageError, match="ranking"):
        train(data, task="ranking", solver="sampled-constant", **RBF)


@pytest.mark.parametrize("code", [Kernel("rbf", 0.3), Kernel("linear"), Kernel("poly", 0.5, 2, 1.0)], ids=lambda k: k.name)
@pytest.mark.parametrize("kept", [True, False])
def test_vectors_of_many_features_have_those_that_occur(code, kept):
    """To the last bit what dense ones give, whatever the tiles, in the memory that the rows' own features take."""
    rng, wide = np.random.default_rng(0), vectors.WIDE + 1

    def rows(n: int) -> Chunk:
        X = sp.random_array((n, 40), density=0.2, format="csr", rng=rng)
        X.sort_indices()
        return Chunk(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, np.zeros(n))

    def spread(chunk: Chunk) -> Chunk:
        return replace(chunk, indices=(chunk.indices * 1500 + 7).astype(np.int32))

    some, others, factors = rows(30), rows(50), rng.standard_normal(30)
    part = others.rows(13, 41)  # of larger arrays
    for tile in (8 << 20, 100):
        dense = Vectors(code, some, 40, tile=tile if tile > 100 else 8 * 40, kept=kept)
        found = Vectors(code, spread(some), wide, tile=tile, kept=kept)
        out = np.zeros((2, part.n_rows))
        dense.add_sums(part, factors, out[0])
        found.add_sums(spread(part), factors, out[1])
        np.testing.assert_allclose(out[0], out[1], rtol=1e-13)
        values = np.zeros((2, part.n_rows, 30))
        for k, (these, chunk) in enumerate(((dense, part), (found, spread(part)))):
            for i, j, block in these.values(chunk):
                values[k, i : i + len(block), j : j + block.shape[1]] = block
        np.testing.assert_array_equal(values[0], values[1])
    assert sum(tile.V.nbytes for tile in found._made()) < 8 * 30 * 41
