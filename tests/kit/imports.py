"""Every module of the package, and where it stands."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def _modules() -> dict[str, Path]:
    """Every module of the package by its dotted name; io/x.py is streamcut.io.x."""
    found = {}
    for folder, prefix in ((ROOT / "streamcut", "streamcut"), (ROOT / "io", "streamcut.io")):
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            found[".".join((prefix, *parts)).removesuffix(".__init__")] = path
    return found


MODULES = _modules()
