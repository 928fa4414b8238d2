"""The guide is true: its commands run, one page after the other in one folder, and its table of exit codes is the code's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import streamcut
from streamcut.errors import ExitCode

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
GUIDE = {
    name: (ROOT / "docs" / "guide" / f"{name}.md").read_text("utf-8")
    for name in ("start", "tasks", "running", "tables", "serving")
}


def blocks(language: str, text: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


PYTHON = {name: block for name, text in GUIDE.items() for block in blocks("python", text)}


def run(command: list[str], folder: Path) -> str:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Where all commands of the guide's ```sh blocks have run, one after the other."""
    folder = tmp_path_factory.mktemp("guide")
    (folder / "scripts").symlink_to(ROOT / "scripts")
    lines = [line for text in GUIDE.values() for block in blocks("sh", text) for line in block.splitlines()]
    commands = [line for line in lines if line.split("#")[0].strip()]
    assert len(commands) >= 20
    for command in commands:
        run(["bash", "-c", re.sub(r"--rows \d{4,}", "--rows 500", command)], folder)  # synthetic data, but less of it
    return folder


def test_the_examples_need_nothing_that_is_not_installed_with_streamcut():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    installed = {re.split(r"[><=;\[ ]", each)[0] for each in project["dependencies"]} | {"streamcut", "sklearn"}
    needed = {name: set(re.findall(r"^(?:import|from) (\w+)", block, re.MULTILINE)) for name, block in PYTHON.items()}
    assert needed["start"] | needed["tables"] <= installed
    assert needed["serving"] - installed == {"fastapi"}  # as the text above it says


def test_the_commands_leave_what_they_promise_and_the_python_examples_run(folder):
    """One test: processes that share tests would each run the commands."""
    assert (folder / "train.zarr").is_dir()
    assert (folder / "m.npz").is_file()
    labels = (folder / "labels.txt").read_text().split()
    assert len(labels) == 143
    assert set(labels) == {"1", "-1"}

    model = streamcut.load_model(folder / "m.npz")
    assert model.in_words() in " ".join(GUIDE["start"].split())
    accuracy, area = re.search(r"# accuracy ([\d.]+), AUC ([\d.]+)", GUIDE["start"]).groups()
    found = streamcut.evaluate(model, folder / "test.svm")
    assert (accuracy, area) == (f"{found.accuracy:.3f}", f"{found.roc_auc:.3f}")

    words, accuracy, digits = run([sys.executable, "-P", "-c", PYTHON["start"]], folder).splitlines()
    assert words.startswith("Converged")
    assert float(accuracy) > 0.9
    assert float(digits.split()[0]) > 0.95
    assert "yes" in run([sys.executable, "-P", "-c", PYTHON["tables"]], folder)
    assert (folder / "blocks.zarr").is_dir()
    pytest.importorskip("fastapi")
    request = 'from fastapi.testclient import TestClient\nrows = [{"site": "b", "price": 3}, {"site": "new", "price": 7}]\n'
    asked = f'{PYTHON["serving"]}\n{request}print(TestClient(app).post("/predict", json=rows).json())'
    likely, other = eval(run([sys.executable, "-P", "-c", asked], folder))
    assert 0.0 < other < likely < 1.0


def test_every_exit_code_is_explained():
    text = GUIDE["running"].split("Exit codes:")[1].split("\n\n")[0]
    assert [int(code) for code in re.findall(r"\*\*(\d+)\*\*", text)] == list(ExitCode)
