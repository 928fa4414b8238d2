"""When sweeps over cached rows end: once the next pass brings more for its work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

_PASS = 1.5  # entries of a sweep that take as long as an entry of a pass
LESS = 0.5  # of what a pass brought, the next one brings
LITTLE = 0.15  # the same after accelerated passes, and where lanes share the weights of many features


@dataclass(slots=True)
class Worth:
    """What the dual has risen by since a pass began, and for how much work: counted, so it is the same on any machine.

    Each sweep after a pass brings less than the one before. A new pass is the better choice once a sweep brings less for its work
    than a pass and the sweeps after it do in the mean: the marginal value theorem (Charnov 1976). What the next ones will bring
    is taken to be half of what these did. Where what is swept goes on in the momentum of the next passes, and where lanes that
    know nothing of each other spoil much of what a pass brings, less is: 0.15.

    rise    of the dual (units of F); of several problems (A)
    work    entries visited
    enough  sweeps end anyway when one brings no more than this
    part    of the mean that a sweep has to bring
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
