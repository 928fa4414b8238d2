"""A row in groups of K columns: the classes of a joint loss (streamcut.losses.joint), for the kernels of columns.

In a group the shares p of a row with class t are a point of the simplex, p = e_t where it adds nothing. To the columns, the
pair of the row and class k ≠ t has the share p_k and sign −1, that of class t the share Σ p_k of the others and sign 1: sums
of U, line searches and masters are those of columns. A step moves all listed shares of a group at once. Codes are 32-bit
floats of p_k, k ≠ t, that add up to at most 1, and 0 for t. (With 16 bits as for single losses, rounded down, Crammer &
Singer's passes stand still at a relative gap of 1e-3: each regains what rounding has lost.)

The value of a class is its score + the margin. Of a bounded loss a class without share is at rest where it trails all that have
some; then no step gives it any. Columns of group g are g·K to g·K + K − 1, slots of a group are adjacent.
"""

import math

import numpy as np

from streamcut.compiled import loss as methods  # noqa: F401  (kernels call methods of losses)
from streamcut.compiled.columns import ALL, FAR, STRAIGHT, TRIED, is_left_out
from streamcut.compiled.linear import rounded
from streamcut.compiled.records import entries_of, entry
from streamcut.compiled.vectors import shrunk
from streamcut.compiler.jit import helper, inlined

_NOT_FREE = 1e3  # added to the keys of rows with all share in one class: the others come first
_FLAT = 1e-300
_NEAR = 0.1  # of a cached row, classes without share that trail by more wait for the next pass
_LESS = 1.0 - 2.0**-22  # more than all 32-bit codes can add


@inlined
def shrinking(total):
    """The factor for shares whose codes add up to `total`: codes add up to at most 1."""
    return 1.0 if total <= 1.0 else _LESS


@helper
def encode(t, share, codes):
    """codes (K,) = the codes of `share`."""
    total = 0.0
    for k in range(len(share)):
        total += np.float64(np.float32(share[k])) if k != t else 0.0
    factor = shrinking(total)
    for k in range(len(share)):
        codes[k] = np.float32(factor * share[k]) if k != t else np.float32(0.0)


@helper
def decode(t, codes, share):
    """share (K,) = the shares of `codes`; class t has the rest."""
    others = 0.0
    for k in range(len(share)):
        share[k] = np.float64(codes[k])
        others += share[k]
    share[t] = max(0.0, 1.0 - others)


@helper
def bounds_of(loss, t, z, share):
    """(the lowest value of a class with share, the highest of all, the highest of those without)."""
    low, best, other = np.inf, -np.inf, -np.inf
    for k in range(len(share)):
        value = z[k] + loss.margin(k, t)
        best = max(best, value)
        if share[k] > 0.0:
            low = min(low, value)
        else:
            other = max(other, value)
    return low, best, other


@helper
def list_classes(loss, t, z, share, first, near, listed, shares, count):
    """Append the classes that may take part in a step: those with share, and those that trail them by no more than `near`."""
    low, _, other = bounds_of(loss, t, z, share)
    if loss.bounded() and other < low - near and _undivided(share):
        return count, low - other
    for k in range(len(share)):
        if not loss.bounded() or share[k] > 0.0 or z[k] + loss.margin(k, t) >= low - near:
            listed[count] = first + k
            if shares is not None:
                shares[count] = share[k]
            count += 1
    return count, -1.0


@helper
def _undivided(share):
    """Whether one class has the whole share."""
    most = 0.0
    for value in share:
        most = max(most, value)
    return most == 1.0


@helper
def end_of_group(listed, m, count, K):
    """The end of the classes listed from m on that are of the same group."""
    g, n = listed[m] // K, m + 1
    while n < count and listed[n] // K == g:
        n += 1
    return n


@helper
def place_of(listed, m, n, column):
    """Where `column` is among listed[m:n]; −1: nowhere."""
    for c in range(m, n):
        if listed[c] == column:
            return c - m
    return -1


@helper
def step_of_group(loss, p, s, scale, square, t, after):
    """`after` = the shares that maximise the dual along the row, at scores s with shares p; returns the rise of the dual."""
    loss.step(p, s, scale * square, t, after)
    along, moves = 0.0, 0.0
    for k in range(len(p)):
        d = after[k] - p[k]
        along += d * s[k]
        moves += d * d
    return scale * (loss.constant(after, t) - loss.constant(p, t) + along - 0.5 * scale * square * moves)


@helper
def bent_step(loss, rows, W, l1, columns, i, listed, p, s, scale, square, t, after):
    """As step_of_group; where thresholds leave W few features, for the lower curvature of the dual, as columns.bent_along.

    `listed` are the columns of the shares p. The largest curvature of a class counts for all.
    """
    rise = step_of_group(loss, p, s, scale, square, t, after)
    if l1 is None:
        return rise
    if not l1[listed[0]] > 0.0 or not rise > 0.0:
        return rise
    bias, last, limit = columns.bias, len(W) - 1, l1[listed[0]]
    start, stop, own = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1]), 0.0 if columns.spared else limit
    bent = STRAIGHT * square
    for a in listed:
        active = bias * bias if columns.spared or abs(W[last, a]) > own else 0.0
        for q in range(start, stop):
            if abs(W[np.uint64(rows.indices[q]), a]) > limit:
                active += entry(rows.data, q) ** 2
        bent = max(bent, active)
    for _ in range(TRIED):
        if bent > ALL * square:
            break
        step_of_group(loss, p, s, scale, bent, t, after)
        longer, along, moves = 0.0, 0.0, 0.0
        for k in range(len(listed)):
            a, move = listed[k], scale * (p[k] - after[k])
            if move == 0.0:
                continue
            before, now = shrunk(W[last, a], own), shrunk(W[last, a] + move * bias, own)
            lengthens, beyond = (0.5 * (now - before) * (now + before), now * bias) if bias != 0.0 else (0.0, 0.0)
            for q in range(start, stop):
                j, value = np.uint64(rows.indices[q]), entry(rows.data, q)
                before, now = shrunk(W[j, a], limit), shrunk(W[j, a] + move * value, limit)
                lengthens += 0.5 * (now - before) * (now + before)
                beyond += now * value
            longer, along, moves = longer + lengthens, along + move * (beyond - s[k]), moves + move * move
        gain = scale * (loss.constant(after, t) - loss.constant(p, t)) - longer
        if gain > rise:
            return gain
        bent = max(2.0 * bent, along / moves) if moves > 0.0 else 2.0 * bent
    return step_of_group(loss, p, s, scale, square, t, after)


def step_groups(group, loss, i, listed, shares, count, weight, square, key, rows, columns, codes, grids, sums, room):
    """A step in every group with listed classes, at room.scores. Returns (moved, still listed, key)."""
    t = rows.y[i]
    K, moved, free, m = group.width, 0, 0, 0
    while m < count:
        n = end_of_group(listed, m, count, K)
        g = listed[m] // K
        at, slot, scale = place_of(listed, m, n, g * K + t), columns.slots[g * K], columns.cost[g] * weight
        p, s, after = shares[m:n], room.scores[m:n], room.steps[m:n]
        low, best, other = bounds_of(loss, at, s, p)
        where = sums.w, columns.l1, columns, i, listed[m:n]
        sums.gain[g] += bent_step(loss, entries_of(rows), *where, p, s, scale, square, at, after)
        total, rest = 0.0, 1.0
        for k in range(n - m):
            rest -= after[k] * after[k]
            if k != at:
                total += np.float64(np.float32(after[k]))
        factor = shrinking(total)
        for k in range(n - m):
            codes[i, slot + listed[m + k] - g * K] = np.float32(factor * after[k]) if k != at else np.float32(0.0)
        if not loss.bounded():
            moves = weight * square * rest
            key = min(key, 1.0 / math.sqrt(moves) if moves > _FLAT else np.inf)
        else:
            key = min(key, (best - low if best > low else low - other) + (_NOT_FREE if rest == 0.0 else 0.0))
        stays = not loss.bounded() or rest != 0.0
        for k in range(n - m):
            a, before, now = listed[m + k], p[k], after[k]
            if now != before:
                room.moved[moved], room.steps[moved] = a, scale * (before - now)
                moved += 1
            if stays:
                listed[free], shares[free] = a, now
                free += 1
        m = n
    return moved, free, key


def sweep_groups(group, loss, i, own, count, cached, columns, slack, grids, w, sums, room):
    """Steps of a cached row in the groups of its `count` listed columns `own`. Returns (still listed, moved)."""
    kept, moved, m, K, share, t = 0, 0, 0, group.width, cached.share[i], cached.target[i]
    weight, square, entries = cached.weight[i], cached.square[i], cached.indptr[i + 1] - cached.indptr[i]
    while m < count:
        n = end_of_group(own, m, count, K)
        g, first, low, best = own[m] // K, kept, np.inf, -np.inf
        for c in range(m, n):
            value = room.scores[c] + loss.margin(own[c] - g * K, t)
            best = max(best, value)
            if share[own[c]] > 0.0:
                low = min(low, value)
        for c in range(m, n):
            a, s = own[c], room.scores[c]
            if not loss.bounded() or share[a] > 0.0 or s + loss.margin(a - g * K, t) >= low - slack[g]:
                own[kept], room.scores[kept], room.before[kept] = a, s, share[a]
                kept += 1
        sums.work[g] += entries * (n - m) / K
        m = n
        if loss.bounded() and kept == first + 1:
            kept = first
            continue
        if loss.bounded() and best <= low:
            continue
        sums.largest[g] = max(sums.largest[g], best - low)
        at, scale = place_of(own, first, kept, g * K + t), columns.cost[g] * weight
        p, s, after = room.before[first:kept], room.scores[first:kept], room.steps[first:kept]
        where = w, columns.l1, columns, i, own[first:kept]
        sums.gain[g] += bent_step(loss, entries_of(cached), *where, p, s, scale, square, at, after)
        for k in range(kept - first):
            a, now = own[first + k], after[k]
            share[a] = now
            if now != p[k]:
                room.moved[moved], room.steps[moved] = a, scale * (p[k] - now)
                moved += 1
    return kept, moved


@helper
def note_group(loss, g, first, t, weight, grids, b, changes, room, K):
    """As columns.note_change, for shares before and now in room.before and room.steps from `changes` on, without the target's."""
    before, now, taken, given, differs = room.before[changes : changes + K], room.steps[changes : changes + K], 0.0, 0.0, False
    for k in range(K):
        differs = differs or before[k] != now[k]
    if not differs:
        return changes
    b[0, g] += rounded(weight * loss.constant(now, t), grids.weight) - rounded(weight * loss.constant(before, t), grids.weight)
    for k in range(K):
        if k != t:
            before[k], now[k] = -(weight * before[k]), -(weight * now[k])
            taken, given = taken - before[k], given - now[k]
    before[t], now[t] = taken, given
    for k in range(K):
        past, new = before[k], now[k]
        if past != new:
            room.moved[changes], room.before[changes], room.steps[changes] = first + k, past, new
            changes += 1
    return changes


def rest_of_groups(group, loss, i, q, rows, columns, pairs, versions, at_scores, grids, room):
    K, t, count, key, total = group.width, rows.y[i], 0, np.inf, 0.0
    for g in range(len(columns.cost)):
        first, slot, share = g * K, columns.slots[g * K], room.steps[:K]
        z, now = pairs.z[i, slot : slot + K], pairs.codes[i, versions[1], slot : slot + K]
        for k in range(K):
            if not pairs.known:
                z[k] = room.scores[first + k]
            total += z[k]
            now[k] = pairs.codes[i, versions[0], slot + k]
        if is_left_out(columns.left_out, pairs.fold, i, g):
            continue
        if at_scores:
            loss.dual(z, t, share)
            encode(t, share, now)
            count += 1
            continue
        decode(t, now, share)
        count, ahead = list_classes(loss, t, z, share, first, 0.0, room.listed[q], room.shares[q], count)
        if 0.0 <= ahead < FAR:
            key = min(key, ahead + _NOT_FREE)
    return count, key, total


def changed_groups(group, loss, i, weight, rows, columns, codes, versions, grids, b, room):
    changes, K = 0, group.width
    for g in range(len(columns.cost)):
        slot = columns.slots[g * K]
        for k in range(K):
            room.before[changes + k] = np.float64(codes[i, versions[0], slot + k])
            room.steps[changes + k] = np.float64(codes[i, versions[1], slot + k])
        changes = note_group(loss, g, g * K, rows.y[i], weight, grids, b, changes, room, K)
    return changes


def offer_groups(group, loss, i, rows, columns, pairs, half, share, listed):
    kept, K, t = 0, group.width, rows.y[i]
    for g in range(len(columns.cost)):
        first, slot = g * K, columns.slots[g * K]
        own = share[first : first + K]
        decode(t, pairs.codes[i, half, slot : slot + K], own)
        if not is_left_out(columns.left_out, pairs.fold, i, g):
            kept, _ = list_classes(loss, t, pairs.z[i, slot : slot + K], own, first, _NEAR, listed, None, kept)
    return kept


def write_groups(group, loss, i, cached, columns, codes, grids, b, room):
    changes, K, t = 0, group.width, cached.target[i]
    for g in range(len(columns.cost)):
        own = codes[columns.slots[g * K] : columns.slots[g * K] + K]
        for k in range(K):
            room.before[changes + k] = np.float64(own[k])
        encode(t, cached.share[i, g * K : g * K + K], own)
        for k in range(K):
            room.steps[changes + k] = np.float64(own[k])
        changes = note_group(loss, g, g * K, t, cached.weight[i], grids, b, changes, room, K)
    return changes
