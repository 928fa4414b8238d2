"""What tests/system/test_system_faults.py and tests/inside/system/test_system_faults.py share."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from streamcut.errors import StreamcutError

NOBODY = 65534
LIMITS = {"C": 0.1, "lanes": 2, "max_passes": 12, "tol": 1e-7, "tol_relative": None}


@cache
def rows() -> tuple[sp.csr_array, np.ndarray]:
    rng = np.random.default_rng(0)
    X = sp.random_array((600, 20), density=0.3, format="csr", rng=rng, data_sampler=rng.standard_normal)
    return X, np.where(X @ rng.standard_normal(20) + 0.3 * rng.standard_normal(600) > 0, 1.0, -1.0)


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that others may enter: pytest's own are closed to them."""
    with tempfile.TemporaryDirectory(prefix="streamcut-test-") as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.fixture
def text(folder) -> Path:
    X, y = rows()
    lines = (
        f"{label:g} " + " ".join(f"{j + 1}:{value:.9g}" for j, value in zip(X[[i]].indices, X[[i]].data, strict=True))
        for i, label in enumerate(y)
    )
    path = folder / "a.svm"
    path.write_text("\n".join(lines) + "\n")
    return path


def forked(work: Callable[[], object]) -> int:
    """The process id of a forked child that does `work` and ends with its exit code."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    except StreamcutError as error:
        code = int(error.exit_code)
    except SystemExit as error:
        code = int(error.code)
    finally:
        os._exit(code)


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def unprivileged(work: Callable[[], object]) -> int:
    """The exit code of `work` in a process for which permissions count: root gives its rights away."""

    def dropped() -> None:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
        work()

    return ended(forked(dropped))
