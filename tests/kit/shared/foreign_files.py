"""What tests/hostile/test_foreign_files.py and tests/inside/hostile/test_foreign_files.py share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROWS = "1 1:1 3:0.5\n-1 2:1\n1 1:2\n-1 2:2 3:-1\n"
USAGE = 2


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    (tmp_path / "a.svm").write_text(ROWS * 20)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tree(folder: Path) -> dict[str, bytes | str]:
    found: dict[str, bytes | str] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        found[name] = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else "folder"
    return found
