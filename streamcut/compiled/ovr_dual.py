"""Dual coordinate ascent for one class against the rest, several classes at once, over streamed rows and over rows in a cache.

A problems of streamcut.compiled.dual share every row: a pair of row i and class k has the dual variable C u_i f with a share
0 ≤ f ≤ 1, kept for every cut of the class's bundle as a 16-bit code q, f = (q / 65535)². Most pairs are at bound: the row is far
on the right side of most classes. So scores of a row are those of all classes, and steps are for the few pairs that may move.

Records are those of streamcut.compiled.records, with y the number of a row's class. As in streamcut.compiled.ovr, column a of w,
of the running w′ (D, A) and of z belongs to class active[a], codes (n, T, K) and z_b have a column for every class. The cuts
(D, 2 A) are both of each class: first the predicted ones, Σ −u_i y_ik 1[z_c < 1] x_i with y_ik = ±1, + for rows of class k, then
those of the ascent, Σ −u_i y_ik f_ik x_i; their constants b (2 A) are Σ u_i 1[z_c < 1] and Σ u_i f_ik. Terms are rounded to
`grids`: what a row added to the cuts can be taken back exactly.
"""

import numpy as np

from streamcut.compiled.records import entry, weight_of
from streamcut.compiled.shares import ONE, code_of, rounded, share_of, square_of
from streamcut.jit import inlined, kernel

_NEARLY = 1.0 - 1e-7  # rounding of parts and codes apart, such a share is 1
_NOT_FREE = 1e3  # added to the keys of rows whose shares are all at a bound: free rows come first, whatever their margins
FAR = 1.0  # a pair at a bound whose margin says by so much that it stays there is not swept in a cache
_AT_BOUND = -1.0
_FEW = 4  # all classes together take about as long as a fourth of them one by one


@kernel
def merge_shares(codes, classes, into, gone, weight):
    """codes[:, into[m], classes[m]] becomes (1 − weight[m])·itself + weight[m]·(the same of gone[m]), m after m, in place."""
    for i in range(len(codes)):
        for m in range(len(classes)):
            k = classes[m]
            if codes[i, into[m], k] != codes[i, gone[m], k]:
                kept = (1.0 - weight[m]) * share_of(codes[i, into[m], k])
                codes[i, into[m], k] = code_of(kept + weight[m] * share_of(codes[i, gone[m], k]))


@kernel
def scores(rows, W, bias, i, columns, count, out):
    """out[c] = ⟨W[:, c], xᵢ⟩ for the first `count` of `columns`, and for any others."""
    start, stop, last = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1]), len(W) - 1
    if _FEW * count < len(out):
        for m in range(count):
            c = np.uint64(columns[m])
            total = bias * W[last, c] if bias != 0.0 else 0.0
            for p in range(start, stop):
                total += entry(rows.data, p) * W[np.uint64(rows.indices[p]), c]
            out[c] = total
        return
    for c in range(len(out)):
        out[c] = bias * W[last, c] if bias != 0.0 else 0.0
    for p in range(start, stop):
        j = np.uint64(rows.indices[p])
        value = entry(rows.data, p)
        for c in range(len(out)):
            out[c] += value * W[j, c]


@kernel
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
def ascend(rows, active, margins, start, slots, grids, visits, sums, scratch):
    """One visit of every row: its margins under w, its part of the cuts at z_b + κ_a (z − z_b), steps of dual ascent.

    Ascent of class k starts from the shares Σ_s parts[s, k]·q² of the codes in the mixture's slots (start.parts); a step goes to
    the maximum of its dual along the row at w′, and takes w′ along. A pair at a bound whose margin under w says that it stays
    there is at bound: no step. A pair of a row without features has share 1. Fills z and keys (n); slots predicted[a] and
    ascent[a] of codes get the shares of both cuts. Adds to the sums the difference to the last slots (−1: to nothing). A row's
    key says how little it may still move: the least |1 − margin| of its pairs, rows that have no free one after all others.

    Groups, batches and the order of work are those of streamcut.compiled.dual.ascend; from the second step on only free pairs.
    Returns the first row with a score that is not finite, or −1.
    """
    size, n, bad = len(visits.order), len(rows.y), -1
    waiting, codes, buffers = scratch.waiting, margins.codes, scratch.buffers
    batch = size * len(visits.places)
    for first in range(-visits.begins, n, batch):
        for place in visits.places:
            group = first + size * place
            if group + size <= 0 or group >= n:
                continue
            found = _score_group(group, rows, active, margins, start, slots, scratch)
            bad = found if bad < 0 else bad
            count = 0
            for at in visits.order:
                waiting[count] = at
                count += scratch.pending[at] > 0
            for _ in range(visits.steps):
                count = _coordinate_steps(
                    group,
                    waiting[:count],
                    rows,
                    active,
                    margins,
                    start.C,
                    start.bias,
                    slots.ascent,
                    sums.w,
                    scratch.shares,
                    buffers,
                )
            for i in range(max(group, 0), min(group + size, n)):
                weight, A, changes = weight_of(rows.u, i), len(active), 0
                for a in range(A):
                    k = active[a]
                    sign = 1.0 if rows.y[i] == k else -1.0
                    past = codes[i, slots.last_predicted[a], k] if slots.last_predicted[a] >= 0 else np.uint16(0)
                    changes = note_change(a, past, codes[i, slots.predicted[a], k], weight, sign, grids, sums, changes, buffers)
                    past = codes[i, slots.last_ascent[a], k] if slots.last_ascent[a] >= 0 else np.uint16(0)
                    changes = note_change(A + a, past, codes[i, slots.ascent[a], k], weight, sign, grids, sums, changes, buffers)
                add_changes(rows, start.bias, i, grids, changes, buffers, sums)
    return bad


@kernel
def _score_group(group, rows, active, margins, start, slots, scratch):
    """Margins and shares at the start of a group, _AT_BOUND for pairs that stay at their bound; `pending` counts the others."""
    z_b, z, codes, kappa, bad, A = margins.z_b, margins.z, margins.codes, start.kappa, -1, len(active)
    shares, pending, mixed, mixture = scratch.shares, scratch.pending, scratch.sums, start.parts
    pending[:] = 0
    for place in range(max(-group, 0), min(len(shares), len(rows.y) - group)):
        i, share, key, total = group + place, shares[place], np.inf, 0.0
        mixed[:] = 0.0  # before codes are written: a wide load right after a narrow store waits for it
        for s in range(len(mixture.slots)):
            for k in range(len(mixed)):
                code = np.float64(codes[i, mixture.slots[s], k])
                mixed[k] += mixture.parts[s, k] * (code * code)
        scores(rows, start.w, start.bias, i, active, A, z[i, :A])
        for a in range(A):
            k = active[a]
            total += z[i, a]
            margin = z[i, a] if rows.y[i] == k else -z[i, a]
            z[i, a] = margin
            codes[i, slots.predicted[a], k] = ONE if z_b[i, k] + kappa[a] * (margin - z_b[i, k]) < 1.0 else 0
            share[a] = 1.0 if mixed[k] > _NEARLY else mixed[k]
            if (share[a] == 0.0 and margin > 1.0) or (share[a] == 1.0 and margin < 1.0):
                codes[i, slots.ascent[a], k] = ONE if share[a] == 1.0 else 0
                share[a] = _AT_BOUND
                if abs(1.0 - margin) < FAR:
                    key = min(key, abs(1.0 - margin) + _NOT_FREE)
            else:
                pending[place] += 1
        margins.keys[i] = key
        if bad < 0 and not np.isfinite(total):
            bad = i
    return bad


@kernel
def _coordinate_steps(group, waiting, rows, active, margins, C, bias, dual, W, shares, buffers):
    """A step of dual ascent for the pairs of the rows at `waiting` that are not at bound; rows with free ones come first then.

    Pairs that reach a bound are not active after it. Returns how many rows have free ones.
    """
    running, columns, steps, keys, left = buffers.running, buffers.columns, buffers.after, margins.keys, 0
    for place in waiting:
        i, share, count, free = group + place, shares[place], 0, 0
        for a in range(len(share)):
            if share[a] != _AT_BOUND:
                columns[count] = a
                count += 1
        scores(rows, W, bias, i, columns, count, running)
        scale = C * weight_of(rows.u, i)
        curvature, key, moved = scale * square_of(rows.indptr, rows.data, bias, i), keys[i], 0
        for m in range(count):
            a = columns[m]
            k = active[a]
            sign = 1.0 if rows.y[i] == k else -1.0
            ahead = 1.0 - sign * running[a]
            code = code_of(min(1.0, max(0.0, share[a] + ahead / curvature))) if curvature > 0.0 else np.uint16(ONE)
            after = share_of(code)
            if after != share[a]:
                columns[moved], steps[moved] = a, (after - share[a]) * scale * sign
                moved += 1
            margins.codes[i, dual[a], k] = code
            bounded = code == 0 or code == ONE
            key = min(key, abs(ahead) + (_NOT_FREE if bounded else 0.0))
            share[a] = _AT_BOUND if bounded else after
            free += not bounded
        keys[i] = key
        if moved > 0:
            add_steps(rows, W, bias, i, columns, moved, steps)
        waiting[left] = place
        left += free > 0
    return left


@inlined
def note_change(column, past, now, weight, sign, grids, sums, changes, buffers):
    """A change of code goes behind the first `changes` of buffers's columns, before, after; returns how many they are then.

    There is one of each of the 2 A columns at most.
    """
    if now != past:
        taken, given = weight * share_of(past), weight * share_of(now)
        sums.b[column] += rounded(given, grids.weight) - rounded(taken, grids.weight)
        buffers.columns[changes], buffers.before[changes], buffers.after[changes] = column, -sign * taken, -sign * given
        changes += 1
    return changes


@kernel
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
