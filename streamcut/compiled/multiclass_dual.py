"""Dual coordinate ascent on losses of all K classes over streamed rows, with scores and the predicted cut in the same pass.

The dual variable of row i is C u_i p_i with p_i in the simplex of K classes, p_i = e_t (t its target) when the row adds nothing
to W = C Σ u_i (e_t − p_i) x_iᵀ. A step moves p_i to the maximum of the dual along its row (streamcut.losses.joint). A row keeps
p_i in every cut of the bundle, as codes. Cuts are summed from these on `grids`, as in streamcut.compiled.dual: what a row added
can be subtracted exactly. Where a loss is not bounded, every row takes its steps, and sums start from 0 in every pass.

Under an elastic net the running w′ is a v′, as in streamcut.compiled.dual.

Records are those of streamcut.compiled.records, with y the class number of a row, w and the running w′ (D, K), cuts (2, D, K)
and their constants b (2). The value of class k for a row is its score + the margin: under a bounded loss ascent moves the row's
share to classes of high value.
"""

import math

import numpy as np

from streamcut.compiled import loss as methods  # noqa: F401  (kernels call methods of losses)
from streamcut.compiled.class_shares import code_below, decode, encode
from streamcut.compiled.records import AHEAD, entry, fetch_row, weight_of
from streamcut.compiled.shares import rounded, share_of, square_of
from streamcut.compiled.thresholds import shrunk
from streamcut.compiler.jit import allocating, helper, kernel

_NEARLY = 1.0 - 1e-7  # a share of 1, up to the rounding of parts and codes
_NOT_FREE = 1e3  # added to the keys of rows with all share in one class: the others come first, regardless of scores
_FAR = 1.0  # a row at bound whose class leads by this much is never cached: sweeping it would be useless
_AT_BOUND = -1.0
_FEW = 8  # all classes together take about as long as an eighth of them one by one
_FLAT = 1e-300


@allocating
def merge_shares(bounded, target, codes, into, gone, weight):
    """codes[:, into] (n, T, K) becomes (1 − weight)·itself + weight·codes[:, gone], in place: the shares of merged cuts."""
    share = np.empty(codes.shape[2])
    for i in range(len(codes)):
        for k in range(len(share)):
            share[k] = (1.0 - weight) * share_of(codes[i, into, k]) + weight * share_of(codes[i, gone, k])
            if bounded and codes[i, into, k] != codes[i, gone, k]:
                codes[i, into, k] = code_below(share[k])
        if not bounded:
            encode(target[i], share, codes[i, into])


@helper
def score(rows, W, l1, bias, i, out):
    """out = xᵢ W; with an `l1`, of W after thresholds."""
    last = len(W) - 1
    for k in range(len(out)):
        out[k] = bias * shrunk(W[last, k], l1) if bias != 0.0 else 0.0
    for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
        j = np.uint64(rows.indices[p])
        value = entry(rows.data, p)
        for k in range(len(out)):
            out[k] += value * shrunk(W[j, k], l1)


@helper
def lead(loss, t, scores, share):
    """The lead in value of the class with all the share; if below 0, the row leaves it.

    If the share is divided: the lowest value of a class with some share, less the highest of all.
    """
    best, second, low, whole = -np.inf, -np.inf, np.inf, False
    for k in range(len(share)):
        value = scores[k] + loss.margin(k, t)
        if value > best:
            best, second = value, best
        elif value > second:
            second = value
        if share[k] > 0.0:
            low = min(low, value)
            whole = share[k] == 1.0
    return best - second if whole and low == best else low - best


@helper
def _undivided(share):
    """Whether one class has the whole share."""
    most = 0.0
    for k in range(len(share)):
        most = max(most, share[k])
    return most == 1.0


@helper
def _move(rows, bias, i, buffers, count, W):
    """W += x_i · buffers.after, which is 0 except at the first `count` places buffers.moved."""
    steps, moved = buffers.after, buffers.moved
    start, stop = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])
    if _FEW * count < len(steps):
        for m in range(count):
            k, step = np.uint64(moved[m]), steps[moved[m]]
            for p in range(start, stop):
                W[np.uint64(rows.indices[p]), k] += step * entry(rows.data, p)
    else:
        for p in range(start, stop):
            j, value = np.uint64(rows.indices[p]), entry(rows.data, p)
            for k in range(len(steps)):
                W[j, k] += steps[k] * value
    if bias != 0.0:
        for k in range(len(steps)):
            W[len(W) - 1, k] += steps[k] * bias


@helper
def coordinate_step(loss, rows, i, t, scale, square, bias, W, share, buffers):
    """Moves row i, whose scores at W are buffers.new, to the maximum of the dual along it; updates `share` (K,) and W.

    `scale` is C u_i.
    """
    new, steps, moved, count = buffers.before, buffers.after, buffers.moved, 0
    loss.step(share, buffers.new, scale * square, t, new)
    for k in range(len(new)):
        steps[k] = scale * (share[k] - new[k])
        if new[k] != share[k]:
            moved[count] = k
            count += 1
        share[k] = new[k]
    if count > 0:
        _move(rows, bias, i, buffers, count, W)


@helper
def _mix(bounded, codes, slots, parts, t, share):
    """share = Σ_s parts[s] · (the codes in slot slots[s] of codes (T, K))², the rest being the target's."""
    share[:] = 0.0
    for s in range(len(slots)):
        for k in range(len(share)):
            code = np.float64(codes[slots[s], k])
            share[k] += parts[s] * (code * code)
    others, most = 0.0, 0
    for k in range(len(share)):
        others += share[k]
        if share[k] > share[most]:
            most = k
    if not bounded:
        if others > 1.0:
            for k in range(len(share)):
                share[k] /= others
        share[t] = max(0.0, 1.0 - others)
        return
    share[t] = max(0.0, 1.0 - others)
    if share[t] > _NEARLY:
        most = t
    if share[most] > _NEARLY:
        share[:] = 0.0
        share[most] = 1.0


@helper
def _coefficients(loss, t, weight, codes, out):
    """out (K,) = the row's coefficient in each column: weight times the shares of `codes`, less their sum in the target's.

    Returns its part of the constant.
    """
    decode(t, codes, out)
    own, total = weight * loss.constant(out, t), 0.0
    for k in range(len(codes)):
        if k != t:
            out[k] *= weight
            total += out[k]
    out[t] = -total
    return own


@helper
def add_change(loss, rows, i, t, weight, bias, past, now, which, grids, sums, buffers):
    """Adds row i with the codes `now` (K,) to cut `which` and its constant, and subtracts what it added with codes `past`.

    buffers.moved (K) gets the target, then the classes whose codes differ (the target's are always 0).
    """
    before, after, moved, cuts = buffers.before, buffers.after, buffers.moved, sums.cuts
    moved[0], count = t, 1
    for k in range(len(now)):
        if now[k] != past[k]:
            moved[count] = k
            count += 1
    if count == 1:
        return
    taken, given = _coefficients(loss, t, weight, past, before), _coefficients(loss, t, weight, now, after)
    sums.b[which] += rounded(given, grids.weight) - rounded(taken, grids.weight)
    start, stop, last, vector = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1]), cuts.shape[1] - 1, grids.vector
    if _FEW * count < len(now):
        for m in range(count):
            k, new, old = np.uint64(moved[m]), after[moved[m]], before[moved[m]]
            for p in range(start, stop):
                value = entry(rows.data, p)
                cuts[which, np.uint64(rows.indices[p]), k] += rounded(new * value, vector) - rounded(old * value, vector)
    else:
        for p in range(start, stop):
            j, value = np.uint64(rows.indices[p]), entry(rows.data, p)
            for k in range(len(now)):
                cuts[which, j, k] += rounded(after[k] * value, vector) - rounded(before[k] * value, vector)
    if bias != 0.0:
        for k in range(len(now)):
            cuts[which, last, k] += rounded(after[k] * bias, vector) - rounded(before[k] * bias, vector)


@kernel
def ascend(loss, rows, margins, start, slots, grids, visits, sums, scratch):
    """One visit of every row: its scores under w, its part of the cut at z_b + κ(z − z_b), steps of dual ascent.

    Ascent starts from the shares Σ_s parts[s]·q² of the codes in the mixture's slots (start.parts); a step goes to the maximum of
    the dual along the row at w′, and updates w′. Of a bounded loss, a row is at bound, and takes no step, when one class has its
    whole share and leads the others under w. Fills z and keys (n); slots `predicted` and `ascent` of codes (n, T, K) get the
    shares of both cuts, which are added to the sums. A row's key is lowest where it may still move most: the lead of its class,
    rows whose share is undivided after all others; of losses without bounds 1 / √(u ‖x‖² (1 − Σ p²)).

    Groups, batches and the order of work are those of streamcut.compiled.dual.ascend; from the second step on, only rows whose
    share is divided take steps. Returns the index of a row with a score that is not finite, or −1.
    """
    size, n, bad = len(visits.order), len(rows.y), -1
    shares, waiting, nothing, buffers = scratch.shares, scratch.waiting, scratch.nothing, scratch.buffers
    codes, bias = margins.codes, start.bias
    batch = size * len(visits.places)
    for first in range(0, n, batch):
        for place in visits.places:
            group = first + size * place
            if group >= n:
                continue
            found = _score_group(loss, group, rows, margins, start, slots, shares, buffers)
            bad = found if bad < 0 else bad
            count = 0
            for at in visits.order:
                waiting[count] = at
                count += shares[at, 0] != _AT_BOUND
            moving = count
            for _ in range(visits.steps):
                moving = _coordinate_steps(loss, group, waiting[:moving], rows, start, sums.w, margins.keys, shares, buffers)
            for at in range(max(-group, 0), min(size, n - group)):
                i = group + at
                t, weight = rows.y[i], weight_of(rows.u, i)
                if shares[at, 0] != _AT_BOUND:
                    encode(t, shares[at], codes[i, slots.ascent])
                add_change(loss, rows, i, t, weight, bias, nothing, codes[i, slots.predicted], 0, grids, sums, buffers)
                add_change(loss, rows, i, t, weight, bias, nothing, codes[i, slots.ascent], 1, grids, sums, buffers)
    return bad


@helper
def _score_group(loss, group, rows, margins, start, slots, shares, buffers):
    """Scores and shares at the start of a group; _AT_BOUND for rows that do not move, and places without a row."""
    z_b, z, codes, kappa, bad = margins.z_b, margins.z, margins.codes, start.kappa, -1
    shares[:, 0] = _AT_BOUND
    for place in range(max(-group, 0), min(len(shares), len(rows.y) - group)):
        i = group + place
        t, share = rows.y[i], shares[place]
        # before codes are written: a wide load right after a narrow store waits for it
        _mix(loss.bounded(), codes[i], start.parts.slots, start.parts.parts, t, share)
        score(rows, start.w, None, start.bias, i, z[i])
        total, there = 0.0, buffers.new
        for k in range(len(share)):
            total += z[i, k]
            there[k] = z_b[i, k] + kappa * (z[i, k] - z_b[i, k])
        if bad < 0 and not np.isfinite(total):
            bad = i
        loss.dual(there, t, buffers.before)
        encode(t, buffers.before, codes[i, slots.predicted])
        if loss.bounded() and _undivided(share):
            ahead = lead(loss, t, z[i], share)
            if ahead > 0.0:
                encode(t, share, codes[i, slots.ascent])
                margins.keys[i] = ahead + _NOT_FREE if ahead < _FAR else np.inf
                share[0] = _AT_BOUND
    return bad


@helper
def _coordinate_steps(loss, group, waiting, rows, start, W, keys, shares, buffers):
    """A dual ascent step for the rows at `waiting` in a group, in that order; moves those with divided shares to the front.

    Returns their number.
    """
    divided, bias = 0, start.bias
    for place in waiting:
        i, share = group + place, shares[place]
        t, weight, square = rows.y[i], weight_of(rows.u, i), square_of(rows.indptr, rows.data, bias, i)
        score(rows, W, start.l1, bias, i, buffers.new)
        ahead = lead(loss, t, buffers.new, share) if loss.bounded() else 0.0
        coordinate_step(loss, rows, i, t, start.C * weight, square, bias, W, share, buffers)
        waiting[divided] = place
        if not loss.bounded():
            rest = 1.0
            for value in share:
                rest -= value * value
            moves = weight * square * rest
            keys[i] = 1.0 / math.sqrt(moves) if moves > _FLAT else np.inf
            divided += 1
        else:
            whole = _undivided(share)
            keys[i] = abs(ahead) + (_NOT_FREE if whole else 0.0)
            divided += not whole
    return divided


# -- rows in a cache: records.CachedRows with shares (rows, K), the p_i, and the number of each row's class as its target --------


@kernel
def remember(rows, target, codes, dual, share):
    """The shares of the `rows` of a block that were cached; their `target` gets the rest."""
    for n in range(len(rows)):
        decode(target[rows[n]], codes[rows[n], dual], share[n])


@kernel
def sweep(loss, order, cached, C, bias, l1, slack, W, buffers):
    """A dual ascent sweep over cached rows in `order` at W (V, if there is an `l1`); shares and W are updated in place.

    Rows whose class has the whole share and leads by more than `slack` are shrunk away (Hsieh et al. 2008, 3.2): the others come
    first in `order`. Returns (C Σ u_i Δ of the rows' dual terms, number of remaining rows, the largest violation: how far a class
    with share trails). Where the loss is not bounded all rows stay.
    """
    gain, largest, left = 0.0, 0.0, 0
    for at in range(len(order)):
        if at + AHEAD < len(order):
            fetch_row(cached, order[at + AHEAD])
        i = order[at]
        t, share, scale = cached.target[i], cached.share[i], C * cached.weight[i]
        score(cached, W, l1, bias, i, buffers.new)
        if loss.bounded():
            ahead = lead(loss, t, buffers.new, share)
            if ahead > slack:
                continue
            order[left] = i
            left += 1
            if ahead >= 0.0:
                continue
            largest = max(largest, -ahead)
        before = loss.constant(share, t)
        coordinate_step(loss, cached, i, t, scale, cached.square[i], bias, W, share, buffers)
        gain += scale * (loss.constant(share, t) - before)
    return gain, left if loss.bounded() else len(order), largest


@kernel
def write_back(loss, cached, first_row, slot, bias, grids, codes, sums, past, buffers):
    """Write the shares of cached rows to `slot` of `codes`, which start at row `first_row`; updates cut 1 and its constant."""
    for i in range(len(cached.number)):
        t, now = cached.target[i], codes[cached.number[i] - first_row, slot]
        for k in range(len(now)):  # `past[:] = now` takes seconds to compile, for its error message on different lengths
            past[k] = now[k]
        encode(t, cached.share[i], now)
        add_change(loss, cached, i, t, cached.weight[i], bias, past, now, 1, grids, sums, buffers)
