"""How the house is kept: what a reader of any file may rely on."""

from __future__ import annotations

import ast

import pytest
from kit.imports import MODULES

pytestmark = pytest.mark.smoke

DECORATORS = {"kernel", "bare", "fused", "inlined", "bare_inlined", "fused_inlined", "reordered"}
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
