"""The row state in checkpoints, wherever it lies."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

from streamcut.execution.row_state import RowState
from streamcut.models.checkpoint import Fill

_BEGIN = "rows."  # prefix of the names in a checkpoint


def kept_rows(rows: RowState, but: Collection[str] = ()) -> dict[str, Any]:
    """The row state in a checkpoint: all arrays except `but`; release rows after each use."""
    return {f"{_BEGIN}{name}": array for name, array in rows.arrays.items() if name not in but}


def refill_rows(rows: RowState, fill: Fill, but: Collection[str] = ()) -> None:
    """Restore from a checkpoint what `kept_rows` kept."""
    for name, array in rows.arrays.items():
        if name not in but:
            fill(f"{_BEGIN}{name}", array, partial(rows.release, 0, rows.n_rows))
