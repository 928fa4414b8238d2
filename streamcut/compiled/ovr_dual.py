"""Dual coordinate ascent for one class against the rest, several classes at once, over streamed rows and over rows in a cache.

A problems of streamcut.compiled.dual share every row: a pair of row i and class k has the dual variable C u_i f with a share f in
the domain of the loss's conjugate, kept for every cut of the class's bundle as a code of the loss's choosing
(streamcut.losses.codes). With losses that are 0 beyond a margin most pairs are at bound: the row is far on the right side of most
classes. So scores of a row are those of all classes, and steps are for the few pairs that may move.

Records are those of streamcut.compiled.records, with y the number of a row's class. As in streamcut.compiled.ovr, column a of w,
of the running w′ (D, A) and of z belongs to class active[a], codes (n, T, K) and z_b have a column for every class. The cuts
(D, 2 A) are both of each class: first the predicted ones, Σ −u_i y_ik f(z_c) x_i with y_ik = ±1, + for rows of class k, then
those of the ascent, Σ −u_i y_ik f_ik x_i; their constants are b (1 or 3, 2 A), see ovr.add_constant. Terms are rounded to
`grids`: what a row added to the cuts can be taken back exactly.
"""

import numpy as np

from streamcut.compiled import loss as methods  # noqa: F401  (kernels call methods of losses)
from streamcut.compiled.ovr import add_constant
from streamcut.compiled.records import entry, weight_of
from streamcut.compiled.shares import rounded, square_of
from streamcut.compiled.thresholds import shrunk
from streamcut.jit import helper, inlined, kernel

FAR = 1.0  # a pair at a bound whose margin says by so much that it stays there is not swept in a cache
_AT_BOUND = -1.0
_FEW = 4  # all classes together take about as long as a fourth of them one by one


@kernel
def merge_shares(loss, codes, classes, into, gone, weight):
    """codes[:, into[m], classes[m]] becomes (1 − weight[m])·itself + weight[m]·(the same of gone[m]), m after m, in place."""
    for i in range(len(codes)):
        for m in range(len(classes)):
            k = classes[m]
            if codes[i, into[m], k] != codes[i, gone[m], k]:
                codes[i, into[m], k] = loss.merged(codes[i, into[m], k], codes[i, gone[m], k], weight[m])


@helper
def scores(rows, W, l1, bias, i, columns, count, out):
    """out[c] = ⟨W[:, c], xᵢ⟩ for the first `count` of `columns`, and for any others; with an `l1`, of what thresholds leave."""
    start, stop, last = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1]), len(W) - 1
    if _FEW * count < len(out):
        for m in range(count):
            c = np.uint64(columns[m])
            total = bias * shrunk(W[last, c], l1) if bias != 0.0 else 0.0
            for p in range(start, stop):
                total += entry(rows.data, p) * shrunk(W[np.uint64(rows.indices[p]), c], l1)
            out[c] = total
        return
    for c in range(len(out)):
        out[c] = bias * shrunk(W[last, c], l1) if bias != 0.0 else 0.0
    for p in range(start, stop):
        j = np.uint64(rows.indices[p])
        value = entry(rows.data, p)
        for c in range(len(out)):
            out[c] += value * shrunk(W[j, c], l1)


@helper
def add_steps(rows, W, bias, i, columns, count, steps):
    """W[:, columns[m]] += steps[m] xᵢ for the first `count` of `columns`."""
    for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
        j = np.uint64(rows.indices[p])
        value = entry(rows.data, p)
        for m in range(count):
            W[j, columns[m]] += steps[m] * value
    if bias != 0.0:
        for m in range(count):
            W[len(W) - 1, columns[m]] += steps[m] * bias


@kernel
def ascend(loss, rows, active, margins, start, slots, grids, visits, sums, scratch):
    """One visit of every row: its margins under w, its part of the cuts at z_b + κ_a (z − z_b), steps of dual ascent.

    Ascent of class k starts from the shares Σ_s parts[s, k]·raw of the codes in the mixture's slots (start.parts); a step goes to
    the maximum of its dual along the row at w′, and takes w′ along. A pair at a bound whose margin under w says that it stays
    there is at bound: no step. Fills z and keys (n); slots predicted[a] and ascent[a] of codes get the shares of both cuts. Adds
    to the sums the difference to the last slots (−1: to nothing). A row's key tells how little it may still move: the least
    priority of its pairs.

    Groups, batches and the order of work are those of streamcut.compiled.dual.ascend; from the second step on only free pairs.
    Returns the first row with a score that is not finite, or −1.
    """
    size, n, bad = len(visits.order), len(rows.y), -1
    waiting, codes, buffers, nothing = scratch.waiting, margins.codes, scratch.buffers, loss.encode(0.0)
    batch = size * len(visits.places)
    for first in range(-visits.begins, n, batch):
        for place in visits.places:
            group = first + size * place
            if group + size <= 0 or group >= n:
                continue
            found = _score_group(loss, group, rows, active, margins, start, slots, grids, scratch)
            bad = found if bad < 0 else bad
            count = 0
            for at in visits.order:
                waiting[count] = at
                count += scratch.pending[at] > 0
            for _ in range(visits.steps):
                count = _coordinate_steps(
                    loss,
                    group,
                    waiting[:count],
                    rows,
                    active,
                    margins,
                    start,
                    slots.ascent,
                    grids,
                    sums.w,
                    scratch.shares,
                    buffers,
                )
            for i in range(max(group, 0), min(group + size, n)):
                weight, A, changes = weight_of(rows.u, i), len(active), 0
                for a in range(A):
                    k = active[a]
                    sign = 1.0 if rows.y[i] == k else -1.0
                    past = codes[i, slots.last_predicted[a], k] if slots.last_predicted[a] >= 0 else nothing
                    changes = note_change(
                        loss, a, past, codes[i, slots.predicted[a], k], weight, sign, grids, sums, changes, buffers
                    )
                    past = codes[i, slots.last_ascent[a], k] if slots.last_ascent[a] >= 0 else nothing
                    changes = note_change(
                        loss, A + a, past, codes[i, slots.ascent[a], k], weight, sign, grids, sums, changes, buffers
                    )
                add_changes(rows, start.bias, i, grids, changes, buffers, sums)
    return bad


@helper
def _score_group(loss, group, rows, active, margins, start, slots, grids, scratch):
    """Margins and shares at the start of a group, _AT_BOUND for pairs that stay at their bound; `pending` counts the others."""
    z_b, z, codes, kappa, bad, A = margins.z_b, margins.z, margins.codes, start.kappa, -1, len(active)
    shares, pending, mixed, mixture = scratch.shares, scratch.pending, scratch.sums, start.parts
    pending[:] = 0
    for place in range(max(-group, 0), min(len(shares), len(rows.y) - group)):
        i, share, key, total = group + place, shares[place], np.inf, 0.0
        mixed[:] = 0.0  # before codes are written: a wide load right after a narrow store waits for it
        for s in range(len(mixture.slots)):
            for k in range(len(mixed)):
                mixed[k] += mixture.parts[s, k] * loss.raw(codes[i, mixture.slots[s], k])
        scores(rows, start.w, None, start.bias, i, active, A, z[i, :A])
        for a in range(A):
            k = active[a]
            total += z[i, a]
            sign = 1.0 if rows.y[i] == k else -1.0
            margin = sign * z[i, a]
            z[i, a] = margin
            f = loss.dual(z_b[i, k] + kappa[a] * (margin - z_b[i, k]), sign)
            codes[i, slots.predicted[a], k] = loss.encode(loss.limited(f, grids.limit, weight_of(rows.u, i)))
            share[a] = loss.snapped(mixed[k], sign)
            if loss.stays(share[a], margin, 0.0, sign):
                codes[i, slots.ascent[a], k] = loss.encode(share[a])
                if loss.violation(share[a], margin, sign) < FAR:
                    key = min(key, loss.priority(share[a], margin, 0.0, sign))
                share[a] = _AT_BOUND
            else:
                pending[place] += 1
        margins.keys[i] = key
        if bad < 0 and not np.isfinite(total):
            bad = i
    return bad


@helper
def _coordinate_steps(loss, group, waiting, rows, active, margins, start, dual, grids, W, shares, buffers):
    """A step of dual ascent for the pairs of the rows at `waiting` that are not at bound; rows with free ones come first then.

    Pairs at a bound stay there after it. Returns how many rows have free ones.
    """
    running, columns, steps, keys, bias, left = buffers.running, buffers.columns, buffers.after, margins.keys, start.bias, 0
    for place in waiting:
        i, share, count, free = group + place, shares[place], 0, 0
        for a in range(len(share)):
            if share[a] != _AT_BOUND:
                columns[count] = a
                count += 1
        scores(rows, W, start.l1, bias, i, columns, count, running)
        weight, square = weight_of(rows.u, i), square_of(rows.indptr, rows.data, bias, i)
        scale = start.C * weight
        curvature, key, moved = scale * square, keys[i], 0
        for m in range(count):
            a = columns[m]
            k = active[a]
            sign = 1.0 if rows.y[i] == k else -1.0
            z = sign * running[a]
            f = loss.step(share[a], z, curvature, sign) if curvature > 0.0 else loss.dual(z, sign)
            code = loss.encode(loss.limited(f, grids.limit, weight))
            after = loss.decode(code, sign)
            if after != share[a]:
                columns[moved], steps[moved] = a, (after - share[a]) * scale * sign
                moved += 1
            margins.codes[i, dual[a], k] = code
            key = min(key, loss.priority(after, z, weight * square, sign))
            still = loss.free(after, sign)
            share[a] = after if still else _AT_BOUND
            free += still
        keys[i] = key
        if moved > 0:
            add_steps(rows, W, bias, i, columns, moved, steps)
        waiting[left] = place
        left += free > 0
    return left


@inlined
def note_change(loss, column, past, now, weight, sign, grids, sums, changes, buffers):
    """A change of code goes behind the first `changes` of the buffers' columns, before, after; returns how many they are then.

    There is one of each of the 2 A columns at most.
    """
    if now != past:
        taken, given = loss.decode(past, sign), loss.decode(now, sign)
        add_constant(loss, sums.b, column, weight, given, sign, 1.0, grids)
        add_constant(loss, sums.b, column, weight, taken, sign, -1.0, grids)
        buffers.columns[changes], buffers.before[changes], buffers.after[changes] = (
            column,
            -sign * (weight * taken),
            -sign * (weight * given),
        )
        changes += 1
    return changes


@helper
def add_changes(rows, bias, i, grids, changes, buffers, sums):
    """Row i adds after[m] and takes back before[m] in column columns[m] of the cuts, for the first `changes` of them."""
    if changes == 0:
        return
    columns, before, after, cuts, vector = buffers.columns, buffers.before, buffers.after, sums.cuts, grids.vector
    for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
        j = np.uint64(rows.indices[p])
        value = entry(rows.data, p)
        for m in range(changes):
            cuts[j, columns[m]] += rounded(after[m] * value, vector) - rounded(before[m] * value, vector)
    if bias != 0.0:
        for m in range(changes):
            cuts[len(cuts) - 1, columns[m]] += rounded(after[m] * bias, vector) - rounded(before[m] * bias, vector)


@kernel
def add_columns(source, columns, out):
    """out[:, c] += source[:, columns[c]] where that is not −1, in place."""
    for j in range(len(out)):
        for c in range(len(columns)):
            if columns[c] >= 0:
                out[j, c] += source[j, columns[c]]


@kernel
def line_products(W, delta, out):
    """out (2, A) = ⟨W, Δ⟩ and ‖Δ‖² by columns."""
    out[:] = 0.0
    for j in range(len(W)):
        for a in range(W.shape[1]):
            out[0, a] += W[j, a] * delta[j, a]
            out[1, a] += delta[j, a] * delta[j, a]


@kernel
def move(W, delta, theta):
    """W[:, a] += theta[a] Δ[:, a] in place."""
    for j in range(len(W)):
        for a in range(W.shape[1]):
            W[j, a] += theta[a] * delta[j, a]
