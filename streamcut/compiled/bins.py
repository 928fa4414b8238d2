"""Which bin of a histogram a number is in."""

import numpy as np

from streamcut.compiler.jit import inlined


@inlined
def bin_of(k, edges, scale):
    """j with edges[j] ≤ k < edges[j + 1], for k between the first and the last of the ascending `edges`.

    scale  bins / (last edge − first edge). The formula only guesses the bin, comparing with the edges decides: so histograms that
           are nested never lose or count a number twice. Between edges a few 1e-300 apart `scale` is infinite, and no guess.
    """
    bins = len(edges) - 1
    place = (k - edges[0]) * scale
    j = np.int64(place) if place < bins else bins - 1
    while k < edges[j]:
        j -= 1
    while k >= edges[j + 1]:
        j += 1
    return j
