"""A conversion of test rows, block by block, as a source would do it, and what it leaves."""

from __future__ import annotations

from pathlib import Path

BLOCK = 90


def content(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}
