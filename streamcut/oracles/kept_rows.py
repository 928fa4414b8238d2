"""Oracles whose row state is kept in checkpoints, wherever it lies."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from streamcut.execution.runner import Runner
from streamcut.models.checkpoint import StoredCheckpoint
from streamcut.models.kept import Kept

_BEGIN = "rows."  # prefix of the names in a checkpoint


class KeptRows(Kept):
    """An oracle on the rows of `_runner`: its row state is kept, too, except for the arrays `made_anew`; release it after use."""

    _runner: Runner
    made_anew: tuple[str, ...] = ()

    def saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        record, arrays = super().saved()
        rows = self._runner.row_state.arrays
        return record, {**arrays, **{f"{_BEGIN}{name}": rows[name] for name in rows if name not in self.made_anew}}

    def restore(self, record: dict[str, Any], stored: StoredCheckpoint) -> None:
        super().restore(record, stored)
        rows = self._runner.row_state
        for name, array in rows.arrays.items():
            if name not in self.made_anew:
                stored.fill(f"{_BEGIN}{name}", array, partial(rows.release, 0, rows.n_rows))

    def release(self) -> None:
        """Release the pages of the row state, if they live in scratch files."""
        self._runner.row_state.release(0, self._runner.row_state.n_rows)
