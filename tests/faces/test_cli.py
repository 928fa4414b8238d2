"""The command line from outside: exit codes, stdout and stderr, help that is the documentation, and what starting costs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

import streamcut
import streamcut.cli
from streamcut import load_model
from streamcut.cli import COMMANDS
from streamcut.errors import ExitCode

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """rows.svm and the store rows.zarr (600 rows, labels ±1), and the model m.npz of rows.zarr."""
    folder = tmp_path_factory.mktemp("cli")
    rng = np.random.default_rng(0)
    X = sp.random_array((600, 30), density=0.3, rng=rng, format="csr", data_sampler=rng.normal)
    y = np.where(X @ rng.normal(size=30) + 0.3 * rng.normal(size=600) > 0, 1, -1)
    dump_svmlight_file(sp.csr_matrix(X), y, str(folder / "rows.svm"), zero_based=False)
    streamcut.convert(folder / "rows.svm", folder / "rows.zarr")
    streamcut.train(folder / "rows.zarr", tol=1e-4).save(folder / "m.npz")
    return folder


# --- help ---------------------------------------------------------------------------------------------------------------------


def test_every_exit_code_is_in_the_help():
    shown = {int(code) for code in re.findall(r"(?:^|\s{2,})(\d+) [a-z]", streamcut.cli.EPILOG)}
    assert shown == set(ExitCode)


# --- train --------------------------------------------------------------------------------------------------------------------


def test_train_says_its_certificate_in_words_in_json_or_nothing(run, folder, tmp_path):
    train = ("train", folder / "rows.zarr", "--output", tmp_path / "m.npz", "--force")
    code, out, err = run(*train, "--C", 0.5)
    assert (code, out) == (0, "")
    assert "Converged: the gap is within the tolerance (tol 0.001). The" in err
    assert load_model(tmp_path / "m.npz").C == 0.5
    code, out, err = run(*train, "--json")
    events = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert [event["event"] for event in events] == ["plan", *["iteration"] * (len(events) - 2), "result"]
    assert events[-1]["stop_reason"] == "converged"
    assert events[-1]["gap"] == pytest.approx(events[-1]["primal"] - events[-1]["lower_bound"])
    assert events[-1]["readings"] == load_model(tmp_path / "m.npz").readings >= 1.0
    assert run(*train, "--quiet") == (0, "", "")
    code, _, err = run(*train, "--max-passes", 2, "--tol", 1e-9)  # an error only on request
    assert code == 0
    assert "Not converged: the allowed number of passes" in err


def test_a_dry_run_prints_the_plan_and_writes_nothing(run, folder):
    dry = ("train", folder / "rows.zarr", "--dry-run", "--memory")
    assert re.search(r"cuts, if dual ascent gains little .* MB\n", run(*dry, "2GB")[1])
    assert json.loads(run(*dry, "2GB", "--json")[1])["budget"] == 2e9
    code, out, err = run(*dry, "1MB")
    assert (code, out, "at least" in err) == (ExitCode.MEMORY, "", True)


# --- predict ------------------------------------------------------------------------------------------------------------------


def test_predict_from_a_store_a_file_and_stdin(run, folder, tmp_path):
    code, labels, err = run("predict", folder / "m.npz", folder / "rows.zarr")
    assert (code, err) == (0, "")
    assert len(labels.split()) == 600
    assert run("predict", folder / "m.npz", folder / "rows.svm") == (0, labels, "")
    with open(folder / "rows.svm") as rows:
        command = [sys.executable, "-P", "-m", "streamcut", "predict", str(folder / "m.npz"), "-"]
        assert subprocess.run(command, stdin=rows, capture_output=True, text=True, check=True).stdout == labels
    code, scores, _ = run("predict", folder / "m.npz", folder / "rows.zarr", "--answer", "scores")
    _, both, _ = run("predict", folder / "m.npz", folder / "rows.zarr", "--answer", "both")
    pairs = zip(labels.split("\n"), scores.split("\n"), strict=True)
    assert both == "\n".join(f"{label} {score}".strip() for label, score in pairs)
    assert [float(s) > 0 for s in scores.split()] == [label == "1" for label in labels.split()]


def test_predict_writes_a_file_whole_or_not_at_all(run, folder, tmp_path):
    target = tmp_path / "labels.txt"
    _, labels, _ = run("predict", folder / "m.npz", folder / "rows.zarr")
    assert run("predict", folder / "m.npz", folder / "rows.zarr", "-o", target) == (0, "", "")
    assert target.read_text() == labels
    assert run("predict", folder / "m.npz", folder / "rows.zarr", "-o", target)[0] == ExitCode.USAGE
    (tmp_path / "bad.svm").write_text((folder / "rows.svm").read_text() + "1 31:1\n")
    code, _, err = run("predict", folder / "m.npz", tmp_path / "bad.svm", "-o", target, "--force")
    assert code == ExitCode.BAD_INPUT
    assert "feature 30 (0-based)" in err
    assert target.read_text() == labels
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.svm", "labels.txt"]
    assert run("predict", folder / "m.npz", tmp_path / "bad.svm", "--ignore-extra-features")[0] == 0


def test_without_a_command_there_is_help(run):
    code, out, err = run()
    assert (code, err) == (0, "")
    assert out == run("--help")[1]
    assert out.splitlines()[0].startswith("Usage: ")
    assert "\n  convert " in out


def test_there_are_no_more_options_than_anybody_can_learn(run):
    """Whoever adds one takes another out: of `train` 55, of all commands 240, of different names 110."""
    listed = re.compile(r"^  (?:-[A-Za-z], )?(--[A-Za-z][A-Za-z0-9-]*)", re.MULTILINE)
    options = {name: listed.findall(run(name, "--help-all")[1]) for name in COMMANDS}
    assert len(options) == 12
    assert 40 < len(options["train"]) <= 55
    assert sum(map(len, options.values())) <= 240
    assert len(set().union(*options.values())) <= 110


# --- what starting costs ----------------------------------------------------------------------------------------------------


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
    commands = [
        "--help",
        "train --nonsense a b c d",
        "convert a.svm a.zarr",
        "train a.zarr --output m.npz",
        "train a.zarr --output k.npz --solver ocas --quiet",
        "predict m.npz a.svm",
        "info a.zarr",
        "fit a.csv --label y -o f.npz -q",
        "evaluate f.npz a.csv",
        "verify m.npz a.zarr",
    ]
    _loaded_by(commands, first)
    for command in commands:
        loaded = _loaded_by([command], second)
        parts = {name for name in loaded if name.startswith(("scipy.sparse", "scipy.linalg", "scipy.special", "scipy.optimize"))}
        needed = {"pyarrow", "streamcut.evaluation"} if "a.csv" in command else OTHERS if "verify" in command else set()
        assert parts | loaded & (HEAVY | OTHERS) <= needed, command
        own = len([name for name in loaded if name.split(".")[0] == "streamcut"])
        assert own <= (330 if needed else 200), command
        assert not loaded & {"numba", "numpy", "scipy"} or command not in ("--help", "train --nonsense a b c d")
        assert "numba" not in loaded or "info" not in command
        assert "numba.np.linalg" not in loaded, "Numba prepared itself to compile"


def _loaded_by(commands: list[str], folder: Path) -> set[str]:
    """The modules that a process has loaded after these commands."""
    code = "import sys\nfrom contextlib import suppress\nfrom streamcut.cli import main\n"
    code += "".join(f"with suppress(SystemExit):\n    main({command.split()})\n" for command in commands)
    run = [sys.executable, "-P", "-c", f"{code}print(*sys.modules)"]
    done = subprocess.run(run, cwd=folder, capture_output=True, text=True, check=True)
    return set(done.stdout.split("\n")[-2].split())
