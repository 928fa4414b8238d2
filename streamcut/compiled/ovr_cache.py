"""Dual coordinate ascent for one class against the rest for rows in a cache, by the steps of streamcut.compiled.ovr_dual.

`cached` are records.CachedRows with the shares of the pairs (rows, A), and the number of each row's class as its target; `busy`
(rows, A) says which pairs may still move.
"""

from streamcut.compiled.ovr_dual import FAR, add_changes, add_steps, note_change, scores
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
            far = (code == 0 and z[i, a] >= 1.0 + FAR) or (code == ONE and z[i, a] <= 1.0 - FAR)
            busy[n, a] = not far


@kernel
def sweep(order, cached, busy, active, at_work, C, bias, slack, W, gain, largest, buffers):
    """A sweep of dual ascent over cached rows in `order` at W for the columns `at_work`; shares, `busy` and W move in place.

    A pair at a bound whose margin is more than slack[a] from where it would leave it is shrunk away (Hsieh et al. 2008, 3.2):
    busy no more. Rows with busy pairs come first in `order`; returns how many they are. Adds C Σ u_i Δf to gain (A), and takes
    the largest violation |1 − margin| to largest (A).
    """
    share, running, columns, steps, left = cached.share, buffers.running, buffers.columns, buffers.after, 0
    for i in order:
        count = 0
        for a in at_work:
            if busy[i, a]:
                columns[count] = a
                count += 1
        if count == 0:
            continue
        scores(cached, W, bias, i, columns, count, running)
        scale, moved, some = C * cached.weight[i], 0, False
        for m in range(count):
            a = columns[m]
            sign = 1.0 if cached.target[i] == active[a] else -1.0
            ahead = 1.0 - sign * running[a]
            if (share[i, a] == 0.0 and ahead < -slack[a]) or (share[i, a] == 1.0 and ahead > slack[a]):
                busy[i, a] = False
                continue
            some = True
            after = min(1.0, max(0.0, share[i, a] + ahead / (scale * cached.square[i])))
            step = (after - share[i, a]) * scale
            if step != 0.0:
                largest[a] = max(largest[a], abs(ahead))
                gain[a] += step
                share[i, a] = after
                columns[moved], steps[moved] = a, step * sign
                moved += 1
        if moved > 0:
            add_steps(cached, W, bias, i, columns, moved, steps)
        order[left] = i
        left += some
    return left


@kernel
def write_back(cached, first_row, active, slots, bias, grids, codes, sums, buffers):
    """The shares of cached rows go to slots[a] of `codes`, of the rows from `first_row` on; dual cuts and constants follow."""
    A = len(active)
    for i in range(len(cached.number)):
        row, changes = cached.number[i] - first_row, 0
        for a in range(A):
            k = active[a]
            past, now = codes[row, slots[a], k], code_of(cached.share[i, a])
            codes[row, slots[a], k] = now
            sign = 1.0 if cached.target[i] == k else -1.0
            changes = note_change(A + a, past, now, cached.weight[i], sign, grids, sums, changes, buffers)
        add_changes(cached, bias, i, grids, changes, buffers, sums)
