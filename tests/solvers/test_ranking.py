"""Pairs: the counts against the list of all pairs, the solvers against a QP on differences, and what must not change a bit."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.nights import by_night
from kit.ranking import bits, problem
from reference import pairs as slow
from reference import svm
from sklearn.datasets import dump_svmlight_file
from sklearn.metrics import average_precision_score, ndcg_score

import streamcut
from streamcut.bundle.line_search import minimise_by_tangents
from streamcut.compiled import pairs
from streamcut.config import CheckpointOptions
from streamcut.errors import BadInputError, CorruptError, UsageError
from streamcut.evaluation import evaluate
from streamcut.execution.feed import Feed
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.row_state import RowState
from streamcut.execution.runner import Runner
from streamcut.foundation.chunk import Chunk
from streamcut.io.memory import MemoryDataset
from streamcut.io.opening import open_dataset
from streamcut.losses.pairs import Pairs
from streamcut.measures.ranking import RankingMeasures
from streamcut.models.certificate import StopReason
from streamcut.models.files import save_model
from streamcut.oracles import groups, row_blocks
from streamcut.oracles.global_risk import GlobalOracle
from streamcut.training import train
from streamcut.verification import verify


def runs_of(qid, n):
    if qid is None:
        return np.array([0, n])
    return np.append(np.flatnonzero(np.append(True, qid[1:] != qid[:-1])), n)


def evaluated(risk, y, qid, scores):
    """(loss, coefficients, offset) by streamcut's kernels, all groups at once."""
    starts, codes, out = runs_of(qid, len(y)), np.empty(len(y), np.int32), np.empty(len(y))
    risk.encode(y, starts, codes)
    weights = risk.weights(risk.sizes(codes, starts))
    sums = risk.evaluate(codes, starts, weights, scores, out)
    return sums[0].sum(), out, sums[1].sum()


rounded = st.sampled_from([-1.0, -0.5, 0.0, -0.0, 0.25, 0.5, 1.0, 1.5, 2.0])
rows = st.tuples(st.sampled_from([-2.0, 0.0, 1.0, 7.5]), st.integers(0, 3), st.one_of(rounded, st.floats(-2, 2)))


@settings(max_examples=150, deadline=None)
@given(st.lists(rows, min_size=1, max_size=25), st.sampled_from(["pairs", "queries"]), st.booleans())
def test_counts_equal_the_list_of_all_pairs(found, normalisation, grouped):
    y, qid, scores = (np.array(column) for column in zip(*sorted(found, key=lambda row: row[1]), strict=True))
    qid = qid if grouped else None
    listed = slow.all_pairs(y, qid)
    expected = slow.risk(scores, listed, slow.pair_weights(listed, qid, normalisation))
    loss, coefficients, offset = evaluated(Pairs(normalisation), y, qid, scores)
    assert loss == pytest.approx(expected[0], rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(coefficients, expected[1], rtol=1e-12, atol=1e-15)
    assert offset == pytest.approx(expected[2], rel=1e-12)


@pytest.mark.parametrize("levels", [2, 5, 400])
def test_counts_of_a_large_group_with_many_ties(levels):
    rng = np.random.default_rng(levels)
    y, scores = rng.integers(0, levels, 500).astype(float), np.round(rng.normal(0, 1, 500), 1)
    ordered = y[:, None] > y[None, :]
    room = 1.0 - (scores[:, None] - scores[None, :])
    active = ordered & (scores[:, None] - scores[None, :] < 1.0)
    loss, coefficients, offset = evaluated(Pairs(), y, None, scores)
    total = ordered.sum()
    assert offset == active.sum() / total
    np.testing.assert_array_equal(coefficients, (active.sum(0) - active.sum(1)) * (1.0 / total))
    assert loss == pytest.approx(room[active].sum() / total, rel=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([1, 2, 63, 64, 65, 300]))
def test_sorting_is_stable(seed, n):
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 1, n) * 10.0 ** rng.integers(-300, 300, n) if seed % 2 else np.round(rng.normal(0, 2, n))
    keys, order = np.empty(n, np.uint64), np.empty(n, np.int32)
    pairs.sort_scores(scores, keys, order, np.empty(n, np.uint64), np.empty(n, np.int32))
    assert scores[order].tobytes() == keys.view(np.float64).tobytes()
    scores[scores == 0.0] = 0.0  # the bits of -0.0 sort below those of 0.0
    pairs.sort_scores(scores, keys, order, np.empty(n, np.uint64), np.empty(n, np.int32))
    np.testing.assert_array_equal(order, np.argsort(scores, kind="stable"))


class _Convex:
    """A SmoothLoss: the largest of some lines plus a sum of hinges."""

    def __init__(self, seed, guess):
        rng = np.random.default_rng(seed)
        self.slopes, self.offsets = rng.normal(0, 2, 9), rng.normal(0, 1, 9)
        self.rates, self.rooms = rng.normal(0, 1, 40), rng.normal(0.5, 1, 40)
        self.guess, self.looks = guess, 0

    def at(self, k):
        self.looks += 1
        lines, hinges = self.offsets + self.slopes * k, self.rooms - self.rates * k
        loss = lines.max() + np.maximum(hinges, 0).sum()
        return loss, self.slopes[np.argmax(lines)] - self.rates[hinges > 0].sum()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.floats(1e-3, 10), st.floats(-5, 5), st.floats(1e-3, 10))
def test_line_search_by_tangents_reaches_most_of_the_decrease(seed, A0, B0, guess):
    rows = _Convex(seed, guess)

    def objective(k):
        return 0.5 * A0 * k * k + B0 * k + 0.7 * rows.at(k)[0]

    k = minimise_by_tangents(A0, B0, 0.7, rows)
    assert rows.looks <= 21
    slope = B0 + 0.7 * rows.at(0.0)[1]
    if slope >= 0.0:
        assert k == 0.0
        return
    lowest = min(objective(t) for t in np.linspace(0.0, -slope / A0, 1000))
    assert objective(k) <= objective(0.0)
    assert objective(0.0) - objective(k) >= 0.85 * (objective(0.0) - lowest)


@cache
def optimum(queries, normalisation):
    """(primal, dual) around min F of `problem(queries=queries)` at C = 0.5, by a QP over all pairs."""
    X, y, qid = problem(queries=queries)
    dense, listed = X.toarray().astype(np.float64), slow.all_pairs(y, qid)
    weights = slow.pair_weights(listed, qid, normalisation) * len(y)
    return svm.optimum(slow.differences(dense, listed), np.ones(len(listed)), 0.5, weights)


@pytest.mark.parametrize("solver", ["ocas", "cpa"])
@pytest.mark.parametrize(("queries", "normalisation"), [(None, "pairs"), (5, "pairs"), (5, "queries")])
def test_certificate_encloses_the_optimum(solver, queries, normalisation):
    X, y, qid = problem(queries=queries)
    primal, dual = optimum(queries, normalisation)
    data = MemoryDataset(X, y, qid=qid)
    model = train(data, task="ranking", C=0.5, solver=solver, normalisation=normalisation, tol=1e-6, tol_relative=None)
    certificate = model.certificate
    assert certificate.converged
    assert certificate.c_bar == 30.0
    assert certificate.lower_bound <= primal * (1 + 1e-9)
    assert certificate.primal >= dual * (1 - 1e-9)
    assert certificate.gap <= 1e-6 * certificate.c_bar
    listed = slow.all_pairs(y, qid)
    loss = slow.risk(X @ model.weights, listed, slow.pair_weights(listed, qid, normalisation))[0]
    assert certificate.primal == pytest.approx(0.5 * model.weights @ model.weights + 30.0 * loss, rel=1e-11)
    assert model.witness.bound(30.0) == pytest.approx(certificate.lower_bound, rel=1e-9)
    assert verify(model, data).consistent


def test_roc_area_is_ranking_with_two_labels():
    X, y, _ = problem(levels=2)
    area = train(MemoryDataset(X, y), task="roc-area", C=0.3)
    ranked = train(MemoryDataset(X, -5.0 + 3.0 * y), task="ranking", C=0.3)  # labels are compared, nothing else
    np.testing.assert_array_equal(area.weights, ranked.weights)
    assert area.task == "roc-area"
    assert area.labels is None
    np.testing.assert_array_equal(area.predict(X), area.decision_function(X))


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of few rows, so that small problems have many."""
    for module in (groups, row_blocks):
        monkeypatch.setattr(module, "BLOCK_ROWS", 50)


@pytest.mark.parametrize("solver", ["ocas", "newton"])
@pytest.mark.parametrize("queries", by_night([None, 30], [None]))
def test_same_bits_whatever_shards_threads_lanes_backend_and_memory(queries, solver, tmp_path, small_blocks):
    X, y, qid = problem(900, 20, queries=queries, dtype=np.float32)
    options = {"task": "ranking", "C": 0.2, "tol": 1e-3, "solver": solver}
    expected = bits(train(MemoryDataset(X, y, qid=qid), scheduler="sync", lanes=1, **options))
    divided = {"ocas": (1, 4, 16), "newton": (1, 1, 1)}[solver]  # a curvature is a sum of lanes' sums
    for shard_nnz, workers, lanes in zip((500, 2000, 10**6), (1, 2, 2), divided, strict=True):
        data = MemoryDataset(X, y, qid=qid, shard_nnz=shard_nnz)
        assert bits(train(data, workers=workers, lanes=lanes, **options)) == expected
    for backend in ("zarr", "hdf5"):
        path = tmp_path / f"rows.{'h5' if backend == 'hdf5' else 'zarr'}"
        with streamcut.create(path, 20, shard_nnz=700, backend=backend) as out:
            out.append(X, y, qid=qid)
        data = open_dataset(path)
        lanes = plan_lanes(data.manifest.statistics, 3)
        row_state = RowState(900, tmp_path)  # in scratch files
        with Runner(Feed(data), lanes, 2, row_state=row_state) as runner:
            oracle = GlobalOracle(runner, Pairs(), C=0.2, bias=0.0, keep_best=True, workers=2)
            cut, loss = oracle.start()
        with Runner(Feed(MemoryDataset(X, y, qid=qid)), plan_lanes(data.manifest.statistics, 1)) as runner:
            plain, expected_loss = GlobalOracle(runner, Pairs(), C=0.2, bias=0.0, keep_best=True).start()
        assert cut.a.tobytes() == plain.a.tobytes()
        assert (cut.b, loss) == (plain.b, expected_loss)
        assert bits(train(data, **options, lanes=1)) == expected


def test_a_checkpoint_goes_on_to_the_same_bits(tmp_path, small_blocks):
    X, y, qid = problem(300, 20, queries=12)
    data = MemoryDataset(X, y, qid=qid)
    options = {"task": "ranking", "C": 1.0, "normalisation": "queries"}
    expected = train(data, **options)
    part = train(data, checkpoint=str(tmp_path / "run"), max_passes=10, **options)
    assert part.certificate.stop_reason is StopReason.MAX_PASSES
    rest = train(data, checkpoint=CheckpointOptions(str(tmp_path / "run"), resume=True), **options)
    assert bits(rest) == bits(expected)
    with pytest.raises(UsageError):
        train(data, checkpoint=CheckpointOptions(str(tmp_path / "run"), resume=True), **{**options, "normalisation": "pairs"})


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"y": np.ones(60)}, BadInputError, "nothing to rank"),
        ({"qid": np.arange(60)}, BadInputError, "no two rows of one query"),
        ({"weight": np.full(60, 2.0)}, BadInputError, "weights"),
        ({"task": "roc-area"}, BadInputError, "two labels"),
        ({"solver": "bundle-dca"}, UsageError, "task ranking is trained by newton, ocas, cpa, not by bundle-dca"),
        ({"bias": 2.0}, UsageError, "task ranking does not have it"),
    ],
)
def test_what_makes_no_sense_is_refused(change, error, message):
    X, y, qid = problem(queries=5)
    data = {"y": y, "qid": qid, "weight": None, **{k: v for k, v in change.items() if k in ("y", "qid", "weight")}}
    options = {"task": "ranking", **{k: v for k, v in change.items() if k not in data}}
    with pytest.raises(error, match=message):
        train(MemoryDataset(X, **data), **options)


def test_a_manifest_that_counts_other_queries_is_refused():
    X, y, qid = problem(queries=5)
    data = MemoryDataset(X, y, qid=qid)
    data.manifest = replace(data.manifest, statistics=replace(data.manifest.statistics, groups=4))
    with pytest.raises(CorruptError, match="5 queries, but the manifest has 4"):
        train(data, task="ranking")


def test_a9a_takes_few_passes_and_ranks_better_than_the_hinge(load):
    X, y = load("a9a")
    test = load("a9a", "test")
    area = train(MemoryDataset(X, y), task="roc-area", C=0.1, tol_relative=None)
    assert area.history[-1]["passes"] <= 55  # what OCAS took before, in two passes for each cut
    hinge = train(MemoryDataset(X, y), C=0.1)
    assert evaluate(area, test).roc_auc >= evaluate(hinge, test).roc_auc


def slow_measures(y, scores):
    """(pairs, swapped, NDCG at 1, 5, 10, average precision) of one query whose scores all differ."""
    listed = slow.all_pairs(y)
    swapped = sum(1.0 * (scores[i] < scores[j]) + 0.5 * (scores[i] == scores[j]) for i, j in listed)
    order, best = np.argsort(-scores), np.argsort(-y)
    discounts = 1.0 / np.log2(2.0 + np.arange(len(y)))

    def dcg(places, k):
        return np.sum((2.0 ** y[places] - 1.0)[:k] * discounts[:k])

    ndcg = [dcg(order, k) / dcg(best, k) if dcg(best, k) else 0.0 for k in (1, 5, 10)]
    hits = y[order] > 0
    precision = np.sum(np.cumsum(hits) / np.arange(1, len(y) + 1) * hits) / hits.sum() if hits.any() else 0.0
    return len(listed), swapped, *ndcg, precision


def test_measures_of_each_query_equal_the_obvious_ones():
    rng = np.random.default_rng(4)
    qid = np.repeat([7, 3, 9, 4], [40, 1, 12, 6])
    y, scores = rng.integers(0, 4, len(qid)).astype(float), rng.permutation(len(qid)) / 10.0
    y[-6:] = 0.0
    measured = RankingMeasures(None)
    for part in (slice(0, 11), slice(11, 45), slice(45, None)):
        measured.add(Chunk(np.zeros(len(qid[part]) + 1, np.int64), None, None, y[part], qid[part]), scores[part])
    table = measured.per_query()
    np.testing.assert_array_equal(table["qid"], [7, 3, 9, 4])
    for g, query in enumerate((7, 3, 9, 4)):
        rows = qid == query
        names = ("pairs", "swapped", "ndcg_at_1", "ndcg_at_5", "ndcg_at_10", "average_precision")
        found = [table[name][g] for name in names]
        np.testing.assert_allclose(found, slow_measures(y[rows], scores[rows]), rtol=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.lists(rows, min_size=1, max_size=25), st.randoms(use_true_random=False))
def test_measures_count_ties_half_and_know_no_order_of_rows(found, random):
    found = sorted(found, key=lambda row: row[1])
    y, qid, scores = (np.array(column) for column in zip(*found, strict=True))
    y, qid = np.abs(y), np.zeros(len(y), np.int64)

    def measures(order):
        measured = RankingMeasures(None)
        measured.add(Chunk(np.zeros(len(y) + 1, np.int64), None, None, y[order], qid), scores[order])
        return measured.measures()

    here = measures(np.arange(len(y)))
    mixed = measures(np.array(random.sample(range(len(y)), len(y))))
    assert {k: pytest.approx(v, rel=1e-12) if v else v for k, v in here.items()} == mixed
    listed = slow.all_pairs(y)
    assert here["pairs"] == len(listed)
    if listed:
        swapped = sum(1.0 * (scores[i] < scores[j]) + 0.5 * (scores[i] == scores[j]) for i, j in listed)
        assert here["swapped_pairs"] == swapped / len(listed)
    if (y > 0).any():
        assert here["map"] == pytest.approx(average_precision_score(y > 0, scores), rel=1e-12)
        gains = (2.0**y - 1.0)[None]
        assert here["ndcg_at_5"] == pytest.approx(ndcg_score(gains, scores[None], k=5) if len(y) > 1 else 1.0, rel=1e-9)


def test_a_cluster_gives_the_same_bits(tmp_path):
    pytest.importorskip("distributed")
    X, y, qid = problem(900, 20, queries=30)
    with streamcut.create(tmp_path / "rows.zarr", 20, shard_nnz=700) as out:
        out.append(X, y, qid=qid)
    options = {"task": "ranking", "C": 0.2, "lanes": 4}
    clustered = train(str(tmp_path / "rows.zarr"), scheduler="local-cluster", workers=2, scratch=str(tmp_path), **options)
    assert bits(clustered) == bits(train(MemoryDataset(X, y, qid=qid), **options))


def test_a_line_for_each_query(run, tmp_path):
    X, y, qid = problem(40, queries=4)
    model = train(MemoryDataset(X, y, qid=qid), task="ranking")
    save_model(model, tmp_path / "m.npz")
    dump_svmlight_file(X, y, str(tmp_path / "rows.svm"), zero_based=False, query_id=qid)
    arguments = ("evaluate", tmp_path / "m.npz", tmp_path / "rows.svm")
    code, out, _ = run(*arguments, "--per-query")
    lines = out.splitlines()
    assert (code, lines[0]) == (0, "qid,rows,pairs,swapped,average_precision,ndcg_at_1,ndcg_at_5,ndcg_at_10")
    assert [line.split(",")[0] for line in lines[1:]] == [str(q) for q in np.unique(qid)]
    assert lines[1].split(",")[5] == ""  # a label is below 0: no NDCG
    table = json.loads(run(*arguments, "--per-query", "--json")[1])
    whole = json.loads(run(*arguments, "--json")[1])
    assert sum(table["swapped"]) / sum(table["pairs"]) == pytest.approx(whole["swapped_pairs"])
    assert table["ndcg_at_1"] == [None] * 4
    save_model(train(MemoryDataset(X, y > 0)), tmp_path / "two.npz")
    code, _, complaint = run("evaluate", tmp_path / "two.npz", tmp_path / "rows.svm", "--per-query")
    assert (code, "ranking" in complaint) == (2, True)
