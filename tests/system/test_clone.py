"""A clone is a package: Python in its root imports streamcut, and importing it loads nothing heavy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import streamcut

pytestmark = pytest.mark.smoke


ROOT = Path(__file__).resolve().parents[2]
BARE = f"import sys; sys.path += {[entry for entry in sys.path if entry and Path(entry) != ROOT]!r}; "  # no .pth file is read


def said(code: str) -> str:
    """What a Python in the root of the clone prints, for which no install has mapped io/ to streamcut.io."""
    run = subprocess.run([sys.executable, "-S", "-c", BARE + code], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_it_trains():
    code = "import numpy, streamcut; print(streamcut.train((numpy.eye(4), [1, 1, -1, -1]), max_passes=9).converged)"
    assert said(code) == "True"


def test_each_folder_has_one_name():
    code = """
import io, streamcut
streamcut.train
from pathlib import Path
names = {}
for name, module in [*sys.modules.items()]:
    if getattr(module, "__file__", None):
        names.setdefault(Path(module.__file__).resolve(), set()).add(name)
ours = {file: names[file] for file in names if str(file).startswith(%r)}
print({file: each for file, each in ours.items() if len(each) > 1} or "once", len(ours) > 20)
print(Path(streamcut.io.__file__).resolve(), io.StringIO.__module__)
"""
    once, places = said(code % ((f"{ROOT}/streamcut/", f"{ROOT}/io/"),)).splitlines()
    assert once == "once True"
    assert places == f"{ROOT / 'io' / '__init__.py'} _io"


def test_importing_streamcut_loads_nothing_heavy():
    loaded = set(said("import streamcut; dir(streamcut); print(*sys.modules)").split())
    assert "streamcut" in loaded
    assert not loaded & {"numpy", "numba", "scipy", "zarr", "sklearn"}


def test_every_public_name_loads():
    for name in streamcut.__all__:
        assert getattr(streamcut, name), name
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = streamcut.nonsense
