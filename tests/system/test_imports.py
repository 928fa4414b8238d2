"""Who may import whom: imports go downwards only, whether they stand at the top of a module or inside a function."""

from __future__ import annotations

import subprocess
import sys

import pytest

import streamcut

pytestmark = pytest.mark.smoke


def _loaded_by(code: str) -> set[str]:
    command = [sys.executable, "-P", "-c", f"{code}\nimport sys; print(*sys.modules)"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(run.stdout.split("\n")[-2].split())


def test_importing_streamcut_loads_nothing_heavy():
    loaded = _loaded_by("import streamcut; dir(streamcut)")
    assert "streamcut" in loaded
    assert not loaded & {"numpy", "numba", "scipy", "zarr", "sklearn"}


def test_every_public_name_loads():
    for name in streamcut.__all__:
        assert getattr(streamcut, name), name
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = streamcut.nonsense
