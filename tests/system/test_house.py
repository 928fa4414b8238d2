"""How the house is kept: what a reader of any file, the build and the tools rely on, and nothing else would notice."""

from __future__ import annotations

import ast
import re
import runpy
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from kit.imports import MODULES, ROOT, statements, tree

import streamcut

pytestmark = pytest.mark.smoke

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SOURCES = {name: path.read_text("utf-8") for name, path in MODULES.items()}
TESTS = {path: path.read_text("utf-8") for path in (ROOT / "tests").rglob("*.py")}
DATA = PROJECT["tool"]["setuptools"]["package-data"]


def test_every_package_is_listed_and_says_what_lives_there():
    """The list is kept by hand, because io/ is mapped into streamcut; a package left out would be missing from the wheel."""
    packages = {name for name, path in MODULES.items() if path.name == "__init__.py"}
    assert sorted(PROJECT["tool"]["setuptools"]["packages"]) == sorted(packages)
    assert [name for name in MODULES if name.rpartition(".")[0] not in packages | {""}] == []
    texts = {name: ast.get_docstring(tree(name)) or "" for name in packages}
    assert [name for name, text in texts.items() if len(text.splitlines()) < 3] == []


def test_modules_stay_short():
    assert {name: text.count("\n") for name, text in SOURCES.items() if text.count("\n") > 400} == {}


DECORATORS = {"kernel", "bare", "fused", "inlined", "bare_inlined", "fused_inlined", "reordered"}


def test_no_kernel_has_many_parameters():
    """A swapped pair among more than 12 is seen by nobody: records (streamcut.compiled.records) keep them together."""
    nodes = [node for name in MODULES for node in statements(tree(name).body) if isinstance(node, ast.FunctionDef)]
    kernels = [node for node in nodes if {getattr(each, "id", None) for each in node.decorator_list} & DECORATORS]
    assert len(kernels) > 100
    assert [node.name for node in kernels if len(node.args.posonlyargs + node.args.args + node.args.kwonlyargs) > 12] == []


def test_one_module_asks_for_the_system():
    """What only some systems have is used in streamcut/foundation/systems.py alone."""
    words = "import fcntl|import resource|sched_getaffinity|os.posix_f|memfd|os.uname|statvfs|sysconf|madvise|sys.platform"
    asking = re.compile(rf"{words}|/proc/meminfo|/proc/self/status")
    assert [name for name, text in SOURCES.items() if asking.search(text)] == ["streamcut.foundation.systems"]


def test_tests_stand_on_public_names_and_import_no_other_test():
    """What is tested through public names survives a change of the insides: only tests/inside and tests/reference name these."""
    public = {"streamcut", *(f"streamcut.{name}" for name in ("cli", "sklearn", "errors", "structured"))}
    private = {}
    for path, text in TESTS.items():
        assert not re.search(r"^\s*(from|import) test_", text, re.MULTILINE), f"{path}: what tests share stands in tests/kit"
        if path.relative_to(ROOT / "tests").parts[0] in ("inside", "reference"):
            continue
        named = set()
        for node in statements(ast.parse(text).body):
            if isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                named |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)} if node.module else set()
        if private_names := (named & set(MODULES)) - public:
            private[path.name] = private_names
    assert private == {}


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_pages_for_developers_name_files_that_exist(page):
    named = re.findall(r"\b(?:streamcut|io|tests|scripts)/[\w/.]*\w/?", (ROOT / page).read_text("utf-8"))
    assert len(named) > 10
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_script_has_a_line():
    pages = {folder: (folder / "README.md").read_text("utf-8") for folder in (ROOT / "scripts").iterdir() if folder.is_dir()}
    files = [(folder, file.name) for folder in pages for file in folder.iterdir() if file.suffix in (".py", ".sh")]
    assert [name for folder, name in files if name not in pages[folder]] == []


def test_no_path_of_somebodys_machine():
    pattern = re.compile(r"(?<![\w.}~])/(?:work|root|home|Users)/")
    folders = [path for name in ("streamcut", "io", "tests", "scripts", ".ci") for path in (ROOT / name).rglob("*")]
    files = [path for path in (*ROOT.glob("*.*"), *folders) if path.is_file() and "__pycache__" not in path.parts]
    texts = {path: path.read_text("utf-8", errors="replace") for path in files if path.name != ".git"}
    assert [str(path) for path, text in texts.items() if pattern.search(text)] == []


def test_the_workflow_can_run():
    """`python -m pytest` would take the checkout for the package, where io/ is not streamcut.io."""
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text("utf-8")
    (command,) = re.findall(r"run: (.*pytest tests/.*)", workflow)
    assert command.startswith("pytest ")
    assert [name for name in command.split()[1:] if not (ROOT / name).is_file()] == []
    for path, text in TESTS.items():
        assert not re.search(r'sys\.executable, "-[cm]"', text), f"{path}: python -P, or it imports from the checkout"


def test_versions_and_requirements_agree():
    here = streamcut.__version__
    assert here == PROJECT["project"]["version"] == version("streamcut")
    assert f"## [{here}]" in (ROOT / "CHANGELOG.md").read_text()
    recipe = (ROOT / "conda" / "meta.yaml").read_text()
    needed = [line.split(";")[0].strip() for line in PROJECT["project"]["dependencies"]]
    asked = {" ".join(re.split(r"(?=[><=])", each, maxsplit=1)) for each in needed}
    run = recipe[recipe.index("  run:\n") : recipe.index("\ntest:")]
    assert {line.strip()[2:] for line in run.splitlines()[1:] if line.strip()} == asked | {"python >=3.11"}
    assert f'version = "{here}"' in recipe


def test_type_checkers_see_every_public_name():
    stub = (ROOT / "streamcut" / "__init__.pyi").read_text("utf-8")
    make_stub = runpy.run_path(str(ROOT / "scripts" / "tools" / "make_stub.py"))
    assert stub == make_stub["text"](), "run scripts/tools/make_stub.py"
    nodes = [*ast.walk(ast.parse(stub))]
    bound = {alias.asname for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert {*streamcut._HOMES} <= bound | {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    assert (ROOT / "streamcut" / "py.typed").exists()
    assert set(DATA["streamcut"]) == {"py.typed", "__init__.pyi"}


def test_pages_that_docstrings_name_are_there_and_in_the_wheel():
    pages = {page.name for folder in ("solvers", "papers") for page in (ROOT / "streamcut" / folder).glob("*.md")}
    named = {Path(name).name for text in SOURCES.values() for name in re.findall(r"(?<![/\w-])(?:solvers/)?[a-z_]+\.md\b", text)}
    assert named - {"FORMAT.md"} <= pages == {page.name for page in (ROOT / "streamcut").rglob("*.md")}
    assert DATA["streamcut.solvers"] == DATA["streamcut.papers"] == ["*.md"]
