"""Dual coordinate ascent for K columns over copies of rows in a cache, with the steps of streamcut.compiled.columns.

`cached` are records.CachedRows with the shares of the pairs (rows, A), and the target or the class of each row.
listed[i, :count[i]] are the columns of row i that may still move.
"""

import numpy as np

from streamcut.compiled import loss as methods  # noqa: F401  (kernels call methods of losses)
from streamcut.compiled.column_weights import add_changes, add_steps, number_of, scores
from streamcut.compiled.columns import (
    FAR,
    bent_along,
    count_of,
    exact_step,
    gain_of_step,
    is_left_out,
    note_change,
    slot_of,
    target_of_pair,
)
from streamcut.compiled.linear import square_of
from streamcut.compiled.records import AHEAD, entries_of, entry, fetch_cached, put, weight_of
from streamcut.compiled.splitmix import joined, shuffle
from streamcut.compiler.jit import helper, kernel

_GROUP_NNZ = 1 << 18  # entries of neighbouring rows that a sweep visits in random order before it moves on
_GROUPS = 8  # with fewer groups all rows are shuffled: they fit in the processor's cache anyway
_NEXT = 0.15  # of the gain of a pass: the expected gain of the next
_SLACK = 0.1  # of the largest violation of a sweep: pairs at a bound and further from leaving it wait for the next pass


@kernel
def offer(loss, first, rows, columns, pairs, half, numbers, limit, n, cached, count, listed):
    """Copies rows from `first` on with keys below `limit` behind the n rows of a cache, while they fit.

    `numbers` are the row numbers. Rows that cannot move (weight 0, no features) are left out. Returns (the next row, rows in the
    cache).
    """
    for i in range(first, len(rows.indptr) - 1):
        if pairs.keys[i] >= limit:
            continue
        start, stop = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])
        at = np.uint64(cached.indptr[n])
        if n == len(cached.number) or at + (stop - start) > np.uint64(len(cached.indices)):
            return i, n
        own, square = weight_of(rows.u, i), square_of(rows.indptr, rows.data, columns.bias, i)
        if square == 0.0 or own == 0.0:
            continue
        for p in range(start, stop):
            cached.indices[at] = rows.indices[p]
            put(cached.data, at, entry(rows.data, p))
            at += np.uint64(1)
        cached.number[n], cached.key[n], cached.weight[n], cached.square[n] = numbers[i], pairs.keys[i], own, square
        cached.target[n] = rows.y[i]
        kept = columns.group.offer_row(loss, i, rows, columns, pairs, half, cached.share[n], listed[n])
        count[n] = kept
        n += 1
        cached.indptr[n] = at
    return len(rows.indptr) - 1, n


def offer_pairs(group, loss, i, rows, columns, pairs, half, share, listed):
    """Fill the shares and the listed columns of a cached row; returns their number."""
    kept = 0
    for a in range(count_of(columns)):
        k, y = slot_of(columns, a), target_of_pair(columns.positive, rows.y[i], a)
        f, z = loss.decode(pairs.codes[i, half, k], y), pairs.z[i, k]
        share[a] = f
        if is_left_out(columns.left_out, pairs.fold, i, a):
            continue
        if not (loss.stays(f, z, 0.0, y) and loss.violation(f, z, y) >= FAR):
            listed[kept] = a
            kept += 1
    return kept


@kernel
def keep(kept, cached, count, listed):
    """Leave only the rows `kept` (increasing) of a cache, in place."""
    at = np.uint64(0)
    for n in range(len(kept)):
        i = kept[n]
        for p in range(np.uint64(cached.indptr[i]), np.uint64(cached.indptr[i + 1])):
            cached.indices[at] = cached.indices[p]
            put(cached.data, at, entry(cached.data, p))
            at += np.uint64(1)
        cached.indptr[n + 1] = at
        cached.number[n], cached.key[n], cached.weight[n] = cached.number[i], cached.key[i], cached.weight[i]
        cached.square[n], cached.target[n], count[n] = cached.square[i], cached.target[i], count[i]
        for a in range(listed.shape[1]):
            cached.share[n, a], listed[n, a] = cached.share[i, a], listed[i, a]


@kernel
def sweeps(loss, turns, cached, count, listed, columns, grids, w, swept, room, most, seeds):
    """At most so many sweeps over the first n cached rows at w, in place, until none pays. Adds to swept.total.

    Each sweep after a pass gains less than the one before. A new pass is the better choice once a sweep gains less for its work
    than a pass and its sweeps do on average: the marginal value theorem (Charnov 1976). The gain of the next ones is less than
    half of the present gain: sweeps feed the momentum of the next passes, and independent lanes spoil much of a pass's gain.
    Work is counted in entries, hence the same on any machine.

    Rows come in random order, of `seeds` (3): from one group of neighbouring rows to the next, if a cache of the processor does
    not hold all. turns (n,) is scratch space.
    """
    n = len(turns)
    entries = cached.indptr[n]
    grouped = entries >= _GROUPS * _GROUP_NNZ
    size = max(1, _GROUP_NNZ * n // entries) if grouped else n + 1
    left, going = _listed_rows(n, count, turns), True
    for number in range(most):
        if left == 0 or not going:
            break
        if grouped and number > 0:
            left = _listed_rows(n, count, turns)
        seed = joined(joined(joined(joined(np.uint64(0), seeds[0]), np.uint64(number)), seeds[1]), seeds[2])
        shuffle(turns[:left], size, seed)
        left = _sweep(loss, turns[:left], cached, count, listed, columns, grids, w, swept, room)
        going = False
        for a in range(len(swept.gain)):
            gain, work = swept.gain[a], swept.work[a]
            swept.total[a] += gain
            swept.rise[a] += gain
            swept.spent[a] += work
            more = gain > swept.enough[a] and gain > _NEXT * swept.rise[a] / swept.spent[a] * work
            swept.on[a] = swept.on[a] and more
            going = going or swept.on[a]
            swept.slack[a] = _SLACK * swept.largest[a]
            swept.gain[a] = swept.work[a] = swept.largest[a] = 0.0


@helper
def _listed_rows(n, count, turns):
    """turns = the rows that have listed columns, ascending; returns their number."""
    left = 0
    for i in range(n):
        if count[i] > 0:
            turns[left] = i
            left += 1
    return left


@helper
def _sweep(loss, turns, cached, count, listed, columns, grids, w, swept, room):
    """A sweep of dual ascent over the cached rows in the order of `turns`, for the columns that are swept.on.

    A pair at a bound whose z is more than swept.slack from where it would leave that bound is shrunk away (Hsieh et al. 2008,
    3.2), as are those of columns that are not on. Rows with remaining pairs come first in `turns`; returns their number. Adds to
    swept.gain and swept.work, and raises swept.largest. With one column every row of `turns` has it: no list is read.
    """
    left, bias, entries = 0, columns.bias, entries_of(cached)
    for at in range(len(turns)):
        if at + AHEAD < len(turns):
            fetch_cached(cached, turns[at + AHEAD])
        i = turns[at]
        candidates, kept = listed[i], count_of(columns)
        if w.ndim > 1:
            kept = 0
            for m in range(count[i]):
                if swept.on[columns.group.problem_of(candidates[m])]:
                    candidates[kept] = candidates[m]
                    kept += 1
            count[i] = kept
            if kept == 0:
                continue
        scores(entries, w, columns.l1, bias, columns.spared, i, candidates, kept, room.scores)
        kept, moved = columns.group.sweep_row(loss, i, candidates, kept, cached, columns, swept.slack, grids, w, swept, room)
        if w.ndim > 1 or kept == 0:
            count[i] = kept
        if moved > 0:
            add_steps(entries, w, bias, i, room.moved, moved, room.steps)
        turns[left] = i
        left += kept > 0
    return left


def sweep_pairs(group, loss, i, candidates, count, cached, columns, slack, grids, w, sums, room):
    """Steps of cached row i in its `count` columns `candidates`, at room.scores. Returns (still listed, moved)."""
    kept, moved, l1, entries = 0, 0, columns.l1, cached.indptr[i + 1] - cached.indptr[i]
    for m in range(1 if group.single() else count):
        a, score = number_of(w, candidates, m), room.scores[m]
        f, y = cached.share[i, a], target_of_pair(columns.positive, cached.target[i], a)
        sums.work[a] += entries
        if loss.stays(f, loss.sign(y) * score - loss.offset(y), slack[a], y):
            continue
        if w.ndim > 1:
            candidates[kept] = a
        kept += 1
        weight, square = cached.weight[i], cached.square[i]
        scale = columns.cost[a] * weight
        bent, rise = bent_along(loss, entries_of(cached), w, l1, columns, i, a, (f, score, y), weight, square, grids.limit)
        after, z = exact_step(loss, f, score, weight, columns.cost[a], bent, y, grids.limit)
        if after != f:
            sums.largest[a] = max(sums.largest[a], loss.violation(f, z, y))
            sums.gain[a] += gain_of_step(loss, f, after, score, scale, square, y) if l1 is None else rise
            cached.share[i, a] = after
            room.moved[moved], room.steps[moved] = a, (after - f) * scale * loss.sign(y)
            moved += 1
    return kept, moved


@kernel
def write_back(loss, chosen, cached, first_row, columns, codes, half, grids, U, b, room):
    """Write the shares of the cached rows `chosen` to the codes of the rows from `first_row` on; updates U and b."""
    entries = entries_of(cached)
    for i in chosen:
        row = cached.number[i] - first_row
        changes = columns.group.write_row(loss, i, cached, columns, codes[row, half], grids, b, room)
        add_changes(entries, U, columns.bias, i, room.moved, changes, room.before, room.steps, grids.vector)


def write_pairs(group, loss, i, cached, columns, codes, grids, b, room):
    """Write the codes of cached row i; returns the number of changes."""
    changes, weight = 0, cached.weight[i]
    for a in range(count_of(columns)):
        k, y = slot_of(columns, a), target_of_pair(columns.positive, cached.target[i], a)
        past, now = codes[k], loss.encode(cached.share[i, a])
        if past != now:
            codes[k] = now
            changes = note_change(loss, a, past, now, weight, y, grids, b, changes, room)
    return changes


@kernel
def gained(loss, weight, target, before, after):
    """Σ weight (constant of share `after` − that of `before`), all (n)."""
    gain = 0.0
    for i in range(len(weight)):
        gain += weight[i] * (loss.constant(after[i], target[i]) - loss.constant(before[i], target[i]))
    return gain


@kernel
def curves(loss, z, target, value, share, curvature):
    """ℓ(z_i), −ℓ′(z_i) and ℓ″(z_i) of rows, all (n)."""
    for i in range(len(z)):
        value[i], share[i] = loss.value(z[i], target[i]), loss.dual(z[i], target[i])
        curvature[i] = loss.curvature(share[i], z[i], target[i])


@kernel
def limit(loss, limit, weight, share):
    """Clip shares (n) to those of rows of this weight, given the `limit` for weight 1, in place."""
    for i in range(len(share)):
        share[i] = loss.limited(share[i], limit, weight[i])
