"""Random changes of the source, one at a time: do the nearest tests notice? What survives is a test that is missing.

Usage: python scripts/checks/mutate.py [FILE …] [--changes N] [--seed K] [--tests N | --suite TEST …] [--seconds S] [--folder DIR]

Each change is one operator, comparison, constant, `min` or `max` of a FILE (default: the files that size memory, prove bounds and
keep data), made in a copy of the sources, which lies in --folder if that is given, and stays there: kernels are then compiled
once for all runs. The nearest tests are those whose files name the module or bear its name, then those of the modules that import
it; those that start clusters come last. With --suite the same tests are asked of every change: files or folders, in that order.
What is not decided in so many seconds of processor time is counted apart: of a suite that takes fewer it never ends. Prints what
survived; ends with 1 if anything did. Some survivors are no faults: the change makes a thing slower, or means the same.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {
    "streamcut/execution": "row_state plan passes ceiling",
    "streamcut/foundation": "rounding files",
    "streamcut/bundle": "bundle intercept penalty verified_master",
    "streamcut/models": "certificate",
    "streamcut/solvers": "state loop",
    "streamcut": "strategy",
    "io": "manifest",
    "io/stores": "writer store",
}
IMPORTANT = [Path(folder, f"{name}.py") for folder, names in FOLDERS.items() for name in names.split()]
FOR_ALL = ["tests/solvers/test_frozen_weights.py", "tests/solvers/test_truth.py"]  # of modules that no test names
OF_TEXT = ("test_imports", "test_house")  # they read sources, and run none
OPERATORS = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="), ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"), ast.And: ("and", "or"), ast.Or: ("or", "and"),
}  # fmt: skip


class Change:
    """`new` instead of the bytes from `start` to `end`."""

    def __init__(self, file: Path, source: bytes, start: int, end: int, new: str) -> None:
        self.file, self.start, self.end, self.new = file, start, end, new
        self.changed = source[:start] + new.encode() + source[end:]
        line = source.count(b"\n", 0, start)
        before, after = (text.decode().split("\n")[line].strip() for text in (source, self.changed))
        self.text = f"{file}:{line + 1}\n  - {before}\n  + {after}"


def changes(file: Path) -> Iterator[Change]:
    """All changes of one file."""
    source = (ROOT / file).read_bytes()
    starts = [0]
    for text in source.split(b"\n"):
        starts.append(starts[-1] + len(text) + 1)

    def span(node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset

    def between(left: ast.expr, right: ast.expr, operator: ast.AST) -> Iterator[Change]:
        if type(operator) in OPERATORS:
            old, new = OPERATORS[type(operator)]
            first = span(left)[1]
            at = source.find(old.encode(), first, span(right)[0])
            if at >= 0:
                yield Change(file, source, at, at + len(old), new)

    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            yield from between(node.left, node.comparators[0], node.ops[0])
        elif isinstance(node, ast.BinOp):
            if not isinstance(node.left, ast.JoinedStr) and not isinstance(node.right, ast.JoinedStr):
                yield from between(node.left, node.right, node.op)
        elif isinstance(node, ast.BoolOp):
            yield from between(node.values[0], node.values[1], node.op)
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
            new = {int: lambda v: v + 1, float: lambda v: 2.0 * v + (v == 0.0), bool: lambda v: not v}[type(node.value)](
                node.value
            )
            yield Change(file, source, *span(node), repr(new))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
            yield Change(file, source, *span(node.func), {"min": "max", "max": "min"}[node.func.id])


def naming(file: Path, among: list[Path]) -> list[Path]:
    """Which of `among` name the module, or import it from its package: its namesake, then those of its folder, by how often."""
    module = ".".join(file.with_suffix("").parts)
    module = f"streamcut.{module}" if file.parts[0] == "io" else module
    package, _, stem = module.rpartition(".")
    named = re.compile(rf"{re.escape(module)}\b|from {re.escape(package)} import .*\b{stem}\b")
    counts = {path: len(named.findall(path.read_text("utf-8"))) for path in among}
    matching = [path for path, count in counts.items() if count or path.stem == f"test_{stem}"]
    slow = not file.stem.startswith("cluster")  # clusters: for what is not of them, the last to be asked

    def order(path: Path) -> tuple[bool, bool, bool, int, Path]:
        elsewhere = set(file.parts[:2]).isdisjoint(path.parts)
        return path.stem != f"test_{stem}", slow and "dask" in path.parts, elsewhere, -counts[path], path

    return sorted(matching, key=order)


def nearest(file: Path, most: int) -> list[str]:
    """Test files of the module, with those next to them that know its results only, then of those that import it."""
    tests = sorted(path for path in (ROOT / "tests").rglob("test_*.py") if path.stem not in OF_TEXT)
    modules = sorted(path for folder in ("streamcut", "io") for path in (ROOT / folder).rglob("*.py"))
    named = naming(file, tests)
    others = [test for module in naming(file, modules) for test in naming(module.relative_to(ROOT), tests)[:2]]
    both = [candidate for path in dict.fromkeys(named + others) for candidate in (path, outside(path)) if candidate.is_file()]
    return [str(path.relative_to(ROOT)) for path in dict.fromkeys(both)][:most] or FOR_ALL


def outside(path: Path) -> Path:
    """The file of tests/ whose tests of the insides are in `path`; `path` where it is outside."""
    return Path(*(part for part in path.parts if part != "inside"))


def copy(to: Path) -> None:
    """The sources, as an installed package lies: streamcut/ with io/ in it, and the tests. What `to` had of them goes."""
    junk = shutil.ignore_patterns("__pycache__")
    for name in ("streamcut", "tests"):
        shutil.rmtree(to / name, ignore_errors=True)
    shutil.copytree(ROOT / "streamcut", to / "streamcut", ignore=junk)
    shutil.copytree(ROOT / "io", to / "streamcut" / "io", ignore=junk)
    shutil.copytree(ROOT / "tests", to / "tests", ignore=junk)
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, to / name)
    for name in ("scripts", "io", ".github", "docs"):
        if (ROOT / name).is_dir() and not (to / name).is_symlink():
            (to / name).symlink_to(ROOT / name)


def fails(tree: Path, tests: list[str], seconds: float | None = None) -> bool | None:
    """Whether a test fails; None if they take longer than so many seconds of processor time, or wait for eight times as long."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-P", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    limits = {}
    if seconds is not None:
        limits = {
            "timeout": 8 * seconds,
            "preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5)),
        }
    try:
        code = subprocess.run(command, cwd=tree, env=environment, capture_output=True, **limits).returncode
    except subprocess.TimeoutExpired:
        return None
    return None if code == -signal.SIGXCPU else code != 0


def noticed(change: Change, tree: Path, tests: list[str], seconds: float) -> bool | None:
    """Whether tests that pass without the change fail with it; None: not decided."""
    place = tree / "streamcut" / change.file if change.file.parts[0] == "io" else tree / change.file
    before = place.read_bytes()
    place.write_bytes(change.changed)
    try:
        return fails(tree, tests, seconds)
    finally:
        place.write_bytes(before)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, default=IMPORTANT, metavar="FILE")
    parser.add_argument("--changes", type=int, default=30, metavar="N", help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, metavar="K", help="which (default: %(default)s)")
    parser.add_argument("--tests", type=int, default=6, metavar="N", help="test files a change (default: %(default)s)")
    parser.add_argument("--suite", nargs="+", metavar="TEST", help="tests of every change, instead of the nearest files")
    parser.add_argument(
        "--seconds",
        type=float,
        default=300.0,
        metavar="S",
        help="of processor time for the tests of a change (default: %(default)s)",
    )
    parser.add_argument("--folder", type=Path, metavar="DIR", help="of the copy, which is kept (default: one that is removed)")
    asked = parser.parse_args()
    rng = random.Random(asked.seed)
    possible = [of_file for file in asked.files if (of_file := list(changes(file)))]
    drawn = [rng.choice(rng.choice(possible)) for _ in range(asked.changes)]
    outcomes: dict[bool | None, int] = {True: 0, False: 0, None: 0}
    sound: list[list[str]] = []
    with tempfile.TemporaryDirectory(prefix="streamcut-mutate-") as temporary:
        folder = asked.folder or Path(temporary, "copy")
        copy(folder)
        for change in drawn:
            tests = asked.suite or nearest(change.file, asked.tests)
            decided, by = None, "by"
            if tests not in sound and fails(folder, tests):
                by = "without it fails one of"
            else:
                sound.append(tests)
                decided = noticed(change, folder, tests, asked.seconds)
            outcomes[decided] += 1
            word = {True: "noticed ", False: "SURVIVED", None: "undecided"}[decided]
            print(f"{word} {change.text}\n    {by} {', '.join(tests)}", flush=True)
    summary = f"{outcomes[True]} noticed, {outcomes[False]} survived, {outcomes[None]} undecided"
    print(f"{summary} of {len(drawn)} changes (seed {asked.seed})")
    return 1 if outcomes[False] else 0


if __name__ == "__main__":
    sys.exit(main())
