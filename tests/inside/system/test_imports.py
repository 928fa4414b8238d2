"""Who may import whom: imports go downwards only, whether they stand at the top of a module or inside a function."""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Iterator

import pytest
from kit.imports import MODULES, statements, tree

import streamcut
from streamcut.api import VERBS

pytestmark = pytest.mark.smoke

LAYERS = [  # lower ones first; a package sees the layers below its own
    {"foundation"},
    {"io", "compiled"},
    {"bundle", "losses", "kernels"},
    {"execution", "models"},
    {"oracles"},
    {"measures", "progress", "solvers"},
    {"jobs"},
    {"papers"},
    {"wiring"},
    {"exports", "reports"},
    {"fitting"},
    {"api"},
    {"cli", "estimator"},
    {"sklearn"},
    {"__main__"},
]
FOUNDATION = {"compiler", "config", "errors", "foundation", "loss_table", "options", "problem", "protocols", "solver_table"}
FOUNDATION |= {""}  # streamcut itself
WIRING = {
    "calibration",
    "certification",
    "data",
    "evaluation",
    "example",
    "foreign",
    "grids",
    "prediction",
    "strategy",
}
WIRING |= {"certified", "weight_errors", "structured", "training", "tuning", "verification"}
BLIND = {"compiled", "bundle", "losses", "solvers"}  # these get arrays, cuts and oracles: they never see a file
KERNELS_SEE = {"__future__", "collections.abc", "math", "numba", "numba.extending", "numpy", "streamcut.compiler.jit", "typing"}
KERNELS_SEE |= {"streamcut.compiler.numba_parts"}
NUMBAS_OWN = ("numba.core", "numba._", "numba.np", "numba.cpython", "numba.typed")  # what it documents nowhere


def imported(name: str, body: list[ast.stmt], types: bool = True) -> Iterator[tuple[str, int]]:
    """(dotted name, line) of all that `body` of module `name` imports: of ours the module that is meant, of others as written."""
    for node in statements(body, types):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}:{node.lineno}: relative import"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if node.module == "streamcut" and alias.name in {*streamcut._HOMES, *VERBS}:
                    yield streamcut._HOMES.get(alias.name, ("streamcut.api",))[0], node.lineno
                else:
                    yield inner if inner in MODULES else node.module, node.lineno


def package(module: str) -> str:
    """The box of LAYERS that a module of ours belongs to."""
    head = module.removeprefix("streamcut").removeprefix(".").split(".")[0]
    if head in FOUNDATION:
        return "foundation"
    return "wiring" if head in WIRING else head


def rank(module: str) -> int:
    box = package(module)
    for number, layer in enumerate(LAYERS):
        if box in layer:
            return number
    raise AssertionError(f"{module} belongs to no layer: add it to one")


def complaints(name: str, body: list[ast.stmt]) -> list[str]:
    """What is wrong with the imports of module `name`."""
    found = []
    for target, line in imported(name, body, types=name != "streamcut.protocols"):  # which names types of every layer
        where = f"{name}:{line} imports {target}"
        if target.split(".")[0] in ("dask", "distributed") and not name.startswith("streamcut.execution.cluster"):
            found.append(f"{where}: only execution/cluster*.py may")
        if target.startswith(NUMBAS_OWN) and name != "streamcut.compiler.numba_parts":
            found.append(f"{where}: only compiler/numba_parts.py may")
        ours = package(target) in ("compiled", "foundation")  # helpers may come from other files: the compiler sees them
        if package(name) == "compiled" and not ours and target not in KERNELS_SEE:
            found.append(f"{where}: files in compiled/ hold kernels only")
        if target.split(".")[0] != "streamcut" or package(target) == package(name):
            continue
        if rank(target) >= rank(name):
            found.append(f"{where}: not a layer below")
        if package(target) == "papers" and name != "streamcut.structured":  # the tables of solvers and jobs name its modules
            found.append(f"{where}: only streamcut.structured may")
        if package(target) == "io" and package(name) in BLIND:
            found.append(f"{where}: {package(name)} never sees a file")
    return found


def test_imports_go_downwards():
    assert [said for name in MODULES for said in complaints(name, tree(name).body)] == []


def _at_run_time(name: str) -> set[str]:
    """The modules of ours that module `name` imports anywhere but for its types.

    The record of a format names its readers, which read as the options say that the records made: they are loaded when used.
    """
    body = tree(name).body
    if name.startswith("streamcut.io.formats."):
        body = [node for node in body if not isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return {target for target, _ in imported(name, body, types=False) if target in MODULES and target != name}


def test_no_files_import_each_other_in_a_circle():
    order = list(graphlib.TopologicalSorter({name: _at_run_time(name) for name in MODULES}).static_order())
    assert len(order) == len(MODULES)
