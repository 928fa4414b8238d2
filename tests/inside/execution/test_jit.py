"""The cache of machine code: it knows all sources behind a kernel, and never loads what is damaged."""

from __future__ import annotations

import os
import subprocess
import sys

import numba

from streamcut.compiled import columns
from streamcut.compiled.records import Held
from streamcut.compiler import jit
from streamcut.losses.hinge import Hinge

CODE = """
import numpy as np
from streamcut.compiled import linear
from streamcut.compiler import jit
out = np.zeros(1)
linear.scores(np.array([0, 1]), np.array([0], np.int32), None, np.array([2.0]), 0.0, out)
assert out[0] == 2.0
print(len(linear.scores.stats.cache_misses))
"""


def compiled(folder, code: str = CODE) -> int:
    """How many kernels a process compiles because the cache in `folder` lacks them."""
    env = {**os.environ, "STREAMCUT_KERNELS": "", "NUMBA_CACHE_DIR": str(folder), "NUMBA_BOUNDSCHECK": "0"}
    run = subprocess.run([sys.executable, "-P", "-c", code], env=env, capture_output=True, text=True, check=True)
    assert run.stderr == ""
    return int(run.stdout)


def test_what_is_damaged_or_of_other_sources_is_compiled_anew(tmp_path):
    assert compiled(tmp_path) == 1
    (file,) = tmp_path.rglob("linear.scores*.nbc")
    content, middle = file.read_bytes(), file.stat().st_size // 2
    for damaged in (content[:middle], content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]):
        file.write_bytes(damaged)
        assert compiled(tmp_path) == 1
    edited = CODE.replace("out = ", "jit._stamp = lambda name: 'edited'\nout = ")
    assert compiled(tmp_path, edited) == 1
    assert compiled(tmp_path) == 0  # what belongs to the sources as they are is still there


def test_sources_of_helpers_and_of_records_among_the_arguments_count():
    """A loss is an argument: the file of a kernel does not import it."""
    assert any(path.endswith("linear.py") for path in jit._sources(columns.__name__))
    nested = numba.typeof((1, Hinge()))
    modules = set(jit._record_modules((nested, numba.typeof(Held(*[0] * len(Held._fields))), numba.float64)))
    assert modules == {"streamcut.compiled.records", *(f"streamcut.losses.{name}" for name in ("hinge", "loss"))}
