"""Ranking quality of scores within queries: swapped pairs, NDCG and average precision.

Rows of query g are starts[g]:starts[g + 1], those of the highest score first; all arrays are in that order, one entry per row.
Levels are ranks among the labels of a query, so none is above its number of rows.
"""

import numpy as np

from streamcut.compiled.pairs import below, count_level
from streamcut.compiler.jit import helper, kernel


@kernel
def swapped_pairs(levels, scores, starts, tree, swapped):
    """swapped[g] = pairs of rows of query g in which the higher level has the lower score; equal scores count half.

    `levels` (int64) number the labels of a query from 0. `tree` (int64): one place more than any query has levels.
    """
    for g in range(len(starts) - 1):
        first, last = starts[g], starts[g + 1]
        size = 1
        for i in range(first, last):
            size = max(size, levels[i] + 1)
        tree[: size + 1] = 0
        twice = 0
        start = first
        while start < last:
            stop = _end_of_ties(scores, start, last)
            for i in range(start, stop):
                twice += below(tree, levels[i])
            for i in range(start, stop):
                count_level(tree, levels[i], size, 1)
            for i in range(start, stop):
                twice += below(tree, levels[i])
            start = stop
        swapped[g] = 0.5 * twice


@kernel
def gains_and_precision(gains, relevant, scores, starts, ideal, cutoffs, ndcg, precision):
    """ndcg[g, c] = NDCG at the first cutoffs[c] rows with discount 1/log₂(1 + place); precision[g] = average precision.

    `gains` (float64) and `relevant` (bool) of the rows, `ideal` the gains of each query in descending order. Rows of equal scores
    share their gains, and the precision at each is that after the last. 0 if nothing is relevant.
    """
    for g in range(len(starts) - 1):
        first, last = starts[g], starts[g + 1]
        for c in range(len(cutoffs)):
            best = 0.0
            for i in range(first, min(last, first + cutoffs[c])):
                best += ideal[i] / np.log2(2.0 + (i - first))
            reached = 0.0
            start = first
            while start < min(last, first + cutoffs[c]):
                stop = _end_of_ties(scores, start, last)
                gain, discount = 0.0, 0.0
                for i in range(start, stop):
                    gain += gains[i]
                    if i < first + cutoffs[c]:
                        discount += 1.0 / np.log2(2.0 + (i - first))
                reached += gain / (stop - start) * discount
                start = stop
            ndcg[g, c] = reached / best if best > 0.0 else 0.0
        found, total = 0, 0.0
        start = first
        while start < last:
            stop = _end_of_ties(scores, start, last)
            new = 0
            for i in range(start, stop):
                new += relevant[i]
            found += new
            total += new * (found / (stop - first))
            start = stop
        precision[g] = total / found if found else 0.0


@helper
def _end_of_ties(scores, start, last):
    stop = start + 1
    while stop < last and scores[stop] == scores[start]:
        stop += 1
    return stop
