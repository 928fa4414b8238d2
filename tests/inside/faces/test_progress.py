"""What a run shows while it goes: lines, JSON, a table on a terminal."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import streamcut.progress as display
from streamcut import train
from streamcut.progress import Display
from streamcut.solvers.progress import Iteration

ITERATION = Iteration(3, 4, 2.5, 2.0, 0.5, 1.0, 7, 2.0, 100, 1000, 4_000_000, 0.25, 6_000_000, 0.1)


def test_a_line_tells_all_there_is(capsys, monkeypatch):
    monkeypatch.setitem(display.EVERY, "lines", 0.0)
    with Display("lines") as show:
        for k in range(6):
            show(replace(ITERATION, iteration=k, gap=0.5 * 2.0**-k + 0.1, seconds=2.0 + 60 * k))
    last = capsys.readouterr().err.splitlines()[-1]
    parts = ("iteration 5", "passes 4", "primal 2.5", "bound 2", "gap 0.12", "allowed 0.1", "from memory 25 %", "time 5 min 2 s")
    assert [part for part in (*parts, "left ") if part not in last] == []
    shown = ITERATION.columns()
    assert (shown["read"], shown["computed"]) == ("2.00 MB/s", "3.00 MB/s")


def test_json_has_the_estimate_and_only_what_json_can_say(capsys):
    with Display("json") as show:
        for k in range(5):
            show(replace(ITERATION, gap=2.0**-k, seconds=10.0 * k, allowed_gap=2.0**-6, primal=np.inf))
    *_, before, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert (before["eta_seconds"], last["eta_seconds"]) == (pytest.approx(30.0), pytest.approx(20.0))
    assert (last["event"], last["primal"]) == ("iteration", None)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_lines_on_a_terminal_stay_and_fit(monkeypatch, capsys, width):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setitem(display.EVERY, "live", 0.0)
    numbers = {"lower_bound": -1.5e-7, "gap": 0.2}
    with Display("live") as show:
        for k in range(1, 9):
            show(replace(ITERATION, passes=k, seconds=2.0 + 60 * k, primal=12345.678 / k, **numbers))
    lines = [line.removeprefix("\x1b[K") for line in capsys.readouterr().err.splitlines()]
    lines = [line for line in lines if line.startswith("passes ")]
    assert len(lines) == 8
    assert all(len(line) <= width and "  time " in line for line in lines)
    assert lines[0].startswith("passes 1  primal 1.235e+04" if width > 40 else "passes 1  time")


def test_a_notebook_shows_a_training_where_it_is_asked(capsys):
    X = np.random.default_rng(0).standard_normal((60, 3))
    with Display("notebook") as show:
        train((X, np.sign(X[:, 0])), max_passes=2, progress=show)
    assert "primal" in capsys.readouterr().out


INTERRUPTED = """
import os, signal, warnings
import numpy as np
import streamcut
def interrupt(record):
    if record.iteration == 3:
        os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start what runs with them with it ignored
X = np.random.default_rng(0).standard_normal((300, 8))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model = streamcut.train((X, np.arange(300) % 2), C=1e4, tol=1e-12, tol_relative=None, on_iteration=interrupt)
print(model.stop_reason, len(model.history) < 20, [str(each.message) for each in caught])
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""


@pytest.mark.process
def test_ctrl_c_in_python_gives_the_best_model_with_a_warning():
    done = subprocess.run([sys.executable, "-P", "-c", INTERRUPTED], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout == "interrupted True ['training was interrupted; the model is the best so far']\n"
