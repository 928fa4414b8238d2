"""What a run shows while it goes: lines, JSON, a table on a terminal, and when it will be done."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamcut.cli import progress
from streamcut.cli.eta import Eta
from streamcut.io.memory import MemoryDataset
from streamcut.solvers.progress import Iteration
from streamcut.training import train

ITERATION = Iteration(3, 4, 2.5, 2.0, 0.5, 1.0, 7, 2.0, 100, 1000, 4_000_000, 0.25, 6_000_000, 0.1)


@dataclass(frozen=True, slots=True)
class Epoch:
    """What a solver without a certificate may report."""

    epoch: int
    seconds: float
    error: float = math.inf

    def columns(self) -> dict[str, str]:
        return {"epoch": f"{self.epoch}"}


def feed(points, allowed) -> float | None:
    eta, left = Eta(), None
    for seconds, gap in points:
        left = eta.after(seconds, gap, allowed)
    return left


@given(
    rate=st.floats(1e-3, 2.0),
    gap=st.floats(1e-6, 1e6),
    times=st.lists(st.floats(0.01, 10.0), min_size=4, max_size=30),
    missing=st.floats(0.1, 50.0),
)
@settings(max_examples=60, deadline=None)
def test_a_gap_that_falls_at_one_rate_is_foretold(rate, gap, times, missing):
    at = np.cumsum(times)
    gaps = gap * np.exp(-rate * (at - at[-1]))
    assert feed(zip(at, gaps, strict=True), gap * math.exp(-missing)) == pytest.approx(missing / rate, rel=1e-6)


def test_a_few_iterations_out_of_line_change_little():
    at = np.arange(1.0, 13.0)
    gaps = np.exp(-0.5 * at)
    true = math.log(gaps[-1] / 1e-6) / 0.5
    gaps[3] *= 30.0
    gaps[7] *= 0.03
    assert feed(zip(at, gaps, strict=True), 1e-6) == pytest.approx(true, rel=0.15)
    at[6:] += 40.0  # a disk that was busy
    assert feed(zip(at, np.exp(-0.5 * np.arange(1.0, 13.0)), strict=True), 1e-6) < 10 * true


def test_it_follows_a_rate_that_changes():
    at = np.arange(40.0)
    gaps = np.exp(-np.where(at < 20, at, 20 + 0.1 * (at - 20)))
    assert feed(zip(at, gaps, strict=True), 1e-12) == pytest.approx(math.log(gaps[-1] / 1e-12) / 0.1)


@pytest.mark.parametrize(
    ("points", "allowed"),
    [
        ([], 0.1),
        ([(1.0, 8.0), (2.0, 4.0), (3.0, 2.0)], 0.1),  # too few
        ([(t, 1.0) for t in range(9)], 0.1),
        ([(t, 1.0 + t) for t in range(9)], 0.1),
        ([(t, 1.0 - 1e-12 * t) for t in range(9)], 0.1),  # in a thousand years
        ([(t, math.exp(-t)) for t in range(9)], 0.0),  # no tolerance
        ([(5.0, math.exp(-t)) for t in range(9)], 1e-9),  # a clock that stands still
        ([(t, math.inf) for t in range(9)], 0.1),
    ],
)
def test_what_cannot_be_told_is_not(points, allowed):
    assert feed(points, allowed) is None


def test_nothing_is_left_at_the_tolerance():
    assert feed([(t, math.exp(-t)) for t in range(9)], 0.01) == 0.0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0 s"), (59.6, "1 min"), (61, "1 min 1 s"), (3600, "1 h"), (3725, "1 h 2 min"), (90000, "1 d 1 h"), (86405, "1 d")],
)
def test_durations(seconds, text):
    assert progress.duration(seconds) == text


def test_each_style_prints_where_it_should(capsys, monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0.0)
    for style, out, err in (("lines", 0, 1), ("json", 1, 0), ("quiet", 0, 0)):
        with progress.Progress(style) as show:
            show(ITERATION)
        shown = capsys.readouterr()
        assert (shown.out.count("\n"), shown.err.count("\n")) == (out, err)
    monkeypatch.setattr(progress, "EVERY", 30.0)
    with progress.Progress("lines") as show:
        show(ITERATION)
    assert capsys.readouterr().err == ""


def test_a_line_tells_all_there_is(capsys, monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0.0)
    with progress.Progress("lines") as show:
        for k in range(6):
            show(replace(ITERATION, iteration=k, gap=0.5 * 2.0**-k + 0.1, seconds=2.0 + 60 * k))
    last = capsys.readouterr().err.splitlines()[-1]
    for part in ("iteration 5", "passes 4", "primal 2.5", "bound 2", "gap 0.116 of 0.1", "from memory 25 %", "time 5 min 2 s"):
        assert part in last
    assert "left about" in last
    shown = ITERATION.columns()
    assert (shown["read"], shown["computed"]) == ("2.00 MB/s", "3.00 MB/s")


def test_json_has_the_estimate_and_only_what_json_can_say(capsys):
    with progress.Progress("json") as show:
        for k in range(5):
            show(replace(ITERATION, gap=2.0**-k, seconds=10.0 * k, allowed_gap=2.0**-6))
        show(Epoch(1, 2.0))
    *_, before, last, epoch = map(json.loads, capsys.readouterr().out.splitlines())
    assert before["eta_seconds"] == pytest.approx(30.0)
    assert last["eta_seconds"] == pytest.approx(20.0)
    assert last["event"] == epoch["event"] == "iteration"
    assert epoch == {"event": "iteration", "epoch": 1, "seconds": 2.0, "error": None, "eta_seconds": None}


def test_records_of_other_solvers_are_shown(capsys, monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0.0)
    with progress.Progress("lines") as show:
        show(Epoch(2, 75.0))
    assert capsys.readouterr().err == "epoch 2  time 1 min 15 s\n"


def test_a_table_on_a_terminal(capsys):
    from rich.console import Console

    with progress.Progress("live") as show:
        show(ITERATION)
    console = Console(width=120, record=True)
    console.print(progress.table(progress.columns(ITERATION, 3725.0)))
    names, texts = console.export_text().splitlines()
    assert " ".join(names.split()) == "iteration passes primal bound gap cuts read computed from memory time left"
    assert texts.rstrip().endswith("about 1 h 2 min")


def test_rows_are_computed_in_every_pass_and_read_once():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 6)), np.where(rng.random(300) < 0.5, 1.0, -1.0)
    seen = []
    model = train(MemoryDataset(X, y, shard_nnz=500), on_iteration=seen.append, max_passes=5, tol=1e-9, tol_relative=None)
    size = seen[0].bytes_computed
    assert size == seen[0].bytes_read == seen[-1].bytes_read
    assert [line.bytes_computed for line in seen] == [size * line.passes for line in seen]
    assert seen[-1].allowed_gap == pytest.approx(1e-9 * 300)
    assert model.history[-1]["allowed_gap"] == seen[-1].allowed_gap
