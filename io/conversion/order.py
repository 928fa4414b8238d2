"""Whether rows come in the order of their labels, which training takes more passes for: counted as they are written."""

from __future__ import annotations

import numpy as np

from streamcut.io.manifest import Statistics

_FEWEST = 100  # rows: with fewer, order says nothing
_SHARE = 0.1  # of the changes that a random order would bring: there are fewer in rows in order


class LabelOrder:
    """Counts neighbours among rows whose label rises and falls."""

    def __init__(self) -> None:
        self._rows, self._rises, self._falls = 0, 0, 0
        self._last: float | None = None

    def add(self, y: np.ndarray) -> None:
        """The labels (n,) of the rows that come next."""
        if not len(y):
            return
        steps = np.diff(y, prepend=y[0] if self._last is None else self._last)
        self._rises += int(np.count_nonzero(steps > 0))
        self._falls += int(np.count_nonzero(steps < 0))
        self._rows += len(y)
        self._last = float(y[-1])

    def found(self, statistics: Statistics) -> bool:
        """Whether rows of these statistics came in order: classes one after another, or numbers ever larger or ever smaller."""
        if self._rows < _FEWEST:
            return False
        if statistics.labels is None:
            return min(self._rises, self._falls) < _SHARE * max(self._rises, self._falls)
        of_classes = np.array(list(statistics.labels.values())) / statistics.n_rows
        expected = self._rows * (1.0 - float(of_classes @ of_classes))
        return len(of_classes) > 1 and self._rises + self._falls < _SHARE * expected
