"""Dual coordinate ascent for K columns, problems on the same rows, in one visit of streamed rows.

A column is a class against the rest, a value of C, a held-out fold, or a combination. A pair of row i and column
a has a target y (±1 for a class, the row's own number otherwise), a score s = ⟨W[:, a], x_i⟩ and z = σs − t, the argument of its
loss (streamcut.losses.loss), and a share f of the dual, remembered as a code. The weights that shares stand for are C_a U[:, a],

    U[:, a] = Σ u_i σ f x_i,        b_a = Σ u_i (f t − ℓ*(−f)),

where U and b do not depend on C. Both are sums on `grids` (streamcut.foundation.rounding), exact in any order: what a share added
can be subtracted again. Most pairs of a row are at rest: the share is at a bound and z keeps it there. The others are listed
while the row is scored, and only they take steps.

Arrays of columns are (D, A) with the A columns in training side by side, (D,) for one alone; row state arrays have a slot for
every column, and column a is at slots[a]. Codes are (n, 2, K): a pass reads one half and writes the other, so it can be
abandoned.
"""

import numpy as np

from streamcut.compiled import loss as methods  # noqa: F401  (kernels call methods of losses)
from streamcut.compiled.column_weights import add_changes, add_steps, number_of, scores, scores_and_square, weight_at
from streamcut.compiled.linear import rounded
from streamcut.compiled.records import AHEAD, entries_of, entry, fetch_row, weight_of
from streamcut.compiled.vectors import shrunk
from streamcut.compiler.jit import helper, inlined, kernel

FAR = 1.0  # a pair at a bound whose z keeps it there by this margin is not swept in a cache
# With thresholds:
STRAIGHT = 1e-3  # of ‖x‖²: least curvature of the dual along a row
ALL = 0.9  # of ‖x‖²: taken as equal
TRIED = 4  # steps longer than that for ‖x‖²


@inlined
def count_of(columns):
    """The number of columns."""
    return 1 if columns.group.single() else len(columns.slots)


@inlined
def slot_of(columns, a):
    """The slot of column a in the row state."""
    return 0 if columns.group.single() else columns.slots[a]


@inlined
def target_of_pair(positive, y, a):
    """The target of a row with y in column a: whether y is the column's class, or y itself if there are no classes."""
    if positive is None:
        return np.float64(y)
    return 1.0 if y == positive[a] else -1.0


@inlined
def is_left_out(left_out, fold, i, a):
    """Whether column a leaves row i out."""
    if left_out is None:
        return False
    return left_out[a] == fold[i]


@inlined
def add_constant(loss, sums, a, weight, f, y, times, grids):
    """Adds `times` the contribution of share f of a row to b, sums (1 or 3, A), and to the measures of its rounding: Σ u |f| and
    Σ u size, for losses in which these are not the constant itself."""
    sums[0, a] += times * rounded(weight * loss.constant(f, y), grids.weight)
    if loss.sized():
        sums[1, a] += times * rounded(weight * abs(f), grids.weight)
        sums[2, a] += times * rounded(weight * loss.size(f, y), grids.weight)


@inlined
def step_of_pair(loss, f, score, weight, cost, square, y, limit):
    """(code of the share that maximises the dual for `cost` along the pair at this score, that share, z)."""
    share, z = exact_step(loss, f, score, weight, cost, square, y, limit)
    code = loss.encode(share)
    return code, loss.decode(code, y), z


@inlined
def exact_step(loss, f, score, weight, cost, square, y, limit):
    """(the share that maximises the dual for `cost` along the pair at this score, z)."""
    z = loss.sign(y) * score - loss.offset(y)
    curvature = cost * weight * square
    share = loss.step(f, z, curvature, y) if curvature > 0.0 else loss.dual(z, y)
    return loss.limited(share, limit, weight), z


@helper
def bent_along(loss, rows, W, l1, columns, i, a, pair, weight, square, limit):
    """The curvature for a step along row i in column a in place of ‖x‖², `square`, and the least increase of the dual.

    If thresholds leave W few features, the dual has less curvature. The first curvature tried is that of the features of W, the
    next ones those of the previous step, until a step raises the dual by more than the step for ‖x‖² is guaranteed to. `pair` is
    (share, score, target).
    """
    if l1 is None:
        return square, 0.0
    f, score, y = pair
    bias, scale, last = columns.bias, columns.cost[a] * weight, len(W) - 1
    _, after, _ = step_of_pair(loss, f, score, weight, columns.cost[a], square, y, limit)
    least = gain_of_step(loss, f, after, score, scale, square, y)
    if after == f or not l1[a] > 0.0:
        return square, least
    start, stop = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])
    own = 0.0 if columns.spared else l1[a]
    bent = bias * bias if columns.spared or abs(weight_at(W, last, a)) > own else 0.0
    for p in range(start, stop):
        if abs(weight_at(W, np.uint64(rows.indices[p]), a)) > l1[a]:
            bent += entry(rows.data, p) ** 2
    bent = max(bent, STRAIGHT * square)
    for _ in range(TRIED):
        if bent > ALL * square:
            break
        _, after, _ = step_of_pair(loss, f, score, weight, columns.cost[a], bent, y, limit)
        move, longer, beyond = scale * loss.sign(y) * (after - f), 0.0, 0.0
        if bias != 0.0:
            at = weight_at(W, last, a)
            before, now = shrunk(at, own), shrunk(at + move * bias, own)
            longer, beyond = 0.5 * (now - before) * (now + before), now * bias
        for p in range(start, stop):
            j, value = np.uint64(rows.indices[p]), entry(rows.data, p)
            at = weight_at(W, j, a)
            before, now = shrunk(at, l1[a]), shrunk(at + move * value, l1[a])
            longer += 0.5 * (now - before) * (now + before)
            beyond += now * value
        rise = scale * (loss.constant(after, y) - loss.constant(f, y)) - longer
        if rise > least:
            return bent, rise
        bent = max(2.0 * bent, (beyond - score) / move) if move != 0.0 else 2.0 * bent
    return square, least


@inlined
def gain_of_step(loss, f, after, score, scale, square, y):
    """The increase of the dual: scale·(constant(f′) − constant(f)) − ½‖w′‖² + ½‖w‖², where w moves by scale·σ(f′ − f) x."""
    move = loss.sign(y) * (after - f)
    return scale * (loss.constant(after, y) - loss.constant(f, y) - move * score - 0.5 * scale * move * move * square)


@kernel
def ascend(loss, rows, columns, pairs, versions, W, grids, order, sums, room):
    """One visit of every row of a block: z under W, then dual ascent steps at the running weights sums.w.

    Rows come in batches of len(order.rows). order.near at a time are scored, in the order of order.rows, and then take their
    steps in the order of order.turns, free pairs up to order.visits times. Without visits there are no steps: shares become those
    of the scores. Fills z, codes of versions[1] from versions[0], and a key of each row, lowest for rows that may still
    move most. Adds the changes to sums.U and sums.b, and the increase of the dual to sums.gain. Returns a row whose score is not
    finite, or −1.
    """
    n, size, bad = len(rows.indptr) - 1, len(order.rows), -1
    for first in range(0, n, size):
        for begin in range(0, size, order.near):
            chosen, turns = order.rows[begin : begin + order.near], order.turns[begin : begin + order.near]
            found = _score(loss, first, chosen, rows, columns, pairs, versions, W, order.visits == 0, grids, room)
            bad = found if bad < 0 else bad
            for _ in range(order.visits):
                if _steps(loss, first, chosen, turns, rows, columns, pairs, versions[1], grids, sums, room) == 0:
                    break
            for q in range(len(chosen)):
                if room.touched[q]:
                    _add_changes(loss, first + chosen[q], rows, columns, pairs.codes, versions, grids, sums, room)
    return bad


@kernel
def score(loss, rows, columns, pairs, versions, W, grids, order, room, kept):
    """z of a block as in `ascend`, without steps; kept (n, bool): rows that take steps.

    Returns a row whose score is not finite, or −1.
    """
    n, size, bad = len(rows.indptr) - 1, len(order.rows), -1
    for first in range(0, n, size):
        for begin in range(0, size, order.near):
            chosen = order.rows[begin : begin + order.near]
            found = _score(loss, first, chosen, rows, columns, pairs, versions, W, False, grids, room)
            bad = found if bad < 0 else bad
            for q in range(len(chosen)):
                i = first + chosen[q]
                if 0 <= i < n:
                    kept[i] = room.counts[q] > 0
    return bad


@helper
def _score(loss, first, chosen, rows, columns, pairs, versions, W, at_scores, grids, room):
    """z of the rows first + chosen[q], and the pairs of each that are not at rest, with their shares.

    `at_scores`: set shares to those of the scores.
    """
    A, n, bad, all_of_them, entries = count_of(columns), len(rows.indptr) - 1, -1, room.moved, entries_of(rows)
    for a in range(A):
        all_of_them[a] = a
    for q in range(len(chosen)):
        i = first + chosen[q]
        room.counts[q], room.touched[q] = 0, False
        if i < 0 or i >= n:
            continue
        if not pairs.known:
            scores(entries, W, None, columns.bias, columns.spared, i, all_of_them, A, room.scores)
        count, key, total = columns.group.rest_of_row(loss, i, q, rows, columns, pairs, versions, at_scores, grids, room)
        pairs.keys[i], room.counts[q], room.touched[q] = key, count, count > 0
        if bad < 0 and not np.isfinite(total):
            bad = i
    return bad


def rest_of_pairs(group, loss, i, q, rows, columns, pairs, versions, at_scores, grids, room):
    """(number of columns listed, key, sum of z) of row i with scores room.scores."""
    count, key, total = 0, np.inf, 0.0
    for a in range(count_of(columns)):
        k, y = slot_of(columns, a), target_of_pair(columns.positive, rows.y[i], a)
        if not pairs.known:
            pairs.z[i, k] = loss.sign(y) * room.scores[a] - loss.offset(y)
        here = pairs.z[i, k]
        total += here
        code = pairs.codes[i, versions[0], k]
        pairs.codes[i, versions[1], k] = code
        if is_left_out(columns.left_out, pairs.fold, i, a):
            continue
        f = loss.decode(code, y)
        if at_scores:
            pairs.codes[i, versions[1], k] = loss.encode(loss.limited(loss.dual(here, y), grids.limit, weight_of(rows.u, i)))
            count += 1
        elif not loss.stays(f, here, 0.0, y):
            room.listed[q, count], room.shares[q, count] = a, f
            count += 1
        elif loss.violation(f, here, y) < FAR:
            key = min(key, loss.priority(f, here, 0.0, y))
    return count, key, total


@helper
def _steps(loss, first, chosen, turns, rows, columns, pairs, half, grids, sums, room):
    """A step for each listed pair of the rows; free pairs stay listed. Returns the number left."""
    left, bias, l1, entries = 0, columns.bias, columns.l1, entries_of(rows)
    for turn in range(len(turns)):
        q = turns[turn]
        count = room.counts[q]
        if turn + AHEAD < len(turns) and room.counts[turns[turn + AHEAD]] > 0:
            fetch_row(entries, first + chosen[turns[turn + AHEAD]])
        if count == 0:
            continue
        i, listed, shares = first + chosen[q], room.listed[q], room.shares[q]
        square = scores_and_square(entries, sums.w, l1, bias, columns.spared, i, listed, count, room.scores)
        weight, key = weight_of(rows.u, i), pairs.keys[i]
        given = i, listed, shares, count, weight, square, key, rows, columns, pairs.codes[:, half], grids, sums, room
        moved, free, key = columns.group.step_of_row(loss, *given)
        pairs.keys[i], room.counts[q] = key, free
        left += free
        if moved > 0:
            add_steps(entries, sums.w, bias, i, room.moved, moved, room.steps)
    return left


def step_pairs(group, loss, i, listed, shares, count, weight, square, key, rows, columns, codes, grids, sums, room):
    """A step of the listed columns of row i, at room.scores. Returns (moved, still listed, key)."""
    moved, free, l1 = 0, 0, columns.l1
    for m in range(1 if group.single() else count):
        a, f, score = number_of(sums.w, listed, m), shares[m], room.scores[m]
        y, scale = target_of_pair(columns.positive, rows.y[i], a), columns.cost[a] * weight
        bent, rise = bent_along(loss, entries_of(rows), sums.w, l1, columns, i, a, (f, score, y), weight, square, grids.limit)
        code, after, z = step_of_pair(loss, f, score, weight, columns.cost[a], bent, y, grids.limit)
        key = min(key, loss.priority(after, z, weight * square, y))
        if after != f:
            codes[i, slot_of(columns, a)] = code
            sums.gain[a] += gain_of_step(loss, f, after, score, scale, square, y) if l1 is None else rise
            room.moved[moved], room.steps[moved] = a, (after - f) * scale * loss.sign(y)
            moved += 1
        if loss.free(after, y):
            listed[free], shares[free] = a, after
            free += 1
    return moved, free, key


@helper
def _add_changes(loss, i, rows, columns, codes, versions, grids, sums, room):
    """Adds the shares of row i in one half of the codes, less those in the other, to the sums."""
    weight = weight_of(rows.u, i)
    changes = columns.group.changes_of_row(loss, i, weight, rows, columns, codes, versions, grids, sums.b, room)
    add_changes(entries_of(rows), sums.U, columns.bias, i, room.moved, changes, room.before, room.steps, grids.vector)


def changed_pairs(group, loss, i, weight, rows, columns, codes, versions, grids, b, room):
    """Note the changes of row i between both versions of its codes; returns their number."""
    changes = 0
    for a in range(count_of(columns)):
        k = slot_of(columns, a)
        past, now = codes[i, versions[0], k], codes[i, versions[1], k]
        if past != now:
            y = target_of_pair(columns.positive, rows.y[i], a)
            changes = note_change(loss, a, past, now, weight, y, grids, b, changes, room)
    return changes


@inlined
def note_change(loss, a, past, now, weight, y, grids, b, changes, room):
    """Append a change of a pair's code behind the first `changes` in `room`; returns their new number."""
    taken, given = loss.decode(past, y), loss.decode(now, y)
    add_constant(loss, b, a, weight, given, y, 1.0, grids)
    add_constant(loss, b, a, weight, taken, y, -1.0, grids)
    sign = loss.sign(y)
    room.moved[changes], room.before[changes], room.steps[changes] = a, sign * (weight * taken), sign * (weight * given)
    return changes + 1
