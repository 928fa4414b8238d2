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
