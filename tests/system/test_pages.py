"""README, guide, tutorials and pages are true: their commands and Python run, and print what stands below them."""

from __future__ import annotations

import lzma
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import streamcut
from streamcut.errors import ExitCode

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```\n\n((?:    [^\n]*\n)+)", re.MULTILINE | re.DOTALL)
EXAMPLES = [
    pytest.param(code, printed, id=f"{page.stem}-{number}")
    for page in sorted((ROOT / "docs").glob("*.md"))
    for number, (code, printed) in enumerate(BLOCK.findall(page.read_text("utf-8")))
]
NEEDS = {"cells": ("anndata",), "cluster": ("distributed", "moto", "obstore")}
NUMBER = r"\d+(?:\.\d+)?"
README = PAGES[0].read_text("utf-8")
GUIDE = {name: (ROOT / f"docs/guide/{name}.md").read_text("utf-8") for name in ("start", "tasks", "running", "tables", "serving")}
TOOL = runpy.run_path(str(ROOT / "scripts" / "tools" / "fill_pages.py"))
printed_by, same = TOOL["run"], TOOL["same"]


def blocks(language: str, text: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


PYTHON = {name: block for name, text in GUIDE.items() for block in blocks("python", text)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_print_what_stands_below_them(page, tmp_path):
    for module in NEEDS.get(page.stem, ()):
        pytest.importorskip(module)
    shown = [(block[2], block[3], printed) for block, printed in TOOL["outputs"](page, tmp_path) if block[3] is not None]
    assert shown
    for command, expected, printed in shown:
        assert same(expected, printed), f"{command}\nprints\n{printed}\nscripts/tools/fill_pages.py {page} puts it there"


def test_an_ellipsis_and_last_digits_stand_for_anything_and_nothing_else_does():
    assert same("read in … s\n…\nend\n", "read in 1.2 s\na\nb\nend\n")
    assert not same("read in … s\n", "read in 1.2 s, a lot\n")
    assert same("a,0.45052917747719157\n", "a,0.4505291774771676\n")
    assert not same("a,0.45052917747719157\n", "a,0.4505291784771676\n")


@pytest.mark.parametrize(("code", "printed"), EXAMPLES)
def test_examples_print_what_stands_below_them(code, printed, tmp_path, request):
    for name in re.findall(r'load_svmlight_file\("(\w+)"\)', code):
        packed = request.getfixturevalue("data_dir") / name / "train.svm.xz"
        if not packed.is_file():
            pytest.skip(f"no {name}/train.svm.xz among the data sets")
        (tmp_path / name).write_bytes(lzma.decompress(packed.read_bytes()))
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == re.sub(r"^    ", "", printed, flags=re.MULTILINE)


def test_the_guide_runs_one_page_after_the_other_in_one_folder(tmp_path, monkeypatch, run):
    """In this process, but for what a shell does, and what has to keep to a memory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    lines = [line for text in GUIDE.values() for block in blocks("sh", text) for line in block.splitlines()]
    commands = [line for line in lines if line.split("#")[0].strip()]
    assert len(commands) >= 20
    for command in commands:
        words = shlex.split(command, comments=True)
        if words[0] == "streamcut" and not {">", "--memory"} & {*words}:
            assert run(*words[1:])[0] == 0, command
        else:
            printed_by("sh", re.sub(r"--rows \d{4,}", "--rows 500", command), tmp_path)  # less synthetic data
    assert (tmp_path / "train.zarr").is_dir()
    labels = (tmp_path / "labels.txt").read_text().split()
    assert (len(labels), set(labels)) == (143, {"1", "-1"})

    model = streamcut.load_model(tmp_path / "m.npz")
    assert model.in_words() in " ".join(GUIDE["start"].split())
    reached = streamcut.evaluate(model, tmp_path / "test.svm")
    assert f"# accuracy {reached.accuracy:.3f}, AUC {reached.roc_auc:.3f}" in GUIDE["start"]

    words, accuracy, digits = printed_by("python", PYTHON["start"], tmp_path).splitlines()
    assert words.startswith("Converged")
    assert float(accuracy) > 0.9
    assert float(digits.split()[0]) > 0.95
    assert "yes" in printed_by("python", PYTHON["tables"], tmp_path)
    assert (tmp_path / "blocks.zarr").is_dir()
    pytest.importorskip("fastapi")
    request = 'from fastapi.testclient import TestClient\nrows = [{"site": "b", "price": 3}, {"site": "new", "price": 7}]\n'
    asked = f'{PYTHON["serving"]}\n{request}print(TestClient(app).post("/predict", json=rows).json())'
    likely, other = eval(printed_by("python", asked, tmp_path))
    assert 0.0 < other < likely < 1.0


def test_the_examples_of_the_guide_need_nothing_that_is_not_installed_with_streamcut():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    installed = {re.split(r"[><=;\[ ]", each)[0] for each in project["dependencies"]} | {"streamcut", "sklearn"}
    needed = {name: set(re.findall(r"^(?:import|from) (\w+)", block, re.MULTILINE)) for name, block in PYTHON.items()}
    assert needed["start"] | needed["tables"] <= installed
    assert needed["serving"] - installed == {"fastapi"}  # as the text above it says


def test_every_exit_code_is_explained():
    text = GUIDE["running"].split("Exit codes:")[1].split("\n\n")[0]
    assert [int(code) for code in re.findall(r"\*\*(\d+)\*\*", text)] == list(ExitCode)


def test_every_page_is_in_the_navigation_once_and_every_block_says_what_it_prints():
    named = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    made = set(re.findall(r'"(reference/\w+\.md)"', (ROOT / "scripts" / "tools" / "site_pages.py").read_text()))
    there = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert len(PAGES) == 6
    assert sorted(named) == sorted(there | made)
    text = "".join(page.read_text("utf-8") for page in (ROOT / "docs").glob("*.md"))
    assert len(EXAMPLES) == text.count("```python") >= 2


def test_the_readme_is_a_first_page_that_points_at_what_is_there():
    lines = README.splitlines()
    assert len(lines) <= 150
    assert [line for line in lines if len(line) > 100] == []
    named = re.findall(r"\]\((?!https?:)([^)#]+)", README) + re.findall(r"\bscripts/[\w/]+\.(?:sh|py)", README)
    assert {"scripts/demo.sh", "scripts/test.sh"} <= {*named}
    assert [name for name in named if not (ROOT / name).exists()] == []
    (service,) = re.findall(r"^```py\n(?:#[^\n]*\n)*(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert f"```python\n{service}```" in GUIDE["serving"]


def test_figures_of_speed_in_the_readme_are_those_of_the_page():
    """Each row of the table names its script; all its figures stand in one line of the section that names it, too."""
    sections = (ROOT / "docs" / "performance.md").read_text("utf-8").split("\n## ")
    rows = [line.split("|") for line in README.splitlines() if line.startswith("|")][2:]
    assert len(rows) == 3
    for row in rows:
        figures = set(re.findall(NUMBER, row[2]))
        assert figures
        (script,) = re.findall(r"`(\w+\.py)`", row[3])
        lines = [line for section in sections if script in section for line in section.splitlines()]
        assert any(figures <= set(re.findall(NUMBER, line)) for line in lines), row[2]
        assert (ROOT / "scripts" / "benchmarks" / script).is_file()
