"""One group larger than memory: whatever room there is to sort, the same bits as with all of it."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.multivariate import LOSSES
from kit.multivariate import problem as two_classes
from kit.nights import by_night
from kit.ranking import bits, problem
from reference import pairs as slow
from reference.one_group import evaluated_by_ranges

import streamcut
from streamcut import train
from streamcut.jobs.global_risk import GlobalJob
from streamcut.losses.multivariate import Multivariate
from streamcut.losses.pairs import Pairs, PairsOfLevels
from streamcut.oracles import groups, row_blocks
from streamcut.oracles.row_blocks import RowBlocks
from streamcut.oracles.sorted_scores import SortedScores

ROOMS = [1, 2, 5, 17, 200, None]
rounded = st.sampled_from([-1.0, -0.5, 0.0, -0.0, 0.25, 0.5, 1.0, 1.5, 2.0])
near_margin = st.sampled_from([0.3, 1.3, np.nextafter(1.3, 2), np.nextafter(1.3, 1), 1e-17, 1.0, np.nextafter(1.0, 0), -1e-300])
rows = st.tuples(st.sampled_from([-2.0, 0.0, 1.0, 7.5]), st.one_of(rounded, near_margin, st.floats(-2, 2), st.floats(-1e6, 1e6)))


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of few rows, so that small problems have many."""
    for module in (groups, row_blocks):
        monkeypatch.setattr(module, "BLOCK_ROWS", 50)


@settings(max_examples=150, deadline=None)
@given(st.lists(rows, min_size=2, max_size=25), st.sampled_from(ROOMS))
def test_counts_by_ranges_equal_the_list_of_all_pairs(found, room):
    y, scores = (np.array(column) for column in zip(*found, strict=True))
    y[:2] = 0.0, 1.0
    listed = slow.all_pairs(y)
    risk = PairsOfLevels(tuple(np.unique(y)))
    loss, coefficients, offset = evaluated_by_ranges(risk, y, scores, room)
    active = np.array([scores[i] - scores[j] < 1.0 for i, j in listed])
    factor = 1.0 / len(listed)
    counts = np.zeros(len(y))
    for i, j in np.array(listed)[active]:
        counts[i] -= 1
        counts[j] += 1
    np.testing.assert_array_equal(coefficients, counts * factor)
    assert offset == active.sum() * factor
    hinges = [1.0 - (scores[i] - scores[j]) for i, j in np.array(listed)[active]]
    assert loss == pytest.approx(sum(hinges) * factor, rel=1e-12, abs=1e-9 * np.abs(scores).max() / 1e6)


@pytest.mark.thirds
@pytest.mark.parametrize("levels", [2, 3, 6, 40])
@pytest.mark.parametrize("ties", [1, 3, 12])
def test_the_same_bits_in_any_room(levels, ties, small_blocks):
    rng = np.random.default_rng(levels)
    y, scores = rng.integers(0, levels, 700).astype(float), np.round(rng.standard_cauchy(700), ties)
    y[:levels] = np.arange(levels)
    risk = PairsOfLevels(tuple(range(levels)))
    whole = evaluated_by_ranges(risk, y, scores)
    for room, workers in ((1, 1), (40, 2), (300, 2), (699, 1), (2000, 1), (4000, 1)):
        loss, coefficients, offset = evaluated_by_ranges(risk, y, scores, room, workers=workers)
        assert (loss, offset) == (whole[0], whole[2])
        assert coefficients.tobytes() == whole[1].tobytes()
    codes, starts, out = np.empty(700, np.int32), np.array([0, 700]), np.empty(700)
    Pairs().encode(y, starts, codes)
    weights = Pairs().weights(Pairs().sizes(codes, starts))
    sums = Pairs().evaluate(codes, starts, weights, scores, out)
    np.testing.assert_array_equal(whole[1], out)  # with one sort and a tree
    assert whole[2] == pytest.approx(sums[1].sum(), rel=1e-15)
    assert whole[0] == pytest.approx(sums[0].sum(), rel=1e-13)


@pytest.mark.parametrize(("loss", "k"), [("error", 0), ("f1", 0), ("prbep", 0), ("prec@k", 30), ("rec@k", 350), ("prec@k", 650)])
@pytest.mark.parametrize("ties", [1, 12])
def test_the_same_worst_labelling_in_any_room(loss, k, ties, small_blocks):
    rng = np.random.default_rng(3)
    truth, scores = (rng.random(700) < 0.3).astype(float), np.round(rng.normal(0, 2, 700), ties)
    whole = evaluated_by_ranges(Multivariate(loss, 1.0, k), truth, scores)
    for room, workers in ((2, 1), (40, 2), (300, 2), (699, 1)):
        risk, coefficients, offset = evaluated_by_ranges(Multivariate(loss, 1.0, k), truth, scores, room, workers=workers)
        assert (risk, offset) == (whole[0], whole[2])
        assert coefficients.tobytes() == whole[1].tobytes()


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.one_of(rounded, st.floats(allow_nan=False, allow_infinity=False)), min_size=1, max_size=40), st.integers(1, 50)
)
def test_streams_are_sorted_and_never_hold_more_than_their_room(found, room):
    scores = np.array(found)
    rows = {"z": scores, "code": (np.arange(len(scores)) % 2).astype(np.int8)}
    counts = np.bincount(rows["code"], minlength=2)
    blocks = RowBlocks(len(scores), lambda: rows, lambda *_: None)
    held = SortedScores(blocks, None, counts, room, known=None, apart=True)
    assert sum(held.inside.max(axis=0)) <= room
    for c in (0, 1):
        expected = np.sort(scores[rows["code"] == c])
        for skip in (0, 1, len(expected) // 2):
            up = list(held.stream(c, descending=False, skip=skip))
            down = [piece[::-1] for piece in held.stream(c, descending=True, skip=skip)]
            np.testing.assert_array_equal(np.concatenate([[], *up]), expected[skip:])
            np.testing.assert_array_equal(np.concatenate([[], *down]), expected[::-1][skip:])
            assert all(0 < len(piece) <= room for piece in up + down)


@pytest.fixture
def little_room(monkeypatch):
    """A function that lets jobs sort so many scores at once."""

    def limit(scores):
        plain = GlobalJob.trainer
        little = {"row_cache": 9 * scores}
        monkeypatch.setattr(GlobalJob, "trainer", lambda job, runner, plan: plain(job, runner, replace(plan, **little)))

    return limit


TASKS = [{"task": "ranking"}, *({"loss": loss, "k": k} for loss, k in LOSSES)]

NIGHTLY = [each for each in TASKS if each.get("loss") in ("prbep", "rec@k")]


@pytest.mark.thirds
@pytest.mark.parametrize(
    "options",
    by_night(TASKS, NIGHTLY),
    ids=lambda options: "-".join(str(value) for value in options.values()),
)
def test_training_in_little_room_gives_the_same_bits(options, small_blocks, little_room):
    X, y = problem(400, 15, levels=6)[:2] if "task" in options else two_classes(400, 15)
    options = {**options, "C": 0.3, "max_passes": 30, "workers": 2}
    expected = bits(train(streamcut.rows(X, y), **options))
    little_room(60)
    assert bits(train(streamcut.rows(X, y), **options)) == expected


IN_LEAST_MEMORY = """
import json, re, sys
from streamcut.errors import MemoryBudgetError
from streamcut.oracles import one_group
from streamcut.training import train

one_group._LEAST_ROOM = 1 << 20
options = json.loads(sys.argv[2])
try:
    train(sys.argv[1], memory="1MB", **options)
except MemoryBudgetError as error:
    refusal = str(error)
model = train(sys.argv[1], memory=re.search(r"at least (\\d+MB)", refusal)[1], **options)
print(json.dumps({**model.resources, "refusal": refusal, "lower_bound": model.certificate.lower_bound}))
"""


def test_a_long_group_trains_in_its_least_memory(tmp_path):
    """Half a million rows take 4.5 MB to sort, of which the least has 1."""
    n, folder = 500_000, tmp_path / "rows.zarr"
    rng = np.random.default_rng(0)
    X = np.ones((n, 1), np.float32) * rng.standard_normal((n, 1), dtype=np.float32)
    y = (X[:, 0] + rng.standard_normal(n, dtype=np.float32) > 1).astype(float)
    with streamcut.create(folder, 1, shard_nnz=1 << 18) as out:
        out.append(X, y)
    options = {"task": "roc-area", "max_cuts": 20, "max_passes": 3}
    whole = train(str(folder), **options)  # its kernels are compiled by now
    line = [sys.executable, "-P", "-c", IN_LEAST_MEMORY, str(folder), json.dumps(options)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert "sorting: 1.05 MB" in result["refusal"]
    assert result["peak"] <= result["planned"] <= result["budget"]
    assert whole.certificate.lower_bound == result["lower_bound"]
