"""When sweeps over cached rows end: once the next pass brings more for its work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

_PASS = 1.5  # entries of a sweep that cost as much as one entry of a pass
LESS = 0.5  # of the gain of a pass: the expected gain of the next
LITTLE = 0.15  # the same after accelerated passes, and where lanes share weights of many features


@dataclass(slots=True)
class Worth:
    """The rise of the dual since a pass began, and the work done: counted, hence the same on any machine.

    Each sweep after a pass gains less than the one before. A new pass is the better choice once a sweep gains less for its work
    than a pass and its sweeps do on average: the marginal value theorem (Charnov 1976). The gain of the next ones
    is taken to be half of the present gain. Where sweeps feed the momentum of the next passes, and where independent lanes
    spoil much of a pass's gain, it is less: 0.15.

    rise    of the dual (units of F); of several problems (A)
    work    entries visited
    enough  sweeps end in any case when one gains no more than this
    part    of the mean gain that a sweep must reach
    """

    rise: Any
    work: float
    enough: Any
    part: float = LESS

    @classmethod
    def after(cls, entries: int, rise: Any, enough: Any, part: float = LESS) -> Worth:
        """A pass over `entries` with this rise of the dual; with a `part` of 0 only `enough` ends sweeps."""
        return cls(np.maximum(rise, 0.0), _PASS * max(entries, 1), enough, part)

    def goes_on(self, rise: Any, work: Any) -> Any:
        """Whether another sweep follows one that brought `rise`; of several problems (A)."""
        self.rise, self.work = self.rise + rise, self.work + work
        return (rise > self.enough) & (rise > self.part * self.rise / self.work * work)
