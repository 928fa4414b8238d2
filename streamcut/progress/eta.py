"""Estimated time until the gap is within the tolerance, from its recent decrease."""

from __future__ import annotations

import math
from collections import deque
from itertools import combinations
from statistics import median

_WINDOW = 12  # the last iterations: the rate changes as training continues
_FEWEST = 4
_LONGEST = 10 * 365 * 86400  # seconds: a slower gap counts as not falling


class Eta:
    """Seconds until a falling gap is within the tolerance, if it continues falling at the rate of the last iterations.

    The rate is the median of the slopes of log(gap) over time between all pairs of them (Theil and Sen): a third of all
    iterations may be out of line, such as one that found a much better point or waited for a disk.
    """

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float]] = deque(maxlen=_WINDOW)

    def after(self, seconds: float, gap: float, allowed: float) -> float | None:
        """Seconds left after an iteration that ended at `seconds` with `gap`; training converges at `allowed`.

        None while unknown: too few iterations, a gap that does not fall, or no tolerance (0).
        """
        if not (0.0 < gap < math.inf and allowed > 0.0):
            return None
        self._seen.append((seconds, math.log(gap)))
        if gap <= allowed:
            return 0.0
        if len(self._seen) < _FEWEST:
            return None
        pairs = combinations(self._seen, 2)
        slopes = [(late - early) / (then - now) for (now, early), (then, late) in pairs if then > now]
        rate = -median(slopes) if slopes else 0.0
        missing = math.log(gap / allowed)
        return missing / rate if missing < _LONGEST * rate else None
