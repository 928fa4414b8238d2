"""What a run shows while it goes: lines, JSON, a table on a terminal, and when it will be done."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.waiting import until

import streamcut
from streamcut import train
from streamcut.execution.feed import Feed
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.passes import Pass
from streamcut.execution.runner import Going, Runner
from streamcut.progress import display
from streamcut.progress.display import Display, Eta
from streamcut.solvers.progress import Iteration

pytestmark = pytest.mark.process

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


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0.2 s"), (9.96, "10 s"), (59.6, "1 min"), (61, "1 min 1 s"), (3600, "1 h"), (3725, "1 h 2 min"), (86405, "1 d")],
)
def test_durations(seconds, text):
    assert display.duration(seconds) == text


def test_each_style_prints_where_it_should(capsys, monkeypatch):
    monkeypatch.setitem(display.EVERY, "lines", 0.0)
    for style, out, err in (("lines", 0, 1), ("json", 1, 0), ("quiet", 0, 0)):
        with Display(style) as show:
            show(ITERATION)
        shown = capsys.readouterr()
        assert (shown.out.count("\n"), shown.err.count("\n")) == (out, err)
    monkeypatch.setitem(display.EVERY, "lines", 30.0)
    with Display("lines") as show:
        show(ITERATION)
    assert capsys.readouterr().err == ""


def test_a_line_tells_all_there_is(capsys, monkeypatch):
    monkeypatch.setitem(display.EVERY, "lines", 0.0)
    with Display("lines") as show:
        for k in range(6):
            show(replace(ITERATION, iteration=k, gap=0.5 * 2.0**-k + 0.1, seconds=2.0 + 60 * k))
    last = capsys.readouterr().err.splitlines()[-1]
    parts = ("iteration 5", "passes 4", "primal 2.5", "bound 2", "gap 0.12", "allowed 0.1", "from memory 25 %", "time 5 min 2 s")
    for part in parts:
        assert part in last
    assert "left " in last
    shown = ITERATION.columns()
    assert (shown["read"], shown["computed"]) == ("2.00 MB/s", "3.00 MB/s")


def test_json_has_the_estimate_and_only_what_json_can_say(capsys):
    with Display("json") as show:
        for k in range(5):
            show(replace(ITERATION, gap=2.0**-k, seconds=10.0 * k, allowed_gap=2.0**-6))
        show(Epoch(1, 2.0))
    *_, before, last, epoch = map(json.loads, capsys.readouterr().out.splitlines())
    assert before["eta_seconds"] == pytest.approx(30.0)
    assert last["eta_seconds"] == pytest.approx(20.0)
    assert last["event"] == epoch["event"] == "iteration"
    assert epoch == {"event": "iteration", "epoch": 1, "seconds": 2.0, "error": None, "eta_seconds": None}


def test_records_of_other_solvers_are_shown(capsys, monkeypatch):
    monkeypatch.setitem(display.EVERY, "lines", 0.0)
    with Display("lines") as show:
        show(Epoch(2, 75.0))
    assert capsys.readouterr().err == "epoch 2  time 1 min 15 s\n"


def on_terminal(monkeypatch, capsys, width: int, records) -> list[str]:
    """What stays on a terminal of `width` columns, line by line."""
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("LINES", "24")
    monkeypatch.setitem(display.EVERY, "live", 0.0)
    with Display("live") as show:
        for record in records:
            show(record)
    return [line.removeprefix("\x1b[K") for line in capsys.readouterr().err.splitlines()]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_lines_on_a_terminal_stay_and_fit(monkeypatch, capsys, width):
    records = [
        replace(ITERATION, passes=k, gap=0.5 * 2.0**-k + 0.1, seconds=2.0 + 60 * k, primal=12345.678 / k, lower_bound=-1.5e-7)
        for k in range(1, 9)
    ]
    lines = [line for line in on_terminal(monkeypatch, capsys, width, records) if line.startswith("passes ")]
    assert len(lines) == len(records)
    assert all(len(line) <= width and "  time " in line for line in lines)
    assert lines[0].startswith("passes 1  primal 1.235e+04" if width > 40 else "passes 1  time")


def test_the_last_line_of_a_terminal_says_how_far_the_pass_is(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    show = Display("live")
    show.watch(SimpleNamespace(going=Going(450, 1000, 9.0, 18_000_000_000)))
    show(replace(ITERATION, waits_for="tol 0.001"))
    assert show._status() == "pass 45 %  2.00 GB/s, 11 s  until tol 0.001"
    monkeypatch.setattr(display, "_FRAME", 0.0)
    with show:
        until(lambda: "pass 45 %" in capsys.readouterr().err)
    assert capsys.readouterr().err.endswith("\x1b[K\r")


def test_a_runner_knows_how_far_its_pass_is():
    data = streamcut.rows(np.ones((1000, 3)), np.ones(1000), shard_nnz=300)
    lanes = plan_lanes(data.manifest.statistics, 4)
    seen = []

    class Looks(Pass):
        def visit_chunk(self, partial, rows, chunk):
            seen.append(runner.going)

    with Runner(Feed(data), lanes, 1) as runner:
        assert runner.going is None
        runner.run(Looks())
        assert runner.going is None
    assert [each.of for each in seen] == [1000] * len(seen)
    assert [each.rows for each in seen] == sorted({each.rows for each in seen})
    assert seen[-1].rows == 1000
    assert seen[-1].bytes_computed > seen[0].bytes_computed > 0


def test_a_notebook_gets_plain_lines(capsys, monkeypatch):
    monkeypatch.setitem(display.EVERY, "notebook", 0.0)
    with Display("notebook") as show:
        show(ITERATION)
        show(replace(ITERATION, passes=5))
    shown = capsys.readouterr()
    assert shown.err == ""
    assert [line.split()[:2] for line in shown.out.splitlines()] == [["passes", "4"], ["passes", "5"]]
    assert "\x1b" not in shown.out


def test_the_last_line_is_shown_however_soon_it_came(capsys):
    with Display("notebook") as show:
        for passes in range(1, 9):
            show(replace(ITERATION, passes=passes))
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == ["1", "8"]


def test_training_in_python_shows_itself_where_it_is_asked(capsys):
    rng = np.random.default_rng(0)
    data = streamcut.rows(rng.standard_normal((60, 3)), np.where(rng.random(60) < 0.5, 1.0, -1.0))
    train(data, max_passes=2)
    assert capsys.readouterr() == ("", "")
    with Display("notebook") as show:
        train(data, max_passes=2, progress=show)
    assert "primal" in capsys.readouterr().out


INTERRUPTED = """
import os, signal, sys, warnings
import numpy as np
import streamcut
from streamcut.io.memory import MemoryDataset
rng = np.random.default_rng(0)
data = MemoryDataset(rng.standard_normal((300, 8)), np.where(rng.random(300) < 0.5, 1.0, -1.0))
def interrupt(record):
    if record.iteration == 3:
        os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start what runs beside them with it ignored
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model = streamcut.train(data, C=1e4, tol=1e-12, tol_relative=None, on_iteration=interrupt)
print(model.stop_reason, len(model.history) < 20, [str(each.message) for each in caught])
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""


def test_ctrl_c_in_python_gives_the_best_model_with_a_warning():
    done = subprocess.run([sys.executable, "-P", "-c", INTERRUPTED], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout == "interrupted True ['training was interrupted; the model is the best so far']\n"
