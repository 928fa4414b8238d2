"""Shares of a row in K classes as 16-bit codes. A code q of every class except the target stands for p = (q / 65535)²; the target
has the rest. Codes are exact at both ends, where most shares of a bounded loss are, and fine near 0. They are the nearest ones,
and those below only if these add up to more than 1: all rounded down, each pass first regains what rounding has lost (77
classes of text, C = 10: more than 100 passes, not 16).
"""

import numpy as np

from streamcut.compiled import loss as methods  # noqa: F401  (kernels call methods of losses)
from streamcut.compiled.shares import code_of, share_of
from streamcut.compiler.jit import allocating, inlined, kernel


@inlined
def code_below(share):
    """The code of a share, rounded down."""
    return np.uint16(np.sqrt(share) * 65535.0)


@kernel
def encode(t, share, codes):
    """codes (K,) = the codes of `share`; the target's is 0."""
    total = 0.0
    for k in range(len(share)):
        codes[k] = code_of(max(share[k], 0.0)) if k != t else np.uint16(0)
        total += share_of(codes[k])
    if total > 1.0:
        for k in range(len(share)):
            codes[k] = code_below(share[k]) if share[k] > 0.0 and k != t else np.uint16(0)


@kernel
def decode(t, codes, share):
    """share (K,) = the shares of `codes`; the target has the rest."""
    others = 0.0
    for k in range(len(share)):
        share[k] = share_of(codes[k])
        others += share[k]
    share[t] = max(0.0, 1.0 - others)


@allocating
def remember(loss, target, z, codes):
    """Sets slot 0 of codes (n, T, K) to the shares of the loss at scores z (n, K): its slope without the target's part."""
    share = np.empty(z.shape[1])
    for i in range(len(z)):
        loss.dual(z[i], target[i], share)
        encode(target[i], share, codes[i, 0])
