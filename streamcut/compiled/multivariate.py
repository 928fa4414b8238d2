"""The worst labelling of all rows at once, by a search over contingency tables (Joachims 2005, algorithms 2 and 3).

A measure of all rows depends on a labelling only through how many positive rows it misses (`missed`) and how many negative ones
it accepts (`false_alarms`). Among labellings with the same two numbers the worst flips the positives of the lowest scores and the
negatives of the highest. So with scores in sorted order, a search over the numbers is a search over all labellings. Below m is
the number of rows; what is maximised is

    Δ(missed, false alarms) + (1/m)(Σ scores of the flipped negatives − Σ scores of the flipped positives).

The paper tries all tables of F₁, O(m²). With h hits fixed it is concave in the false alarms, and more hits make more false alarms
pay: the a-th adds 2h/((P + h + a)(P + h + a − 1)), which grows with h. So one walk along the positives, from the highest score
on, with a parallel walk along the negatives, finds the best table of each h: O(m) after the sort.

`codes` are 0 and 1. Both walks take their scores in pieces, as they come (streamcut.oracles.sorted_scores), and keep their state
in `counts` (int64) and `sums` (float64), so the split into pieces does not change the result.
"""

import numpy as np

from streamcut.compiled.vectors import compensated
from streamcut.compiler.jit import helper, kernel

HITS, ALARMS, BEST_HITS, BEST_ALARMS = range(4)  # `counts`
KEPT, GAINED, BEST, AT_NEGATIVE, AT_POSITIVE = 0, 2, 4, 5, 6  # `sums`; the first two are (total, rounding lost)
LAST_NEGATIVE, LAST_POSITIVE = 7, 8  # the last flipped scores; AT_…: at the best table


@kernel
def walk_f1(positives, negatives, P, N, counts, sums):
    """Continue the walk for F₁ through these pieces, both read from their ends; returns how many of each were used.

    The caller replaces a used-up piece by the next one; after the last positives or negatives that is an empty one.
    """
    i, j = 0, 0
    while True:
        hits = counts[HITS]
        while counts[ALARMS] < N:  # does one more pay?
            if j == len(negatives):
                return i, j
            negative = negatives[len(negatives) - 1 - j]
            size = np.float64(P + hits + counts[ALARMS] + 1)
            if not 2.0 * hits / (size * (size - 1.0)) + negative / (P + N) > 0.0:
                break
            _add(sums, GAINED, negative)
            sums[LAST_NEGATIVE] = negative
            counts[ALARMS] += 1
            j += 1
        gained = (sums[GAINED] + sums[KEPT]) + (sums[GAINED + 1] + sums[KEPT + 1])
        value = gained / (P + N) - 2.0 * hits / (P + hits + counts[ALARMS])
        if value > sums[BEST]:
            sums[BEST], counts[BEST_HITS], counts[BEST_ALARMS] = value, hits, counts[ALARMS]
            sums[AT_NEGATIVE] = sums[LAST_NEGATIVE]
        if i == len(positives):
            return i, j
        positive = positives[len(positives) - 1 - i]
        if hits == counts[BEST_HITS]:
            sums[AT_POSITIVE] = positive  # the highest missed there
        _add(sums, KEPT, positive)
        counts[HITS] += 1
        i += 1


@kernel
def walk_at_k(positives, negatives, fewest, full, rows, counts, sums):
    """Continue with labellings of k positives, one hit fewer at each step, until there are `fewest` or a piece is used up.

    `positives` are those that may be missed, from the lowest on; `negatives`, read from the end, replace them from the highest
    on. Returns the number of steps, which used as many of each. A hit counts 1/full.
    """
    steps = 0
    while True:
        value = (sums[GAINED] + sums[GAINED + 1]) / rows - counts[HITS] / full
        if value > sums[BEST]:
            sums[BEST], counts[BEST_HITS] = value, counts[HITS]
            sums[AT_NEGATIVE], sums[AT_POSITIVE] = sums[LAST_NEGATIVE], sums[LAST_POSITIVE]
        if counts[HITS] == fewest or steps == min(len(positives), len(negatives)):
            return steps
        positive, negative = positives[steps], negatives[len(negatives) - 1 - steps]
        _add(sums, GAINED, negative)
        _add(sums, GAINED, -positive)
        sums[LAST_NEGATIVE], sums[LAST_POSITIVE] = negative, positive
        counts[HITS] -= 1
        steps += 1


@kernel
def count_flips(scores, codes, thresholds, counts):
    """counts[c] += rows of class c that are certainly flipped; counts[2 + c] += those at the threshold.

    Positives (class 1) below thresholds[1] and negatives above thresholds[0].
    """
    for i in range(len(scores)):
        c = np.uint64(codes[i])
        if scores[i] == thresholds[c]:
            counts[np.uint64(2) + c] += 1
        elif (scores[i] < thresholds[c]) == (c == 1):
            counts[c] += 1


@kernel
def flip(scores, codes, thresholds, ties, coefficient, out, sums):
    """out[i] = coefficient for the negatives to flip, −coefficient for the positives, 0 for all others.

    At the thresholds the first ties[c] of each class are flipped; `ties` counts down. sums (total, rounding lost) +=
    Σ out[i]·scores[i].
    """
    for i in range(len(scores)):
        c = np.uint64(codes[i])
        out[i] = 0.0
        if scores[i] == thresholds[c]:
            flipped = ties[c] > 0
            ties[c] -= flipped
        else:
            flipped = (scores[i] < thresholds[c]) == (c == 1)
        if flipped:
            out[i] = -coefficient if c == 1 else coefficient
            _add(sums, 0, out[i] * scores[i])


@helper
def _add(sums, at, term):
    """Neumaier's step: (sums[at], sums[at + 1]) stands for their sum."""
    sums[at], sums[at + 1] = compensated(sums[at], sums[at + 1], term)
