"""Blocks of rows: the bundle of several simplices, how rows are dealt, how many blocks there are, and what they bring."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from streamcut.bundle.blocks import BlockBundle
from streamcut.bundle.bundle import Bundle
from streamcut.bundle.penalty import SQUARES, ElasticNet
from streamcut.config import CheckpointOptions, TrainOptions
from streamcut.errors import MemoryBudgetError
from streamcut.execution.lanes import Lanes
from streamcut.execution.plan import Blocked, MemoryPlan, Needs
from streamcut.io.memory import MemoryDataset
from streamcut.jobs.blocks import blocks_wanted
from streamcut.oracles.dual.blocks import PIECE, Blocks
from streamcut.rounding import CutError
from streamcut.training import train
from streamcut.verification import verify

EXACTLY = np.zeros(2)


def filled(seed, blocks, cuts, dimension=5, max_cuts=6, penalty=SQUARES, most=None):
    """A bundle with random cuts of every block, and these: a (cuts, blocks, D), b (cuts, blocks)."""
    rng = np.random.default_rng(seed)
    bundle = BlockBundle(dimension, 4.0, max_cuts, most or max_cuts, blocks, penalty)
    a, b = rng.standard_normal((cuts, blocks, dimension)), rng.uniform(0.0, 1.0, (cuts, blocks))
    for each, constant in zip(a, b, strict=True):
        bundle.add(each, constant, np.zeros((blocks, 2)))
    return bundle, a, b


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 6), st.sampled_from([0.0, 0.3]))
def test_the_master_problem_is_solved_over_a_product_of_simplices(seed, blocks, cuts, l1):
    penalty = ElasticNet(l1) if l1 else SQUARES
    bundle, a, b = filled(seed, blocks, cuts, penalty=penalty)
    found = bundle.solve(1e-9)
    model = np.maximum(0.0, a @ found.w + b).reshape(cuts, blocks).max(axis=0).sum()
    assert penalty.value(found.w) + 4.0 * model - found.lower_bound <= 1e-8
    mixture = bundle.mixture()
    assert (mixture >= 0.0).all()
    assert (mixture.sum(axis=1) <= 1.0 + 1e-12).all()
    np.testing.assert_allclose(found.v, -4.0 * np.einsum("kt,tkd->d", mixture[:, :cuts], a), atol=1e-9)


def test_blocks_know_more_than_their_sum():
    bundle, a, b = filled(3, 4, 5)
    together = Bundle(5, 4.0, 6)
    for each, constant in zip(a, b, strict=True):
        together.add(each.sum(axis=0), float(constant.sum()), CutError(0.0, 0.0))
    assert bundle.solve(1e-9).lower_bound > together.solve(1e-9).lower_bound


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4), st.integers(4, 8), st.booleans())
def test_slots_follow_merged_and_dropped_cuts(seed, blocks, max_cuts, grows):
    rng = np.random.default_rng(seed)
    bundle = BlockBundle(3, 10.0, max_cuts, 2 * max_cuts if grows else max_cuts, blocks)
    kept = np.zeros((blocks, 2 * max_cuts, 3))
    each = np.arange(blocks)
    for _ in range(14):
        bundle.grow(2)
        merges, slots = bundle.make_room(2, keep=2)
        if merges is not None:
            for turn in range(merges.into.shape[1]):
                for k in np.flatnonzero(merges.into[:, turn] >= 0):
                    into, gone, share = (array[k, turn] for array in merges)
                    kept[k, into] = (1 - share) * kept[k, into] + share * kept[k, gone]
        for slot in slots:
            kept[each, slot] = rng.standard_normal((blocks, 3))
            bundle.add(kept[each, slot], rng.uniform(0, 1, blocks), np.zeros((blocks, 2)))
        mixture_before = bundle.saved()["gram"].reshape(blocks, bundle.max_cuts + 1, blocks, bundle.max_cuts + 1)
        cuts = bundle.saved()["vectors"]
        np.testing.assert_allclose(mixture_before, np.einsum("ktd,jsd->ktjs", cuts, cuts), atol=1e-12)
        w, mixture = bundle.solve(1e-9).w, bundle.mixture()
        np.testing.assert_allclose(w, -10.0 * np.einsum("kt,ktd->d", mixture, kept[:, : bundle.max_cuts]), atol=1e-12)
        assert len(bundle) <= blocks * bundle.max_cuts


@pytest.mark.parametrize(("lanes", "wanted"), [(1, 16), (3, 16), (5, 4), (8, 8), (6, 64)])
def test_every_row_is_in_one_block_of_its_lane(lanes, wanted):
    rows = 5000
    bounds = tuple(rows * lane // lanes for lane in range(lanes + 1))
    blocks = Blocks.of(Lanes(bounds), wanted)
    sizes = np.zeros(blocks.count, np.int64)
    owners = [set() for _ in range(blocks.count)]
    for row in range(rows):
        first, own = blocks.first_of(row), blocks.rows(row)
        block = first + own.first_row // own.piece % own.each
        sizes[block] += 1
        owners[block].add(int(np.searchsorted(bounds, row, side="right")))
    assert sizes.sum() == rows
    assert sizes.min() > 0
    assert sizes.max() <= blocks.most_rows <= sizes.max() + 2 * PIECE
    assert blocks.each == 1 or all(len(lane) == 1 for lane in owners)
    assert blocks.count <= max(wanted, lanes)


@pytest.mark.parametrize(
    ("rows", "features", "row_entries", "wanted"),
    [
        (32_561, 123, 14, 64),
        (10**8, 100, 100, 64),
        (100, 10, 10, 1),
        (300, 10, 10, 4),
        (200_000, 50_000, 60, 1),
        (10**6, 3 * 10**6, 80, 1),
    ],
)
def test_how_many_blocks_there_are(rows, features, row_entries, wanted):
    class Statistics:
        n_rows, nnz, n_features = rows, rows * row_entries, features

    lanes, options = Lanes((0, rows // 2, rows)), TrainOptions()
    assert blocks_wanted(options, Statistics(), lanes, features, 16) == wanted
    assert blocks_wanted(options, Statistics(), Lanes((0, rows)), features, 16) == 1
    assert blocks_wanted(TrainOptions(l1=1.0), Statistics(), lanes, features, 16) == 1


CHOICES = tuple(Blocked(blocks, 8, 8, 1, 30_000 * blocks) for blocks in (16, 8, 4, 2))


@pytest.mark.parametrize(
    ("budget", "cache", "found"),
    [(10**7, 0, (16, 8)), (1_300_000, 0, (4, 8)), (10**4, 0, (1, 12)), (10**7, 10**7, (1, 12))],
)
def test_memory_decides_how_many_there_are(budget, cache, found):
    def plan(needs):
        lines = (("all", 1000), *needs.more)
        needed = sum(size for _, size in lines)
        if needed > budget:
            raise MemoryBudgetError("too little")
        return MemoryPlan(budget, lines, frozenset(), 0, row_cache=cache // 4 if needs.blocks > 1 else cache)

    plan = Needs(dimension=100, max_cuts=12, most_cuts=12, preferred=CHOICES).planned(1000, budget, plan)
    assert (plan.blocks, plan.max_cuts) == found


def noisy(rows, seed=0, features=12):
    rng = np.random.default_rng(seed)
    X = sp.random_array((rows, features), density=0.5, format="csr", rng=rng, data_sampler=rng.standard_normal)
    return X, np.where(X @ rng.standard_normal(features) + rng.standard_normal(rows) > 0.0, 1.0, -1.0)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared-hinge", "huber", "quantile"])
@pytest.mark.parametrize("row_cache", ["0", "30%"])
def test_certificates_of_many_blocks_hold(loss, row_cache):
    X, y = noisy(1500)
    task = "regression" if loss in ("huber", "quantile") else "binary"
    model = train(
        MemoryDataset(X, y), task=task, loss=loss, C=3.0, row_cache=row_cache, lanes=3, scheduler="sync", tol=1e-5, max_passes=300
    )
    assert model.certificate.converged
    assert verify(model, (X, y)).consistent


def test_lanes_with_blocks_take_hardly_more_passes():
    X, y = noisy(6000)
    data = MemoryDataset(X, y)
    for row_cache, most in (("0", 1.35), ("30%", 2.0)):
        passes = [
            train(data, C=1.0, row_cache=row_cache, lanes=lanes, scheduler="sync", tol_relative=None).history[-1]["passes"]
            for lanes in (1, 8, 32)
        ]
        assert max(passes) <= most * passes[0] + 1, passes


def test_the_same_bits_on_threads_in_any_shards_and_after_a_resume(tmp_path):
    X, y = noisy(3000, 2)
    common = {"C": 10.0, "lanes": 4, "max_passes": 25, "tol": 1e-9, "row_cache": "25%"}
    alone = train(MemoryDataset(X, y), scheduler="sync", **common)
    threads = train(MemoryDataset(X, y, shard_nnz=3000), workers=3, **common)
    place = str(tmp_path / "c")
    train(MemoryDataset(X, y), scheduler="sync", checkpoint=place, **{**common, "max_passes": 11})
    resumed = train(MemoryDataset(X, y), scheduler="sync", checkpoint=CheckpointOptions(place, resume=True), **common)
    assert alone.weights.tobytes() == threads.weights.tobytes() == resumed.weights.tobytes()
    assert alone.certificate == threads.certificate == resumed.certificate
