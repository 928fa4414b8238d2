"""What a run shows while it goes: lines, JSON, a table on a terminal."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest

import streamcut
import streamcut.progress as display
from streamcut import train
from streamcut.progress import Display
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
