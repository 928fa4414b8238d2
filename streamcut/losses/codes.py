"""How rows remember their shares: 16 bits for shares in [0, 1], 32-bit floats for others.

A cut is summed from the remembered shares without further rounding, so both agree.
"""

from __future__ import annotations

import numpy as np

from streamcut.compiled.shares import code_of, share_of
from streamcut.losses.loss import Loss


class UnitShares(Loss):
    """Shares in [0, 1] as 16-bit codes q, f = (q / 65535)²: exact at both bounds and fine near 0."""

    __slots__ = ()
    code_type = np.uint16

    def lowest(self, y):
        return 0.0

    def highest(self, y):
        return 1.0

    def encode(self, f):
        return code_of(f)

    def decode(self, code, y):
        return share_of(code)

    def largest_sums(self, rows, scale):
        """For losses of labels whose constant is at most 1 in size."""
        return scale.weight, scale.weight, np.inf


class FloatShares(Loss):
    """Shares as 32-bit floats; codes at or beyond those nearest the bounds stand for the bounds themselves."""

    __slots__ = ()
    code_type = np.float32

    def encode(self, f):
        return np.float32(f)

    def decode(self, code, y):
        if code >= np.float32(self.highest(y)):
            return self.highest(y)
        if code <= np.float32(self.lowest(y)):
            return self.lowest(y)
        return np.float64(code)
