"""Pairs of rows that ought to be ordered, counted by sorting: no list of pairs is ever made (Joachims 2006, section 3.2).

Rows come in groups, `starts[g]:starts[g + 1]` the rows of group g, and only rows of one group are compared. `levels` (int32)
number the different labels of a group from 0. A pair (i, j) of level_i > level_j costs max(0, 1 − (s_i − s_j)); it is active
when s_i − s_j < 1 in float64. The difference is rounded monotonically, so along sorted scores the active partners of a row are
contiguous, and both rows of a pair agree on it: the counts are exact regardless of ties.

Levels are numbered here (`number_levels`), so a tree made for the largest has a place for each.

The paper sweeps once for each level; here a Fenwick tree over the levels counts for all levels at once, O(m log R) after the
sort.
"""

import numpy as np

from streamcut.compiled.vectors import compensated
from streamcut.compiler.jit import allocating, helper, kernel

_FEW = 64  # rows: below this, insertion sort is faster than radix sort
GUIDED = 4  # mean number of values in a bin of the guide
_SHORT = np.uint64(16)  # values: below this, scanning all is faster than bisection


@kernel
def sort_scores(scores, keys, order, spare_keys, spare_order):
    """Sort in O(n): `order` (int32) becomes the positions in `scores` from the lowest on, stable for equal scores.

    `keys` (uint64) becomes the sorted scores (`keys.view(np.float64)`); all arrays are as long as `scores`.
    Radix sort by bytes of the bits that order float64 as integers; digits common to all keys are skipped.
    """
    n = len(scores)
    bits = scores.view(np.uint64)
    sign = np.uint64(1) << np.uint64(63)
    for i in range(n):
        keys[i] = ~bits[i] if bits[i] & sign else bits[i] | sign
        order[i] = i
    if n <= _FEW:
        for i in range(1, n):
            key, place = keys[i], order[i]
            j = i
            while j > 0 and keys[j - 1] > key:
                keys[j], order[j] = keys[j - 1], order[j - 1]
                j -= 1
            keys[j], order[j] = key, place
    else:
        _sort_by_digits(keys, order, spare_keys, spare_order)
    for i in range(n):
        keys[i] = keys[i] & ~sign if keys[i] & sign else ~keys[i]


@allocating
def _sort_by_digits(keys, order, spare_keys, spare_order):
    n = len(keys)
    counts = np.zeros((8, 256), np.int64)
    for i in range(n):
        for digit in range(8):
            counts[digit, (keys[i] >> np.uint64(8 * digit)) & np.uint64(255)] += 1
    a_keys, a_order, b_keys, b_order = keys, order, spare_keys, spare_order
    moved = False
    for digit in range(8):
        shift = np.uint64(8 * digit)
        starts = counts[digit]
        if starts[(a_keys[0] >> shift) & np.uint64(255)] == n:
            continue
        place = 0
        for value in range(256):
            place, starts[value] = place + starts[value], place
        for i in range(n):
            value = (a_keys[i] >> shift) & np.uint64(255)
            to = np.uint64(starts[value])
            starts[value] += 1
            b_keys[to] = a_keys[i]
            b_order[to] = a_order[i]
        a_keys, b_keys = b_keys, a_keys
        a_order, b_order = b_order, a_order
        moved = not moved
    if moved:
        for i in range(n):  # `keys[:] = spare_keys` takes seconds to compile, for its error message on different lengths
            keys[i], order[i] = spare_keys[i], spare_order[i]


@kernel
def number_levels(labels, starts, keys, order, spare_keys, spare_order, levels):
    """Fills `levels` with the number, from 0, of each row's label among the different ones of its group.

    The other arrays are scratch, as long as the largest group.
    """
    for g in range(len(starts) - 1):
        first, n = starts[g], starts[g + 1] - starts[g]
        sort_scores(labels[first : first + n], keys[:n], order[:n], spare_keys[:n], spare_order[:n])
        values = keys[:n].view(np.float64)
        level = 0
        for i in range(n):
            if i > 0 and values[i] != values[i - 1]:
                level += 1
            levels[first + order[i]] = level


@kernel
def count_pairs(levels, starts, tree, pairs):
    """pairs[g] = number of pairs in group g. `tree` (int64): as long as the most levels in any group."""
    for g in range(len(starts) - 1):
        first, last = starts[g], starts[g + 1]
        top = 0
        for i in range(first, last):
            top = max(top, levels[i])
        tree[: top + 1] = 0
        for i in range(first, last):
            tree[levels[i]] += 1
        total = 0
        below = 0
        for level in range(top + 1):
            total += tree[level] * below
            below += tree[level]
        pairs[g] = total


@kernel
def hinge_pairs(levels, starts, weights, scores, keys, order, spare_keys, spare_order, tree, out, sums):
    """Coefficients of the rows at `scores`, and sums over all active pairs, a pair in group g counting weights[g].

    With c⁺_i = #{active (i, ·)} and c⁻_i = #{active (·, i)} fills out[i] = weights[g](c⁻_i − c⁺_i), so that the loss at other
    scores s′ is at least Σ out_i s′_i + Σ_active weights[g]. Adds to the float64 pairs (total, rounding lost) in `sums` (2, 2):
    the loss Σ_active weights[g](1 − (s_i − s_j)) to sums[0], Σ_active weights[g] to sums[1].

    `tree` (int64) has one place more than any group has levels; the four arrays before it are as long as the largest group.
    """
    for g in range(len(starts) - 1):
        first, n = starts[g], starts[g + 1] - starts[g]
        top = 0
        for i in range(first, first + n):
            top = max(top, levels[i])
        if top == 0:
            out[first : first + n] = 0.0
            continue
        sort_scores(scores[first : first + n], keys[:n], order[:n], spare_keys[:n], spare_order[:n])
        s = keys[:n].view(np.float64)
        level = spare_order[:n]
        for t in range(n):
            level[t] = levels[first + order[t]]
        size = top + 1
        tree[: size + 1] = 0
        added = 0
        for t in range(n):  # partners above: s_j − s_t < 1, level_j > level_t
            while added < n and s[added] - s[t] < 1.0:
                count_level(tree, level[added], size, 1)
                added += 1
            out[first + order[t]] = added - below(tree, level[t] + 1)
        tree[: size + 1] = 0
        added, active = n, 0
        middle = s[n // 2]  # Σ out = 0 in a group: a shift of the scores changes only the rounding
        loss, lost = 0.0, 0.0
        for t in range(n - 1, -1, -1):  # partners below: s_t − s_j < 1, level_j < level_t
            while added > 0 and s[t] - s[added - 1] < 1.0:
                added -= 1
                count_level(tree, level[added], size, 1)
            row = first + order[t]
            wins = below(tree, level[t])
            active += wins
            out[row] -= wins
            loss, lost = compensated(loss, lost, out[row] * (s[t] - middle))
            out[row] *= weights[g]
        loss, lost = compensated(loss, lost, np.float64(active))
        sums[0, 0], sums[0, 1] = compensated(sums[0, 0], sums[0, 1], weights[g] * (loss + lost))
        sums[1, 0], sums[1, 1] = compensated(sums[1, 0], sums[1, 1], weights[g] * active)


@kernel
def fill_guide(values, low, scale, guide):
    """An index to ascending `values`: those from `low` on are in bin ⌊(value − low)·scale⌋ or the last one, others in bin 0.

    guide[b] (int32) becomes the place of the first value of bin b or later, its last entry the number of values.
    """
    bins, b = len(guide) - 1, 0
    for i in range(len(values)):
        last = _bin(values[i], low, scale, bins)
        while b <= last:
            guide[b] = i
            b += 1
    guide[b:] = len(values)


@kernel
def count_partners(scores, codes, lower, upper, partner, up_to, total, values, guide, origin, scale, out):
    """Adds to `out` the part of c⁻_i − c⁺_i of the rows from one range and one level; see `hinge_pairs`.

    `values`, ascending, are the scores strictly between `lower` and `upper` of the `total` rows of level `partner`; `up_to` of
    them have scores up to `lower`. Rows whose last active partner is in another range are unchanged. Returns the number of
    active pairs in which the partner is the lower one.
    """
    active = 0
    for i in range(len(scores)):
        s, level = scores[i], codes[i]
        above = (level < partner) & (lower - s < 1.0) & (upper - s >= 1.0)  # seldom true with many ranges: no other branch
        below = (level > partner) & (s - lower >= 1.0) & (s - upper < 1.0)
        if above:
            out[i] += up_to + _above_margin(values, guide, origin, scale, s)
        elif below:
            wins = total - up_to - _below_margin(values, guide, origin, scale, s)
            out[i] -= wins
            active += wins
    return active


@helper
def _above_margin(values, guide, origin, scale, s):
    """Number of values v with v − s < 1."""
    first, last = _bracket(guide, origin, scale, s, s + 1.0)
    while last - first > _SHORT:
        middle = (first + last) >> np.uint64(1)
        if values[middle] - s < 1.0:
            first = middle + np.uint64(1)
        else:
            last = middle
    count = np.int64(first)
    for t in range(first, last):
        count += values[t] - s < 1.0
    return count


@helper
def _below_margin(values, guide, origin, scale, s):
    """Number of values v with not s − v < 1."""
    first, last = _bracket(guide, origin, scale, s, s - 1.0)
    while last - first > _SHORT:
        middle = (first + last) >> np.uint64(1)
        if not s - values[middle] < 1.0:
            first = middle + np.uint64(1)
        else:
            last = middle
    count = np.int64(first)
    for t in range(first, last):
        count += not s - values[t] < 1.0
    return count


@helper
def _bracket(guide, origin, scale, s, at):
    """Positions between which the values cross `at` = s ± 1; it is rounded, as are differences from s, hence the allowance."""
    bins = len(guide) - 1
    allowance = 4e-16 * (1.0 + abs(s))
    first = guide[np.uint64(_bin(at - allowance, origin, scale, bins))]
    last = guide[np.uint64(_bin(at + allowance, origin, scale, bins) + 1)]
    return np.uint64(first), np.uint64(last)


@helper
def _bin(value, origin, scale, bins):
    place = (value - origin) * scale
    if not place > 0.0:
        return 0
    return bins - 1 if place >= bins else np.int64(place)


@helper
def count_level(tree, level, size, change):
    """Add `change` rows of `level` to the Fenwick tree over `size` levels."""
    place = level + 1
    while place <= size:
        tree[place] += change
        place += place & -place


@helper
def below(tree, level):
    """Number of rows of a level below `level` in the Fenwick tree."""
    count = 0
    place = level
    while place > 0:
        count += tree[place]
        place -= place & -place
    return count
