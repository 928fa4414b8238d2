"""How long a Dask worker may be silent: a busy machine is slow to send heartbeats, which is no reason to drop it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

from streamcut.foundation.machine import available_cpus

MOST = 5.0  # times --silence
_TICK = 0.04  # seconds between turns of the event loop of a responsive worker; Dask wants 0.02


def patience(silence: float, workers: Iterable[Mapping[str, Any]], *, local: bool) -> float:
    """Seconds: `silence`, and up to MOST times that, in proportion to the median delay of the event loops of the `workers` (the
    scheduler's record of each) or, for workers on this machine, to its load per processor."""
    turns = [float(worker.get("metrics", {}).get("event_loop_interval") or 0.0) for worker in workers]
    late = median(turns) / _TICK if turns else 1.0
    return silence * min(max(1.0, late, _load() if local else 0.0), MOST)


def _load() -> float:
    """Runnable processes per processor."""
    try:
        return os.getloadavg()[0] / available_cpus()
    except (AttributeError, OSError):  # not available on this system
        return 1.0
