"""Dual coordinate ascent for one class against the rest for rows in a cache, by the steps of streamcut.compiled.ovr_dual.

The `cached_` arrays, `number`, `weight`, `square`, `goal` are those of streamcut.compiled.cached_rows; `share` and `busy`
(rows, A) are the shares of the pairs, and which of them may still move.
"""

from streamcut.compiled.ovr_dual import _FAR, _add_changes, _move, _note_change, _scores
from streamcut.compiled.shares import ONE, code_of, share_of
from streamcut.jit import kernel


@kernel
def remember(rows, active, z, codes, dual, share, busy):
    """The shares of the `rows` of a block that were taken, and whether their margins z let them move."""
    for n in range(len(rows)):
        i = rows[n]
        for a in range(len(active)):
            code = codes[i, dual[a], active[a]]
            share[n, a] = share_of(code)
            far = (code == 0 and z[i, a] >= 1.0 + _FAR) or (code == ONE and z[i, a] <= 1.0 - _FAR)
            busy[n, a] = not far


@kernel
def sweep(
    order, cached_indptr, cached_indices, cached_data, weight, square, share, goal, busy, active, at_work, C, bias, slack, W,
    gain, largest, running, columns, steps,
):  # fmt: skip
    """A sweep of dual ascent over cached rows in `order` at W for the columns `at_work`; `share`, `busy` and W move in place.

    A pair at a bound whose margin is more than slack[a] from where it would leave it is shrunk away (Hsieh et al. 2008, 3.2):
    busy no more. Rows with busy pairs come first in `order`; returns how many they are. Adds C Σ u_i Δf to gain (A), and takes
    the largest violation |1 − margin| to largest (A). Room to work in: running, columns, steps (A).
    """
    left = 0
    for i in order:
        count = 0
        for a in at_work:
            if busy[i, a]:
                columns[count] = a
                count += 1
        if count == 0:
            continue
        _scores(cached_indptr, cached_indices, cached_data, W, bias, i, columns, count, running)
        scale, moved, some = C * weight[i], 0, False
        for m in range(count):
            a = columns[m]
            sign = 1.0 if goal[i] == active[a] else -1.0
            ahead = 1.0 - sign * running[a]
            if (share[i, a] == 0.0 and ahead < -slack[a]) or (share[i, a] == 1.0 and ahead > slack[a]):
                busy[i, a] = False
                continue
            some = True
            after = min(1.0, max(0.0, share[i, a] + ahead / (scale * square[i])))
            step = (after - share[i, a]) * scale
            if step != 0.0:
                largest[a] = max(largest[a], abs(ahead))
                gain[a] += step
                share[i, a] = after
                columns[moved], steps[moved] = a, step * sign
                moved += 1
        if moved > 0:
            _move(cached_indptr, cached_indices, cached_data, W, bias, i, columns, moved, steps)
        order[left] = i
        left += some
    return left


@kernel
def settle(
    cached_indptr, cached_indices, cached_data, number, weight, share, goal, active, dual, bias, vector, scalar, codes, cuts,
    sums, columns, before, after,
):  # fmt: skip
    """Cached rows take their shares home: to slots `dual` of `codes`, and by their difference to the dual cuts and their sums."""
    A = len(active)
    for i in range(len(number)):
        row, changes = number[i], 0
        for a in range(A):
            k = active[a]
            past, now = codes[row, dual[a], k], code_of(share[i, a])
            codes[row, dual[a], k] = now
            sign = 1.0 if goal[i] == k else -1.0
            changes = _note_change(A + a, past, now, weight[i], sign, scalar, sums, changes, columns, before, after)
        _add_changes(cached_indptr, cached_indices, cached_data, bias, i, vector, columns, changes, before, after, cuts)
