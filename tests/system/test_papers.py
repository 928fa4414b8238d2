"""Experiments of papers in pieces: what a killed run leaves is whole, and is not done again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from kit.waiting import until

pytestmark = [pytest.mark.smoke, pytest.mark.process]

PAPERS = Path(__file__).resolve().parents[2] / "scripts" / "papers"
SCRIPT = """
import json, pathlib, sys, time
out, name = pathlib.Path(sys.argv[2]), sys.argv[3]
(out / "begun").write_text(name)
with open(out.parents[1] / "log", "a") as log:
    log.write(name + "\\n")
(out / "table.json").write_text(json.dumps({"result": 1, "facts": []})[: 5 if (out.parents[1] / "block").exists() else None])
while (out.parents[1] / "block").exists() and name == "second":
    (out.parents[1] / "blocked").touch()
    time.sleep(0.01)
sys.exit(3 if (out.parents[1] / "fail").exists() else 0)
"""
RUN = """
import sys
from pathlib import Path
import reproduce_pieces as pieces
out = Path(sys.argv[1])
pieces.HERE, pieces.SCRIPTS["ocas"] = out, "script.py"
those = [pieces.Piece("ocas", name, (name,)) for name in ("first", "second", "third")]
print(pieces.run_all(those, out, budget=float(sys.argv[2]) if len(sys.argv) > 2 else None))
"""


@pytest.fixture
def out(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    return tmp_path


def start(out: Path, *more: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(PAPERS)}
    command = [sys.executable, "-P", "-c", RUN, str(out), *more]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def done(out: Path) -> list[str]:
    return sorted(path.name for path in (out / "ocas").glob("*"))


def begun(out: Path) -> list[str]:
    return (out / "log").read_text().split()


@pytest.mark.parametrize("whole_group", [True, False])  # its script, too, or its script goes on alone
def test_a_killed_run_goes_on_with_the_piece_that_it_was_at(out, whole_group):
    (out / "block").touch()
    killed = start(out)
    until(lambda: (out / "blocked").exists() or killed.poll() is not None, "the second piece")
    (os.killpg if whole_group else os.kill)(killed.pid, signal.SIGKILL)
    killed.communicate() if whole_group else killed.wait()
    assert done(out) == ["first"]
    (out / "block").unlink()
    resumed = start(out)
    told, errors = resumed.communicate()
    assert (resumed.returncode, errors) == (0, "")
    assert told.splitlines()[-1] == "0"
    assert done(out) == ["first", "second", "third"]
    assert begun(out) == ["first", "second", "second", "third"]
    for name in ("second", "third"):
        assert json.loads((out / "ocas" / name / "table.json").read_text())["result"] == 1
    assert list((out / "unfinished").iterdir()) == []


def test_a_spent_budget_begins_no_piece(out):
    told, _ = start(out, "-1").communicate()
    assert told.splitlines()[-1] == "3"
    assert not (out / "log").exists()


def test_a_script_that_fails_is_told_with_its_log(out):
    (out / "fail").touch()
    _, errors = (run := start(out)).communicate()
    assert run.returncode == 1
    assert "ended with 3" in errors
    assert "log.txt" in errors
    assert done(out) == []


def test_no_two_pieces_have_one_folder():
    sys.path.insert(0, str(PAPERS))
    try:
        import reproduce_pieces
    finally:
        sys.path.remove(str(PAPERS))
    for pieces in (reproduce_pieces.whole(), reproduce_pieces.quick()):
        names = [(piece.paper, piece.name) for piece in pieces]
        assert len(set(names)) == len(names)
        assert {paper for paper, _ in names} == set(reproduce_pieces.SCRIPTS)
