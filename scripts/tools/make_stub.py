"""Write streamcut/__init__.pyi: what type checkers and editors see of the names that streamcut loads when they are used.

Functions that take options by name get one parameter for each. A test compares the file with what this writes.
"""

from __future__ import annotations

import ast
from inspect import Parameter, Signature, signature
from pathlib import Path

import streamcut
from streamcut.api import VERBS, making, using

STUB = Path(streamcut.__file__).with_suffix(".pyi")
OPTIONS = {name: verb.options for name, verb in VERBS.items() if verb.options is not None}
HEAD = "# Written by scripts/tools/make_stub.py: what type checkers see of the names that __init__.py loads when they are used."


def _imports() -> dict[str, str]:
    """{name in an annotation: the module that it comes from}, as the modules with the verbs import them; "": a module itself."""
    modules = {"Literal": "typing"}
    for module in (making, using):
        for node in ast.walk(ast.parse(Path(module.__file__).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                modules |= {alias.name: str(node.module) for alias in node.names}
            elif isinstance(node, ast.Import):
                modules |= {alias.name: "" for alias in node.names}
    return modules


def with_options(name: str) -> Signature:
    """The signature of streamcut.<name>, with its options one by one."""
    plain = signature(getattr(streamcut, name))
    parameters = [parameter for parameter in plain.parameters.values() if parameter.kind is not Parameter.VAR_KEYWORD]
    there = {parameter.name for parameter in parameters}
    for field in OPTIONS[name].__dataclass_fields__.values():
        if field.name not in there:
            kind = "object" if field.name == "scheduler" else str(field.type)  # a distributed.Client, too
            parameters.append(Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=kind))
    return plain.replace(parameters=parameters)


def text() -> str:
    """All of the file."""
    lines, names = [], set()
    for name in OPTIONS:
        declared = with_options(name)
        lines += [f"def {name}("]
        starred = False
        for parameter in declared.parameters.values():
            if parameter.kind is Parameter.KEYWORD_ONLY and not starred:
                lines.append("    *,")
                starred = True
            default = "" if parameter.default is Parameter.empty else f" = {_default(parameter)}"
            lines.append(f"    {parameter.name}: {parameter.annotation}{default},".replace("'", '"'))
            names |= {node.id for node in ast.walk(ast.parse(parameter.annotation)) if isinstance(node, ast.Name)}
        lines.append(f") -> {declared.return_annotation}: ...")
        names.add(declared.return_annotation)
    used = {name: module for name, module in _imports().items() if name in names}
    imports = [f"from {module} import {name}" if module else f"import {name}" for name, module in used.items()]
    homes = streamcut._HOMES | {name: ("streamcut.api", name) for name in VERBS if name not in OPTIONS}
    imports += [f"from {module} import {attribute} as {name}" for name, (module, attribute) in homes.items()]
    return "\n".join([HEAD, "# ruff: noqa", *sorted(imports), "", "__version__: str", "", *lines, ""])


def _default(parameter: Parameter) -> str:
    simple = isinstance(parameter.default, str | int | float | None) and parameter.name != "threads"  # as many as processors
    return repr(parameter.default) if simple else "..."


if __name__ == "__main__":
    STUB.write_text(text(), encoding="utf-8")
