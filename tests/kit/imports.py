"""Every module of the package, where it stands, and its statements."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


MODULES = {  # by dotted name; io/x.py is streamcut.io.x
    ".".join((prefix, *path.relative_to(folder).with_suffix("").parts)).removesuffix(".__init__"): path
    for folder, prefix in ((ROOT / "streamcut", "streamcut"), (ROOT / "io", "streamcut.io"))
    for path in folder.rglob("*.py")
}


@cache
def tree(name: str) -> ast.Module:
    return ast.parse(MODULES[name].read_text("utf-8"))


def statements(body: list, types: bool = True) -> Iterator[ast.AST]:
    """All statements in `body`, also inside others; without `types` none under `if TYPE_CHECKING`."""
    for node in body:
        if types or not isinstance(node, ast.If) or getattr(node.test, "id", "") != "TYPE_CHECKING":
            yield node
            for inner in ("body", "orelse", "finalbody", "handlers", "cases"):
                yield from statements(getattr(node, inner, []), types)
