"""Waiting for what happens elsewhere: never for a time, always for an event."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path


def until(happened: Callable[[], object], what: str = "what was waited for", seconds: float = 120.0) -> None:
    """Returns as soon as `happened()` is true; AssertionError, saying `what`, after so many seconds that it is not."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, f"{what} did not happen in {seconds:g} s"
        time.sleep(0.002)


def state_of(process: int) -> str:
    """R, S, D, T (stopped), Z (ended) or another letter of the kernel's."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0]


def blocked(process: int) -> int:
    """How often the main thread of a process has waited so far."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status, re.M)[1])
