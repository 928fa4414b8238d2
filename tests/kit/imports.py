"""Every module of the package, and where it stands."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


MODULES = {  # by dotted name; io/x.py is streamcut.io.x
    ".".join((prefix, *path.relative_to(folder).with_suffix("").parts)).removesuffix(".__init__"): path
    for folder, prefix in ((ROOT / "streamcut", "streamcut"), (ROOT / "io", "streamcut.io"))
    for path in folder.rglob("*.py")
}
