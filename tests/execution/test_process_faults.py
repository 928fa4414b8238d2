"""What a shell does to a process: streams that are closed or full, few descriptors, limits of memory, a terminal that goes."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import streamcut
from streamcut import load_model

pytestmark = pytest.mark.process


STREAMCUT = f"{shlex.quote(sys.executable)} -c 'from streamcut.cli import main; main()'"
TRAIN = "train rows.zarr -o new.npz --solver ocas --max-passes 2"


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    rng = np.random.default_rng(0)
    drawn = zip(rng.choice([-1, 1], 200), rng.random(200), rng.integers(2, 9, 200), strict=True)
    rows = [f"{y} 1:{y * x:.3f} {k}:1\n" for y, x, k in drawn]
    (folder / "rows.svm").write_text("".join(rows))
    streamcut.convert(folder / "rows.svm", folder / "rows.zarr", shard_nnz=100)
    streamcut.save_model(streamcut.train(str(folder / "rows.zarr"), solver="ocas", max_passes=2), folder / "m.npz")
    return folder


@pytest.fixture
def folder(made, tmp_path) -> Path:
    for path in made.iterdir():
        (tmp_path / path.name).symlink_to(path)
    return tmp_path


def shell(folder: Path, line: str) -> subprocess.CompletedProcess:
    """`line` in a shell, where {} is streamcut."""
    return subprocess.run(["bash", "-c", line.replace("{}", STREAMCUT)], cwd=folder, capture_output=True, text=True, timeout=120)


# --- few descriptors ---


@pytest.mark.parametrize("line", [TRAIN, "convert rows.svm new.zarr --shard-nnz 20", "predict m.npz rows.zarr"])
def test_few_descriptors_are_enough_or_named(folder, line):
    found = shell(folder, f"ulimit -n 16; {{}} {line}")
    assert (found.returncode, "Traceback" in found.stderr) == (0, False), found.stderr


# --- limits of memory from the start ---


@pytest.mark.parametrize(("option", "kilobytes"), [("d", 20_000), ("d", 120_000), ("v", 100_000), ("v", 300_000)])
def test_too_little_memory_from_the_start(folder, option, kilobytes):
    """Libraries would abort, or spin."""
    found = shell(folder, f"ulimit -{option} {kilobytes}; {{}} {TRAIN}")
    assert found.returncode == 7, found.stderr
    assert re.fullmatch(rf"streamcut: `ulimit -{option}` allows this process .* \(in kB: \d+\) or more\n", found.stderr)


def test_what_it_names_is_enough_to_start(folder):
    least = re.search(r"in kB: (\d+)", shell(folder, "ulimit -d 20000; {} info rows.zarr").stderr)[1]
    assert shell(folder, f"ulimit -d {least}; {{}} info rows.zarr").returncode == 0
    found = shell(folder, f"ulimit -d {least}; {{}} {TRAIN}")
    assert (found.returncode in (0, 7), "Traceback" in found.stderr) == (True, False), found.stderr


# --- the terminal goes ---


def training(folder: Path, prefix: str = "") -> subprocess.Popen:
    """One that goes on for long, after its first iteration."""
    options = "--solver ocas --tol 0 --tol-relative 0 --max-time 100s --json --checkpoint run"
    line = f"{prefix} {STREAMCUT} train rows.zarr -o new.npz {options}"
    process = subprocess.Popen(
        ["bash", "-c", f"exec {line}"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # these tests may run under nohup themselves
    )
    while json.loads(process.stdout.readline())["event"] != "iteration":
        pass
    return process


def test_hang_up_ends_training_in_good_order(folder):
    with training(folder) as process:
        process.send_signal(signal.SIGHUP)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, "Traceback" in err) == (129, False), err
    assert load_model(folder / "new.npz").certificate.stop_reason == "interrupted"
    assert any(name.endswith(".npz") or "checkpoint" in name for name in os.listdir(folder / "run"))


def test_nohup_is_respected(folder):
    with training(folder, "nohup") as process:
        process.send_signal(signal.SIGHUP)
        process.stdout.readline()
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 143


KILL = "os.kill(os.getpid(), {})"
LATE = {  # while the interpreter takes itself down it has no handlers of ours any more
    "at exit": "import atexit; atexit.register(lambda: {})",
    "in the end": "class Late:\n    def __del__(self, os=os): {}\nlate = Late()",
}
DROPPED = {  # where no exception can be raised; the signal comes again, and ends what comes after
    "a callback from C": "import ctypes; ctypes.CFUNCTYPE(None)(lambda: {})()",
    "a destructor": "class Late:\n    def __del__(self): {}\nLate()",
}
SIGNALS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated", signal.SIGHUP: "hung up"}


def python(script: str) -> subprocess.CompletedProcess:
    def hang_up() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)

    return subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, timeout=60, preexec_fn=hang_up)


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("late", LATE)
def test_a_signal_after_the_work_is_done_changes_nothing(number, late):
    how = LATE[late].format(KILL.format(int(number)))
    done = python(f"import os\n{how}\nfrom streamcut.cli import main\nmain(['--version'])")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("streamcut")


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("where", DROPPED)
def test_a_signal_that_python_drops_comes_again(number, where):
    how = DROPPED[where].format(KILL.format(int(number)))
    work = f"import os, time\nfrom streamcut import cli\ndef work(*_, **__):\n    exec({how!r})\n    time.sleep(50)\n"
    done = python(f"{work}cli.cli.invoke = work\ncli.main(['info', 'x'])")
    assert (done.returncode, done.stderr) == (128 + number, f"streamcut: {SIGNALS[number]}\n")


# --- pipes nobody reads, full streams ---


@pytest.mark.parametrize(
    ("line", "code", "said", "creates"),
    [
        ("set -o pipefail; {} predict m.npz rows.svm | true", 141, "", None),
        (f"{{}} {TRAIN} 2>/dev/full", 0, "", "new.npz"),
        ("{} predict m.npz rows.svm >/dev/full", 8, "No space left", None),
        ("ulimit -f 0; {} predict m.npz rows.svm -o labels.txt", 8, "File too large", None),
    ],
)
def test_closed_and_full_streams(folder, line, code, said, creates):
    before = {path.name for path in folder.iterdir()}
    found = shell(folder, line)
    err = found.stderr.removeprefix("compiling kernels (first use; this run may take 150 MB more than its memory budget)…\n")
    assert (found.returncode, "Traceback" in err, said in err) == (code, False, True), err
    assert err.count("\n") == bool(said)
    assert {path.name for path in folder.iterdir()} - before == ({creates} if creates else set())
    if creates:
        load_model(folder / creates)


def test_what_else_python_drops_is_shown_as_ever():
    script = "from streamcut.cli import signals\nsignals.install()\nclass Late:\n    def __del__(self): 1 / 0\nLate()"
    assert "ZeroDivisionError" in python(script).stderr
