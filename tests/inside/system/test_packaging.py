"""What the build, the tools and the readers rely on and nothing else would notice."""

from __future__ import annotations

import ast
import re
import runpy
import tomllib
from pathlib import Path

import streamcut

ROOT = Path(__file__).resolve().parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_type_checkers_see_every_public_name():
    make_stub = runpy.run_path(str(ROOT / "scripts" / "tools" / "make_stub.py"))
    stub = (ROOT / "streamcut" / "__init__.pyi").read_text("utf-8")
    assert stub == make_stub["text"](), "run scripts/tools/make_stub.py"
    bound = {alias.asname for node in ast.walk(ast.parse(stub)) if isinstance(node, ast.ImportFrom) for alias in node.names}
    defined = {node.name for node in ast.walk(ast.parse(stub)) if isinstance(node, ast.FunctionDef)}
    assert {*streamcut._HOMES} <= bound | defined
    assert (ROOT / "streamcut" / "py.typed").exists()
    assert set(PROJECT["tool"]["setuptools"]["package-data"]["streamcut"]) == {"py.typed", "__init__.pyi"}


def test_pages_that_docstrings_name_are_there_and_in_the_wheel():
    named = {
        (path.parent if "/" not in found else ROOT / "streamcut") / found
        for path in (ROOT / "streamcut").rglob("*.py")
        for found in re.findall(r"(?<![/\w-])((?:solvers/)?[a-z_]+\.md)\b", path.read_text("utf-8"))
    }
    pages = {page for folder in ("solvers", "papers") for page in (ROOT / "streamcut" / folder).glob("*.md")}
    assert {page.name for page in named} <= {page.name for page in pages}
    assert set((ROOT / "streamcut").rglob("*.md")) == pages
    data = PROJECT["tool"]["setuptools"]["package-data"]
    assert data["streamcut.solvers"] == data["streamcut.papers"] == ["*.md"]
