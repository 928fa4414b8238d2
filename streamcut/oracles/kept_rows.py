"""The row state in checkpoints, regardless of where it lies: oracles neither gather nor copy it."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

import numpy as np

from streamcut.execution.runner import RowKeeper
from streamcut.models.checkpoint import Fill

_BEGIN = "rows."  # prefix of the names in a checkpoint


def kept_rows(rows: RowKeeper, but: Collection[str] = ()) -> dict[str, Any]:
    """The row state in a checkpoint: all arrays except `but`; release rows after each use."""
    return {f"{_BEGIN}{name}": array for name, array in rows.kept().items() if name not in but}


def refill_rows(rows: RowKeeper, fill: Fill, but: Collection[str] = ()) -> None:
    """Restore from a checkpoint what `kept_rows` kept."""

    def refill(name: str, out: np.ndarray, part: tuple[int, int] | None) -> None:
        fill(f"{_BEGIN}{name}", out, lambda: rows.release(0, rows.n_rows), rows.within.get(name), part)

    for name in [name for name in rows.kept() if name not in but]:
        rows.refill(name, partial(refill, name))
