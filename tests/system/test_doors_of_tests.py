"""What is tested through public names survives a change of the insides: only tests/inside and tests/reference name these."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

import streamcut

TESTS = Path(__file__).resolve().parents[1]
US = streamcut.__name__
PUBLIC = {US, *(f"{US}.{name}" for name in ("cli", "sklearn", "errors", "structured"))}
FILES = [path for path in sorted(TESTS.rglob("*.py")) if path.relative_to(TESTS).parts[0] not in ("inside", "reference")]

pytestmark = pytest.mark.smoke


def named(tree: ast.AST) -> Iterator[str]:
    """The modules of streamcut that a file imports, wherever in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name.split(".")[0] == US)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == US:
            yield node.module
            for each in node.names:
                inner = f"{node.module}.{each.name}"
                if node.module in PUBLIC and each.name not in streamcut.__all__ and is_module(inner):
                    yield inner


def is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # the part before the dot is no package
        return False


def test_private_modules_are_imported_inside_alone():
    found = {}
    for path in FILES:
        name = str(path.relative_to(TESTS))
        private = {*named(ast.parse(path.read_text("utf-8")))} - PUBLIC
        if private:
            found[name] = sorted(private)
    assert found == {}


@pytest.mark.parametrize(
    ("source", "modules"),
    [
        (f"import {US}", {US}),
        (f"def f():\n    import {US}.training as t", {f"{US}.training"}),
        (f"from {US}.io.memory import MemoryDataset", {f"{US}.io.memory"}),
        (f"from {US} import train, training", {US, f"{US}.training"}),
        (f"from {US}.cli import main", {f"{US}.cli"}),
        (f"from {US}.errors import UsageError", {f"{US}.errors"}),
        (f"from {US}.cli import main, signals", {f"{US}.cli", f"{US}.cli.signals"}),
    ],
)
def test_each_way_to_import_is_seen(source, modules):
    assert {*named(ast.parse(source))} == modules
