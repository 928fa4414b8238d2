"""What the build, the tools and the readers rely on and nothing else would notice."""

from __future__ import annotations

import ast
import re
import runpy
import tomllib
from importlib.metadata import version
from pathlib import Path

import streamcut

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGE_MODULES = sorted([*(ROOT / "streamcut").rglob("*.py"), *(ROOT / "io").rglob("*.py")])
OUR_FOLDERS = ("streamcut", "io", "tests", "scripts", ".ci")


def _our_files() -> list[Path]:
    inside = [path for folder in OUR_FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()]
    skipped = {"__pycache__", ".git"}  # .git is a file in a linked work tree
    return [path for path in [*ROOT.glob("*.*"), *inside] if path.is_file() and not skipped & set(path.parts)]


def test_packages_are_listed():
    """The list is kept by hand, because io/ is mapped into streamcut; a package left out would be missing from the wheel."""
    folders = {"streamcut." + str(init.parent.relative_to(ROOT)).replace("/", ".") for init in (ROOT / "io").rglob("__init__.py")}
    folders |= {str(init.parent.relative_to(ROOT)).replace("/", ".") for init in (ROOT / "streamcut").rglob("__init__.py")}
    assert sorted(PROJECT["tool"]["setuptools"]["packages"]) == sorted(folders)


def test_every_module_is_in_a_package():
    assert [path for path in PACKAGE_MODULES if not (path.parent / "__init__.py").is_file()] == []


def test_versions_agree():
    assert streamcut.__version__ == PROJECT["project"]["version"] == version("streamcut")


def test_the_top_level_holds_nothing_by_accident():
    """A slip of the shell leaves files with names such as `15)`, and tools leave what they load."""
    kinds = {path.suffix for path in ROOT.iterdir() if path.is_file() and not path.name.startswith(".")}
    assert kinds <= {"", ".md", ".toml", ".yml", ".in"}
    assert [
        path.name for path in ROOT.iterdir() if not path.name.replace(".", "").replace("-", "").replace("_", "").isalnum()
    ] == []


def test_modules_stay_short():
    long = {str(path.relative_to(ROOT)): lines for path in PACKAGE_MODULES if (lines := len(path.read_text().splitlines())) > 400}
    assert long == {}


def test_no_path_of_somebodys_machine():
    pattern = re.compile(r"(?<![\w.}~])/(?:work|root|home|Users)/")
    found = []
    for path in _our_files():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {line.strip()}" for line in text.splitlines() if pattern.search(line)]
    assert found == []


def test_the_workflow_can_run():
    """`python -m pytest` would take the checkout for the package, where io/ is not streamcut.io."""
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text("utf-8")
    (command,) = re.findall(r"run: (.*pytest tests/.*)", workflow)
    assert command.startswith("pytest ")
    assert all((ROOT / name).is_file() for name in command.split()[1:])
    installed = re.search(r"pip install (.*)", workflow)[1].split()
    needed = re.findall(
        r"^import (hypothesis|psutil)|^from (hypothesis) import", (ROOT / "tests" / "conftest.py").read_text(), re.MULTILINE
    )
    assert {*filter(None, sum(needed, ()))} <= {*installed}
    for path in (ROOT / "tests").rglob("*.py"):
        text = path.read_text("utf-8")
        assert not re.search(r'sys\.executable, "-[cm]"', text), f"{path}: python -P, or it imports from the checkout"


def test_changelog_knows_this_version():
    assert f"## [{streamcut.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def test_the_conda_recipe_says_what_the_package_says():
    recipe = (ROOT / "conda" / "meta.yaml").read_text()
    needed = [line.split(";")[0].strip() for line in PROJECT["project"]["dependencies"]]
    asked = {" ".join(re.split(r"(?=[><=])", each, maxsplit=1)) for each in needed}
    run = recipe[recipe.index("  run:\n") : recipe.index("\ntest:")]
    assert {line.strip()[2:] for line in run.splitlines()[1:] if line.strip()} == asked | {"python >=3.11"}
    assert f'version = "{streamcut.__version__}"' in recipe


def test_type_checkers_see_every_public_name():
    make_stub = runpy.run_path(str(ROOT / "scripts" / "tools" / "make_stub.py"))
    stub = (ROOT / "streamcut" / "__init__.pyi").read_text("utf-8")
    assert stub == make_stub["text"](), "run scripts/tools/make_stub.py"
    bound = {alias.asname for node in ast.walk(ast.parse(stub)) if isinstance(node, ast.ImportFrom) for alias in node.names}
    defined = {node.name for node in ast.walk(ast.parse(stub)) if isinstance(node, ast.FunctionDef)}
    assert {*streamcut.__all__} <= bound | defined | {"__version__"}
    assert (ROOT / "streamcut" / "py.typed").exists()
    assert set(PROJECT["tool"]["setuptools"]["package-data"]["streamcut"]) == {"py.typed", "__init__.pyi"}


def test_pages_that_docstrings_name_are_there_and_in_the_wheel():
    named = {
        (path.parent if "/" not in found else ROOT / "streamcut") / found
        for path in (ROOT / "streamcut").rglob("*.py")
        for found in re.findall(r"(?<![/\w-])((?:solvers/)?[a-z_]+\.md)\b", path.read_text("utf-8"))
    }
    pages = {page for folder in ("solvers", "papers") for page in (ROOT / "streamcut" / folder).glob("*.md")}
    assert {page.name for page in named} <= {page.name for page in pages}
    assert set((ROOT / "streamcut").rglob("*.md")) == pages
    data = PROJECT["tool"]["setuptools"]["package-data"]
    assert data["streamcut.solvers"] == data["streamcut.papers"] == ["*.md"]
