"""The table of solvers is the one place that knows them by name; what it says of them holds, and weights of each are frozen."""

from __future__ import annotations

import ast

import pytest
from kit.imports import MODULES
from reference.frozen_weights import CASES, frozen

from streamcut.config import COMMON, SOLVERS, TrainOptions
from streamcut.solver_table import SOLVER_TABLE

pytestmark = pytest.mark.smoke


TABLE = "streamcut.solver_table"


def compared(source: str) -> list[int]:
    """Lines that compare something with the name of a solver, or with several, or look for one in a list of them."""

    def names(node: ast.expr) -> bool:
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return any(names(each) for each in node.elts)
        return isinstance(node, ast.Constant) and node.value in SOLVER_TABLE

    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare) and any(names(side) for side in (node.left, *node.comparators)):
            found.append(node.lineno)
        if isinstance(node, ast.MatchValue) and names(node.value):
            found.append(node.value.lineno)
    return found


def test_nobody_compares_names_of_solvers():
    assert compared('a = solver == "ocas"\nb = "cpa" != solver\nc = x in ("smo", y)\nd = x in "abc"') == [1, 2, 3]
    found = {name: lines for name, path in MODULES.items() if name != TABLE and (lines := compared(path.read_text("utf-8")))}
    assert found == {}, "ask the table for the fact behind the name"


@pytest.mark.parametrize("name", SOLVER_TABLE)
def test_what_the_table_says_is_there(name):
    record = SOLVER_TABLE[name]
    assert {*record.options, *record.limits, *COMMON} <= set(TrainOptions.__dataclass_fields__)
    assert set(record.limits) <= set(record.options)
    for problem in record.trains:
        assert record.algorithm(problem)


def test_every_option_is_of_some_solver():
    assert {*COMMON, *(option for record in SOLVER_TABLE.values() for option in record.options)} == {
        *TrainOptions.__dataclass_fields__
    }


FROZEN = frozen()


def test_every_solver_is_frozen():
    assert {options["solver"] for _, options in CASES.values()} == set(SOLVERS)
    assert set(FROZEN) == set(CASES)
