"""What starting costs: the modules that commands load, and what a shell asks for while one types."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("streamcut cali", "calibrate"),
        ("streamcut train --max-pa", "--max-passes"),
        ("streamcut train x --solver b", "bundle-dca bsca bsgd"),
    ],
)
def test_bash_completes_commands_options_and_values(words, answer, tmp_path):
    program = tmp_path / "streamcut"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m streamcut "$@"\n')
    program.chmod(0o755)
    asked = (
        'eval "$(_STREAMCUT_COMPLETE=bash_source streamcut)"; complete -p streamcut > /dev/null || exit 1; '
        f'COMP_WORDS=({words}); COMP_CWORD={len(words.split()) - 1}; _streamcut_completion streamcut; echo "${{COMPREPLY[@]}}"'
    )
    known = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", asked], env=known, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == answer, done.stderr


HEAVY = {
    "zarr",
    "dask",
    "distributed",
    "pandas",
    "pyarrow",
    "sklearn",
    "h5py",
    "anndata",
    "matplotlib",
    "obstore",
    "boto3",
    "ssl",
}

OTHERS = {f"streamcut.{name}" for name in ("jobs.kernel_data", "oracles.kernel_columns", "evaluation", "sklearn")}


def test_commands_on_a_local_store_load_what_they_need(tmp_path):
    """Each of these costs a tenth of a second or more. Numba looks at SciPy's version, and loads no part of it that computes.

    Compilation does, so all commands run in another folder first.
    """
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        (folder / "a.csv").write_text(
            "y,x,z\n" + "".join(f"{row % 2},{row % 5 + row % 2},word {row % 3}\n" for row in range(200))
        )
        (folder / "a.svm").write_text("".join(f"{label} {row % 7 + 1}:0.5 9:1\n" for row in range(50) for label in (1, -1)))
    for command in (
        ["--help"],
        ["convert", "a.svm", "a.zarr"],
        ["train", "a.zarr", "--output", "m.npz"],
        ["train", "a.zarr", "--output", "k.npz", "--solver", "ocas", "--quiet"],
        ["predict", "m.npz", "a.svm"],
        ["info", "a.zarr"],
        ["fit", "a.csv", "--label", "y", "-o", "f.npz", "-q"],
        ["evaluate", "f.npz", "a.csv"],
        ["verify", "m.npz", "a.zarr"],
    ):
        code = f"from contextlib import suppress\nfrom streamcut.cli import main\nwith suppress(SystemExit):\n    main({command})"
        _loaded_by(code, first)
        loaded = _loaded_by(code, second)
        parts = {name for name in loaded if name.startswith(("scipy.sparse", "scipy.linalg", "scipy.special", "scipy.optimize"))}
        needed = {"pyarrow", "streamcut.evaluation"} if "a.csv" in command else OTHERS if command[0] == "verify" else set()
        assert parts | loaded & (HEAVY | OTHERS) <= needed, command
        own = len([name for name in loaded if name.split(".")[0] == "streamcut"])
        assert own <= (330 if needed else 200), command
        assert not loaded & {"numba", "numpy"} or command != ["--help"]
        assert "numba" not in loaded or command[0] != "info"
        assert "numba.np.linalg" not in loaded, "Numba prepared itself to compile"


def _loaded_by(code: str, folder: Path) -> set[str]:
    command = [sys.executable, "-P", "-c", f"{code}\nimport sys; print(*sys.modules)"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return set(run.stdout.split("\n")[-2].split())
