"""How the house is kept: what a reader of any file may rely on."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import click
import pytest
from kit.imports import MODULES

import streamcut
from streamcut import sklearn as estimators
from streamcut.cli import COMMANDS, cli

pytestmark = pytest.mark.smoke


def test_every_package_says_what_lives_there():
    """What lives there, what it imports, where new things go."""
    packages = {name: path for name, path in MODULES.items() if path.name == "__init__.py"}
    texts = {name: ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "" for name, path in packages.items()}
    assert [name for name, text in texts.items() if len(text.splitlines()) < 3] == []


def told() -> dict[str, str]:
    """What users read: the help of every command and option, and the docstrings of public functions and estimators."""
    found = {}
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        texts = [command.help, *(parameter.help for parameter in command.params if isinstance(parameter, click.Option))]
        found[name] = "\n".join(filter(None, texts))
    for name in (*streamcut.__all__, *estimators.__all__):
        found[name] = inspect.getdoc(getattr(estimators if name in estimators.__all__ else streamcut, name)) or ""
    return found


def test_users_read_the_words_of_the_field():
    """Epochs and steps, iterations, cuts, active classes, buffers: what a reader of the papers expects."""
    strange = re.compile(r"\b(looks? at|so many|(?<!\.)rounds?|(?<!cutting )planes|at work|at rest|dealt|home to|takes? home)\b")
    assert {name: strange.findall(text) for name, text in told().items() if strange.search(text)} == {}


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_pages_for_developers_name_files_that_exist(page):
    root = Path(MODULES["streamcut"]).parent.parent
    named = re.findall(r"\b(?:streamcut|io|tests|scripts)/[\w/.]*\w/?", (root / page).read_text("utf-8"))
    assert len(named) > 10
    assert [name for name in named if not (root / name).exists()] == []


def test_every_script_has_a_line():
    scripts = Path(MODULES["streamcut"]).parent.parent / "scripts"
    pages = {folder: (folder / "README.md").read_text("utf-8") for folder in scripts.iterdir() if folder.is_dir()}
    files = [(folder, file.name) for folder in pages for file in folder.iterdir() if file.suffix in (".py", ".sh")]
    assert [name for folder, name in files if name not in pages[folder]] == []


def test_no_test_imports_another():
    """What tests share stands in tests/kit, where none of it is a test."""
    files = [*(Path(MODULES["streamcut"]).parent.parent / "tests").rglob("*.py")]
    assert [str(file) for file in files if re.search(r"^\s*(from|import) test_", file.read_text("utf-8"), re.MULTILINE)] == []


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


ROOT = Path(__file__).resolve().parents[2]


def test_nothing_else_asks_for_the_system():
    """What only some systems have is used in streamcut/foundation/systems.py alone."""
    words = ("import fcntl", "import resource", "sched_getaffinity", "os.posix_f", "memfd", "os.uname", "statvfs", "sysconf",
             "madvise", "sys.platform",
             "/proc/meminfo", "/proc/self/status")  # fmt: skip
    found = [
        (str(path.relative_to(ROOT)), word)
        for folder in ("streamcut", "io")
        for path in (ROOT / folder).rglob("*.py")
        for word in words
        if word in path.read_text("utf-8") and path.name != "systems.py"
    ]
    assert found == []
