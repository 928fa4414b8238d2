"""How the house is kept: what a reader of any file may rely on."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from test_imports import MODULES

DECORATORS = {"kernel", "fused", "inlined", "fused_inlined", "reordered"}
MOST = 12  # arguments of a kernel: a swapped pair among more is seen by nobody


def kernels(source: str):
    """(name, number of parameters) of every compiled function."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            names = {getattr(each, "id", None) for each in node.decorator_list}
            if names & DECORATORS:
                yield node.name, len(node.args.posonlyargs) + len(node.args.args) + len(node.args.kwonlyargs)


def test_no_kernel_has_many_parameters():
    found = [(module, *each) for module, path in MODULES.items() for each in kernels(path.read_text("utf-8"))]
    assert len(found) > 100
    assert [each for each in found if each[2] > MOST] == [], "records (streamcut.compiled.records) keep them together"


@pytest.mark.parametrize("package", sorted(name for name, path in MODULES.items() if path.name == "__init__.py"))
def test_every_package_says_what_lives_there(package):
    text = ast.get_docstring(ast.parse(Path(MODULES[package]).read_text("utf-8"))) or ""
    assert len(text.splitlines()) >= 3, f"{package}: what lives there, what it imports, where new things go"
