"""The README is a first page: short, its command runs and prints what it shows, what it names is there."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
NUMBER = r"\d+(?:\.\d+)?"
README = (ROOT / "README.md").read_text("utf-8")


def test_it_is_a_first_page():
    lines = README.splitlines()
    assert len(lines) <= 150
    assert [line for line in lines if len(line) > 100] == []


def test_its_command_prints_what_it_shows(tmp_path):
    pages = runpy.run_path(str(ROOT / "scripts" / "tools" / "fill_pages.py"))
    shown = [(block[3], printed) for block, printed in pages["outputs"](ROOT / "README.md", tmp_path) if block[3] is not None]
    assert len(shown) == 1
    for expected, printed in shown:
        assert pages["same"](expected, printed), printed


def test_its_figures_of_speed_are_those_of_the_page():
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


def test_its_service_is_the_one_of_the_guide_which_runs():
    (here,) = re.findall(r"^```py\n(?:#[^\n]*\n)*(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert f"```python\n{here}```" in (ROOT / "docs" / "guide" / "serving.md").read_text("utf-8")


def test_what_is_pointed_at_exists():
    named = re.findall(r"\]\((?!https?:)([^)#]+)", README) + re.findall(r"\bscripts/[\w/]+\.(?:sh|py)", README)
    assert {"scripts/demo.sh", "scripts/test.sh"} <= {*named}
    assert [name for name in named if not (ROOT / name).exists()] == []
