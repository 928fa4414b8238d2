"""Files that somebody else has made: one door lets them in, and nothing in them leads out of it, hangs, or is a traceback."""

from __future__ import annotations

import ast

import pytest
from kit.imports import MODULES

DOORS = {
    "open_regular",
    "open_below",
    "opened_file",
    "opened_raw",
    "opened",
    "regular",
    "_checked",
    "BytesIO",
    "_Image",
    "BufferReader",
}
OPENERS = {  # what opens a file by its name, or takes one that is open: then it has to come through a door
    "open", "File", "load", "fromfile", "memmap", "ZipFile", "is_zipfile", "ParquetFile", "OSFile", "memory_map", "open_memmap",
    "mmread", "mminfo", "loadtxt", "genfromtxt", "read_table", "read_csv", "open_group", "open_array", "fdopen",
}  # fmt: skip
OF_OTHERS = {
    "load": ("np", "numpy"),
    "open": ("os", "io", "gzip", "bz2", "lzma", "zarr", "codecs", "tokenize"),
    "File": ("h5py",),
}
ELSEWHERE = {  # (module, function): why it need not come through a door
    ("streamcut.foundation.opened", "*"): "it is the door",
    ("streamcut.foundation.files", "*"): "writes, and locks",
    ("streamcut.io.places.outputs", "*"): "writes",
    ("streamcut.foundation.systems", "*"): "folders to be synced, and what the kernel says in /proc",
    ("streamcut.foundation.machine", "*"): "what the kernel says in /proc and /sys",
    ("streamcut.cli.output", "*"): "the standard streams",
    ("streamcut.cli", "*"): "the standard output",
    ("streamcut.models.checkpoint", "open_checkpoint"): "a descriptor from `open_regular`",
    ("streamcut.io.text.inputs", "*"): "standard input",
    ("streamcut.io.sources.self_contained", "opened_hdf5"): "the name comes from `regular` a line above",
    ("streamcut.io.sources.self_contained", "opened_zarr"): "a folder in which there are only files",
    ("streamcut.io.sources.parquet_files", "_open"): "the name comes from `regular` a line above",
    ("streamcut.io.sources.columns", "_array"): "a file from `opened_file`",
    ("streamcut.io.sources.scipy_files", "__init__"): "a stream from `opened_raw`",
    ("streamcut.io.sources.scipy_files", "rows"): "a stream from `opened_raw`",
    ("streamcut.io.places.archives", "__init__"): "a file from whoever opened it",
    ("streamcut.io.places.remote", "*"): "scratch files of its own",
    ("streamcut.io.stores.hdf5_store", "*"): "images in memory",
}


def openings(name: str, source: str) -> list[str]:
    """Where a module opens a file by anything else than a door."""
    found: list[str] = []

    def visit(node: ast.AST, function: str) -> None:
        if isinstance(node, ast.FunctionDef):
            function = node.name
        if isinstance(node, ast.Call) and (what := _opens(node)) and not _allowed(name, function):
            found.append(f"{name}:{node.lineno}: {what} in {function or 'the module'}")
        for child in ast.iter_child_nodes(node):
            visit(child, function)

    visit(ast.parse(source), "")
    return found


def _opens(call: ast.Call) -> str:
    function = call.func
    name = function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    if isinstance(function, ast.Attribute):
        if name in ("read_bytes", "read_text"):
            return name
        of = function.value.id if isinstance(function.value, ast.Name) else ""
        if of not in OF_OTHERS.get(name, (of,)):
            return ""
    if name not in OPENERS or not call.args:
        return ""
    mode = next((word.value for word in call.keywords if word.arg == "mode"), call.args[1] if len(call.args) > 1 else None)
    if name == "open" and isinstance(mode, ast.Constant) and str(mode.value)[0] in "wax":
        return ""
    if name == "ZipFile" and isinstance(mode, ast.Constant) and mode.value == "w":
        return ""
    first = call.args[0]
    while isinstance(first, ast.Call) and getattr(first.func, "id", "") == "cast":
        first = first.args[1]
    if isinstance(first, ast.IfExp):
        first = first.orelse
    if isinstance(first, ast.Call) and getattr(first.func, "id", getattr(first.func, "attr", "")) in DOORS:
        return ""
    return f"{name}({ast.unparse(first)})"


def _allowed(module: str, function: str) -> bool:
    return (module, "*") in ELSEWHERE or (module, function) in ELSEWHERE


@pytest.mark.parametrize("name", sorted(MODULES))
def test_row_50_files_come_through_one_door(name):
    assert openings(name, MODULES[name].read_text()) == []


@pytest.mark.parametrize(
    "line",
    [
        "open(path)", "open(path, 'rb')", "os.open(path, 0)", "Path(path).read_bytes()", "path.read_text()",
        "h5py.File(path, 'r')",         "np.load(path)", "numpy.fromfile(path)", "zipfile.ZipFile(path)", "pq.ParquetFile(path)",
        "scipy.io.mmread(path)",
        "zarr.open_group(path)", "pa.memory_map(path)", "gzip.open(path)", "open(path, mode='r')",
    ],
)  # fmt: skip
def test_row_50_another_way_in_is_found(line):
    assert openings("streamcut.new", f"def read(path):\n    return {line}\n")


def test_row_50_doors_and_writers_are_no_other_way():
    for line in (
        "open(open_regular(p), 'rb')",
        "open(p, 'wb')",
        "h5py.File(regular(p))",
        "np.load(io.BytesIO(p))",
        "archive.open(p)",
    ):
        assert openings("streamcut.new", line) == []
