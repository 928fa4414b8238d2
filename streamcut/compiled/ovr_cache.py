"""Dual coordinate ascent for one class against the rest for rows in a cache, by the steps of streamcut.compiled.ovr_dual.

`cached` are records.CachedRows with the shares of the pairs (rows, A), and the number of each row's class as its target; `busy`
(rows, A) says which pairs may still move.
"""

from streamcut.compiled import loss as methods  # noqa: F401  (kernels call methods of losses)
from streamcut.compiled.ovr_dual import FAR, add_changes, add_steps, note_change, scores
from streamcut.jit import kernel


@kernel
def remember(loss, rows, target, active, z, codes, dual, share, busy):
    """The shares of the `rows` of a block that were taken, and whether their margins z let them move."""
    for n in range(len(rows)):
        i = rows[n]
        for a in range(len(active)):
            sign = 1.0 if target[i] == active[a] else -1.0
            f = loss.decode(codes[i, dual[a], active[a]], sign)
            share[n, a] = f
            busy[n, a] = not (loss.stays(f, z[i, a], 0.0, sign) and loss.violation(f, z[i, a], sign) >= FAR)


@kernel
def sweep(loss, order, cached, busy, pairs, C, bias, l1, W, gain, largest, buffers):
    """A sweep of dual ascent over cached rows in `order` at W (V, where there is an `l1`) for the columns at work.

    Shares, `busy` and W move in place.

    A pair at a bound whose margin is more than slack[a] from where it would leave it is shrunk away (Hsieh et al. 2008, 3.2):
    busy no more. Rows with busy pairs come first in `order`; returns how many they are. Adds what the rows' terms of the dual
    gained to gain (A), and takes the largest violation to largest (A).
    """
    share, running, columns, steps, left = cached.share, buffers.running, buffers.columns, buffers.after, 0
    active, slack = pairs.active, pairs.slack
    for i in order:
        count = 0
        for a in pairs.at_work:
            if busy[i, a]:
                columns[count] = a
                count += 1
        if count == 0:
            continue
        scores(cached, W, l1, bias, i, columns, count, running)
        scale, moved, some = C * cached.weight[i], 0, False
        for m in range(count):
            a = columns[m]
            sign = 1.0 if cached.target[i] == active[a] else -1.0
            z = sign * running[a]
            if loss.stays(share[i, a], z, slack[a], sign):
                busy[i, a] = False
                continue
            some = True
            after = loss.step(share[i, a], z, scale * cached.square[i], sign)
            step = (after - share[i, a]) * scale
            if step != 0.0:
                largest[a] = max(largest[a], loss.violation(share[i, a], z, sign))
                gain[a] += (loss.constant(after, sign) - loss.constant(share[i, a], sign)) * scale
                share[i, a] = after
                columns[moved], steps[moved] = a, step * sign
                moved += 1
        if moved > 0:
            add_steps(cached, W, bias, i, columns, moved, steps)
        order[left] = i
        left += some
    return left


@kernel
def write_back(loss, cached, first_row, active, slots, bias, grids, codes, sums, buffers):
    """The shares of cached rows go to slots[a] of `codes`, of the rows from `first_row` on; dual cuts and constants follow."""
    A = len(active)
    for i in range(len(cached.number)):
        row, changes = cached.number[i] - first_row, 0
        for a in range(A):
            k = active[a]
            past, now = codes[row, slots[a], k], loss.encode(loss.limited(cached.share[i, a], grids.limit, cached.weight[i]))
            codes[row, slots[a], k] = now
            sign = 1.0 if cached.target[i] == k else -1.0
            changes = note_change(loss, A + a, past, now, cached.weight[i], sign, grids, sums, changes, buffers)
        add_changes(cached, bias, i, grids, changes, buffers, sums)
