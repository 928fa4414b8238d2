"""Tutorials and pages are true: their commands run, in order, their Python each by itself, and print what stands below them."""

from __future__ import annotations

import lzma
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
BLOCK = re.compile(r"^```python\n(.*?)^```\n\n((?:    [^\n]*\n)+)", re.MULTILINE | re.DOTALL)
EXAMPLES = [
    pytest.param(code, printed, id=f"{page.stem}-{number}")
    for page in sorted((ROOT / "docs").glob("*.md"))
    for number, (code, printed) in enumerate(BLOCK.findall(page.read_text("utf-8")))
]
NEEDS = {"cells": ("anndata",), "cluster": ("distributed", "moto", "obstore")}


@pytest.fixture(scope="module")
def pages() -> dict:
    return runpy.run_path(str(ROOT / "scripts" / "tools" / "fill_pages.py"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_print_what_stands_below_them(page, pages, tmp_path):
    for module in NEEDS.get(page.stem, ()):
        pytest.importorskip(module)
    shown = 0
    for block, printed in pages["outputs"](page, tmp_path):
        if block[3] is not None:
            shown += 1
            assert pages["same"](block[3], printed), (
                f"{block[2]}\nprints\n{printed}\nscripts/tools/fill_pages.py {page} puts it there"
            )
    assert shown >= 1


def test_an_ellipsis_stands_for_anything_and_nothing_else_does(pages):
    assert pages["same"]("read in … s\n…\nend\n", "read in 1.2 s\na\nb\nend\n")
    assert not pages["same"]("read in … s\n", "read in 1.2 s, a lot\n")


def test_the_last_digits_may_be_another_processors(pages):
    assert pages["same"]("a,0.45052917747719157\n", "a,0.4505291774771676\n")
    assert not pages["same"]("a,0.45052917747719157\n", "a,0.4505291784771676\n")


def test_every_page_is_in_the_navigation_once():
    named = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    made = set(re.findall(r'"(reference/\w+\.md)"', (ROOT / "scripts" / "tools" / "site_pages.py").read_text()))
    there = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert len(PAGES) == 5
    assert sorted(named) == sorted(there | made)


def test_every_block_says_what_it_prints():
    text = "".join(page.read_text("utf-8") for page in (ROOT / "docs").glob("*.md"))
    assert len(EXAMPLES) == text.count("```python") >= 2


@pytest.mark.parametrize(("code", "printed"), EXAMPLES)
def test_examples_print_what_stands_below_them(code, printed, tmp_path, request):
    for name in re.findall(r'load_svmlight_file\("(\w+)"\)', code):
        packed = request.getfixturevalue("data_dir") / name / "train.svm.xz"
        if not packed.is_file():
            pytest.skip(f"no {name}/train.svm.xz among the data sets")
        (tmp_path / name).write_bytes(lzma.decompress(packed.read_bytes()))
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == re.sub(r"^    ", "", printed, flags=re.MULTILINE)
