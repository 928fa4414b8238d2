"""How the house is kept: what a reader of any file may rely on."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import click
import pytest
from kit.imports import MODULES

import streamcut
from streamcut import sklearn as estimators
from streamcut.cli import COMMANDS, cli

pytestmark = pytest.mark.smoke


@pytest.mark.parametrize("package", sorted(name for name, path in MODULES.items() if path.name == "__init__.py"))
def test_every_package_says_what_lives_there(package):
    text = ast.get_docstring(ast.parse(Path(MODULES[package]).read_text("utf-8"))) or ""
    assert len(text.splitlines()) >= 3, f"{package}: what lives there, what it imports, where new things go"


def _names_of(path: Path) -> set[str]:
    """What a file defines or imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).split(".")[0])
    return found


@pytest.mark.thirds
@pytest.mark.parametrize("package", sorted(name for name, path in MODULES.items() if path.name == "__init__.py"))
def test_names_in_the_docstring_of_a_package_are_those_of_something(package):
    """Files there or in a package it names, modules and what they define, commands, names of the package."""
    path = Path(MODULES[package])
    text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    dotted = re.findall(r"\bstreamcut(?:\.\w+)+", text)
    root = Path(MODULES["streamcut"]).parent
    folders = [
        path.parent,
        root,
        root.parent,
        root.parent / "io",
        *(Path(MODULES[name]).parent for name in dotted if name in MODULES),
    ]
    files = [
        name
        for name in re.findall(r"(?<![\w*])[\w/]+\.(?:py|md)\b", text)
        if not any((folder / name).exists() for folder in folders)
    ]
    assert files == []
    public = {*streamcut.__all__, *COMMANDS}
    for name in dotted:
        home, _, last = name.rpartition(".")
        assert name in MODULES or (home == "streamcut" and last in public) or last in _names_of(Path(MODULES[home])), name
    there = {each for file in path.parent.rglob("*.py") for each in (file.stem, file.parent.name, *_names_of(file))}
    for name in re.findall(r"`([A-Za-z_]\w*)(?:\.\w+)*`", text):
        assert name in public | there | {"streamcut"}, name


def told() -> dict[str, str]:
    """What users read: the help of every command and option, and the docstrings of public functions and estimators."""
    found = {}
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        texts = [command.help, *(parameter.help for parameter in command.params if isinstance(parameter, click.Option))]
        found[name] = "\n".join(filter(None, texts))
    for name in (*streamcut.__all__, *estimators.__all__):
        found[name] = inspect.getdoc(getattr(estimators if name in estimators.__all__ else streamcut, name)) or ""
    return found


def test_users_read_the_words_of_the_field():
    """Epochs and steps, iterations, cuts, active classes, buffers: what a reader of the papers expects."""
    strange = re.compile(r"\b(looks? at|so many|(?<!\.)rounds?|(?<!cutting )planes|at work|at rest|dealt|home to|takes? home)\b")
    assert {name: strange.findall(text) for name, text in told().items() if strange.search(text)} == {}


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_pages_for_developers_name_files_that_exist(page):
    root = Path(MODULES["streamcut"]).parent.parent
    named = re.findall(r"\b(?:streamcut|io|tests|scripts)/[\w/.]*\w/?", (root / page).read_text("utf-8"))
    assert len(named) > 10
    assert [name for name in named if not (root / name).exists()] == []


@pytest.mark.parametrize("folder", ["benchmarks", "checks", "papers", "tools"])
def test_every_script_has_a_line(folder):
    here = Path(MODULES["streamcut"]).parent.parent / "scripts" / folder
    page = (here / "README.md").read_text("utf-8").replace("reproduce_sbp_*", "reproduce_sbp_")
    missing = [file.name for file in here.iterdir() if file.suffix in (".py", ".sh") and file.name not in page]
    assert [name for name in missing if not name.startswith("reproduce_sbp_")] == []


def test_no_test_imports_another():
    """What tests share stands in tests/kit, where none of it is a test."""
    files = [*(Path(MODULES["streamcut"]).parent.parent / "tests").rglob("*.py")]
    assert [str(file) for file in files if re.search(r"^\s*(from|import) test_", file.read_text("utf-8"), re.MULTILINE)] == []


def test_the_smoke_run_asks_every_package_something():
    tests = Path(MODULES["streamcut"]).parent.parent / "tests"
    marked = {
        path.parent.name for path in tests.rglob("test_*.py") if re.search(r"^pytestmark = .*\bsmoke\b", path.read_text(), re.M)
    }
    assert {"io", "solvers", "execution", "models", "faces", "hostile", "system"} <= marked


def test_no_test_waits_for_a_fixed_time():
    """tests/kit/waiting.py waits for what happens; what sleeps is only what polls, and what stands in a process of its own."""
    tests = Path(MODULES["streamcut"]).parent.parent / "tests"
    slept = re.compile(r"^\s*(?:await asyncio|time)\.sleep\((?!0\.0)", re.MULTILINE)
    assert [str(path) for path in tests.rglob("*.py") if slept.search(path.read_text("utf-8"))] == []
