"""Write a model in the form of another program."""

from __future__ import annotations

import os
from importlib import import_module

from streamcut.errors import UsageError
from streamcut.models.files import as_model
from streamcut.models.model import Model
from streamcut.outputs import output
from streamcut.suggestions import unknown

TARGETS = {  # program: (module, the function that makes the bytes, endings of file names that mean it)
    "liblinear": ("streamcut.exports.liblinear", "liblinear_text", ()),  # and for every other ending
    "sklearn": ("streamcut.exports.sklearn", "sklearn_joblib", (".joblib", ".pkl")),
    "onnx": ("streamcut.exports.onnx", "onnx_graph", (".onnx",)),
    "compact": ("streamcut.exports.compact", "compact_file", (".npz",)),
    "json": ("streamcut.exports.as_json", "json_weights", (".json",)),
}


def export(model: Model | str | os.PathLike, path: str | os.PathLike, *, to: str | None = None, replace: bool = True) -> None:
    """Write `model` to `path` for the program `to`, one of TARGETS; None: what the ending of `path` means, else LIBLINEAR.

    Raises UsageError for an unknown program, for a model that it cannot hold and, unless `replace`, when the file exists;
    DiskFullError.
    """
    if to is None:
        to = next((target for target, (*_, endings) in TARGETS.items() if os.fspath(path).endswith(endings)), "liblinear")
    if to not in TARGETS:
        raise UsageError(f"to: {unknown(to, TARGETS)}")
    module, function, _ = TARGETS[to]
    content = getattr(import_module(module), function)(as_model(model))
    with output(path, prefix="model", size=len(content), replace=replace) as file:
        file.write(content)
