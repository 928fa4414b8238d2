"""How long a Dask worker may be silent: a machine that is busy is slow to say that it is there, which is no reason to lose it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

from streamcut.foundation.machine import available_cpus

MOST = 5.0  # times --silence
_TICK = 0.04  # seconds between two turns of the event loop of a worker that is not late; Dask wants them every 0.02


def patience(silence: float, workers: Iterable[Mapping[str, Any]], *, local: bool) -> float:
    """Seconds: `silence`, and up to MOST times as long as the event loops of the `workers` (what the scheduler knows of each)
    are late in the middle, or of workers on this machine as it has more to run than processors."""
    turns = [float(worker.get("metrics", {}).get("event_loop_interval") or 0.0) for worker in workers]
    late = median(turns) / _TICK if turns else 1.0
    return silence * min(max(1.0, late, _load() if local else 0.0), MOST)


def _load() -> float:
    """Processes that want to run, for each processor."""
    try:
        return os.getloadavg()[0] / available_cpus()
    except (AttributeError, OSError):  # a system without it
        return 1.0
