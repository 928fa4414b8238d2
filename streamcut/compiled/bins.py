"""The histogram bin of a number."""

import numpy as np

from streamcut.compiler.jit import inlined


@inlined
def bin_of(k, edges, scale):
    """j with edges[j] ≤ k < edges[j + 1], for k between the first and the last of the ascending `edges`.

    scale  bins / (last edge − first edge). The formula only guesses the bin; comparison with the edges decides, so nested
    histograms never lose a number or count it twice. Between edges a few 1e-300 apart `scale` is infinite, and there is no guess.
    """
    bins = len(edges) - 1
    place = (k - edges[0]) * scale
    j = np.int64(place) if place < bins else bins - 1
    while k < edges[j]:
        j -= 1
    while k >= edges[j + 1]:
        j += 1
    return j
