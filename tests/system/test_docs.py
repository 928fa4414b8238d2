"""The pages in docs/ are true: their Python blocks run, each by itself, and print what stands below them."""

from __future__ import annotations

import lzma
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```\n\n((?:    [^\n]*\n)+)", re.MULTILINE | re.DOTALL)
EXAMPLES = [
    pytest.param(code, printed, id=f"{page.stem}-{number}")
    for page in sorted(DOCS.glob("*.md"))
    for number, (code, printed) in enumerate(BLOCK.findall(page.read_text("utf-8")))
]


def test_every_block_says_what_it_prints():
    text = "".join(page.read_text("utf-8") for page in DOCS.glob("*.md"))
    assert len(EXAMPLES) == text.count("```python") >= 2


@pytest.mark.thirds
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
