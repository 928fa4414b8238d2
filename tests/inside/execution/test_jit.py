"""The cache of machine code: it knows all sources behind a kernel, and never loads what is damaged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import numpy as np
from streamcut.compiled import columns, linear, shares
from streamcut.compiler import jit
assert any(path.endswith("shares.py") for path in jit._sources("streamcut.compiled.columns"))
out = np.zeros(1)
linear.scores(np.array([0, 1]), np.array([0], np.int32), None, np.array([2.0]), 0.0, out)
assert out[0] == 2.0
print(len(linear.scores.stats.cache_misses))
"""


def _run(folder: Path, code: str = CODE, warning: str = "", checked: bool = False) -> str:
    env = {**os.environ, "STREAMCUT_KERNELS": "", "NUMBA_CACHE_DIR": str(folder), "NUMBA_BOUNDSCHECK": str(int(checked))}
    run = subprocess.run([sys.executable, "-P", "-c", code], env=env, capture_output=True, text=True, check=True)
    assert run.stderr.count("\n") == bool(warning)
    assert warning in run.stderr
    return run.stdout.strip()


@pytest.fixture(scope="module")
def filled(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    assert _run(folder) == "1"
    assert _run(folder) == "0"
    return folder


def _flip(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[: len(content) // 2],
        lambda content: _flip(content, len(content) // 2),
    ],
    ids=["empty", "truncated", "flipped"],
)
def test_a_damaged_cache_is_compiled_anew(filled, damage):
    files = list(filled.rglob("linear.scores*.nbc"))
    assert len(files) == 1
    files[0].write_bytes(damage(files[0].read_bytes()))
    assert _run(filled) == "1"
    assert _run(filled) == "0"


def test_another_source_of_a_helper_is_seen(filled):
    edited = CODE.replace("out = ", "jit._stamp = lambda name: 'edited'\nout = ")
    assert _run(filled, edited) == "1"
    assert _run(filled) == "0"  # what belongs to the sources as they are is still there


def test_another_source_of_a_record_among_the_arguments_is_seen():
    """A loss is an argument: the file of a kernel does not import it."""
    import numba

    from streamcut.compiled.records import Held
    from streamcut.compiler import jit
    from streamcut.losses.hinge import Hinge

    nested = numba.typeof((1, Hinge()))
    found = set(jit._record_modules((nested, numba.typeof(Held(*[0] * len(Held._fields))), numba.float64)))
    assert found == {"streamcut.compiled.records", *(f"streamcut.losses.{name}" for name in ("hinge", "codes", "loss"))}
