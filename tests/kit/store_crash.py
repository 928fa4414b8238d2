"""A store made block by block, which may be killed on the way, and the files that it consists of."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

import streamcut
from streamcut.errors import StreamcutError

N, BLOCK = 400, 90


def content(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def make(path: Path, backend: str = "zarr", *, scale: float = 1.0, **options) -> int:
    """Write 400 rows in 9 shards, `scale` times as large; returns how many of them an earlier run had stored."""
    rng = np.random.default_rng(5)
    X = np.where(rng.random((N, 30)) < 0.4, rng.normal(size=(N, 30)), 0.0) * scale
    y = np.where(X @ rng.normal(size=30) > 0, 1.0, -1.0)
    with streamcut.create(path, backend=backend, **{"shard_nnz": 600, "threads": 1, **options}) as out:
        stored = out.n_rows
        for first in range(stored, N, BLOCK):
            out.append(X[first : first + BLOCK], y[first : first + BLOCK])
    return stored


def forked(work: Callable[[], object], failpoint: str = "") -> int:
    """The exit code of a forked child that does `work`, or minus the signal that ended it."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            os.environ["STREAMCUT_FAILPOINT"], os.environ["STREAMCUT_FAILPOINT_RUN"] = failpoint, str(os.getpid())
            work()
            code = 0
        except StreamcutError as error:
            code = int(error.exit_code)
        except SystemExit as error:
            code = int(error.code or 0)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
