"""Dual coordinate ascent over streamed rows, with scores and the predicted cut, all while a group of rows is in cache.

The dual variable of row i is α_i = f_i C u_i with a share f_i in the domain of its loss's conjugate: [0, 1] for the hinge. A row
keeps its share in every cut of the bundle, as a code of the loss's choosing (streamcut.losses.codes). Sweeps end in shares that
have a code, so a new cut agrees with the shares that rows remember for it.

Cuts are Σ −u_i σ_i f_i x_i with constants Σ u_i (f_i t_i − ℓ*(−f_i)), where z_i = σ_i⟨w, x_i⟩ − t_i is the argument of the loss:
the margin y_i⟨w, x_i⟩, or a residual. They are sums on `grids` (streamcut.foundation.rounding.Grids), exact in any order, so what
a row adds can be subtracted exactly: a pass adds only the changes since the last one, and has the same bits as one that starts
from 0. w is scored, sums.w is the running w′ of the ascent; D = d, or d + 1 with the bias. Under an elastic net sums.w is the
running v′, and w′ = S(v′, λ) is computed where it is read: S is nonexpansive, so a step that is exact without it is safe.
"""

import numpy as np

from streamcut.compiled import loss as methods  # noqa: F401  (kernels call methods of losses)
from streamcut.compiled.records import AHEAD, entry, fetch_row, put, target_of, weight_of
from streamcut.compiled.shares import left, rounded
from streamcut.compiled.thresholds import shrunk
from streamcut.compiler.jit import helper, inlined, kernel

_AT_BOUND = np.inf


@kernel
def merge_shares(loss, codes, into, gone, weight):
    """Column `into` of codes (n, T) becomes (1 − weight)·itself + weight·column `gone`, in place: the shares of merged cuts."""
    for i in range(len(codes)):
        if codes[i, into] != codes[i, gone]:
            codes[i, into] = loss.merged(codes[i, into], codes[i, gone], weight)


@kernel
def ascend(loss, rows, margins, start, slots, grids, visits, sums, scratch):
    """One visit of every row: z under w, its part of the cut at z_b + κ(z − z_b), steps of dual ascent.

    Ascent starts from the mixed share Σ_t parts[t] · (share in column t of codes (n, T)); a step goes to the maximum of the dual
    along row i at w′, and updates w′; with a `stretch`, of the dual for that times C. A row whose share is at a bound, and whose
    z under w keeps it there, is at rest: no step. Fills z and keys (n); columns `predicted` and `ascent` of codes get the shares
    of both cuts. Sums get the difference of the first from the last predicted cut, and of the second from the first: most rows
    have the same share in all. A row's key is lowest where it may still move most.

    Rows come in groups, groups in batches (records.Visits). Scores come first, in memory order: this fetches the rows, without
    which a random order takes twice the time. Then rows not at their bound take steps in `order`, as many at a time as are near.
    Further steps and the cuts follow once the whole group has had its first step. Returns the index of a row whose score is not
    finite, or −1.

    Without steps there is no cut of the ascent. The group can then be passed again with `scratch`, `scored`, for steps alone, and
    `add_changes` adds that cut. So one group may be scored while another takes steps.
    """
    size, n, bad = len(visits.order), len(rows.y), -1
    shares, waiting = scratch.shares, scratch.waiting
    batch = size * len(visits.places)
    for first in range(0, n, batch):
        for place in visits.places:
            group = first + size * place
            if group >= n:
                continue
            if not scratch.scored:
                shares[:] = _AT_BOUND
            count = 0
            for begin in range(0, size, visits.near):
                order, fetched = visits.order[begin : begin + visits.near], visits.fetched[begin : begin + visits.near]
                if not scratch.scored:
                    found = _score(loss, group, fetched, rows, margins, start, slots, grids, sums, shares)
                    bad = found if bad < 0 else bad
                if visits.steps == 0:
                    continue
                stop = count
                for i in order:
                    waiting[stop] = i
                    stop += shares[i] != _AT_BOUND
                count += _coordinate_steps(
                    loss, group, waiting[count:stop], rows, margins, start, slots.ascent, grids, sums.w, shares
                )
            for _ in range(1, visits.steps):
                count = _coordinate_steps(loss, group, waiting[:count], rows, margins, start, slots.ascent, grids, sums.w, shares)
            if visits.steps > 0 and not scratch.scored:
                _add_changes(loss, group, group + size, rows, margins.codes, start.bias, slots, grids, sums)
    return bad


@kernel
def add_changes(loss, rows, codes, bias, slots, grids, sums):
    """The cut of the ascent of all rows, once they have taken their steps."""
    _add_changes(loss, 0, len(rows.y), rows, codes, bias, slots, grids, sums)


@helper
def _score(loss, group, places, rows, margins, start, slots, grids, sums, shares):
    """z and shares of the rows at `places` of a group before its steps; shares are _AT_BOUND for rows that stay there.

    Adds the change of their shares in the predicted cut since the last one, while their entries are in cache; cuts without
    features: it does not.
    """
    w, y, z_b, z, codes, keys = start.w, rows.y, margins.z_b, margins.z, margins.codes, margins.keys
    constant = start.bias * w[-1] if start.bias != 0.0 else 0.0
    bad, nothing = -1, loss.encode(0.0)
    for place in places:
        i = group + place
        if i < 0 or i >= len(y):
            continue
        share = loss.mixed(codes, i, start.parts, y[i])  # before codes are written: a wide load right after a narrow store waits
        if not margins.known:
            score = constant
            for t in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
                score += entry(rows.data, t) * w[np.uint64(rows.indices[t])]
            if bad < 0 and not np.isfinite(score):
                bad = i
            z[i] = loss.sign(y[i]) * score - loss.offset(y[i])
        here = z[i]
        f = loss.dual(z_b[i] + start.kappa * (here - z_b[i]), y[i])
        code, past = loss.encode(loss.limited(f, grids.limit, weight_of(rows.u, i))), nothing
        if slots.last >= 0:
            past = codes[i, slots.last]
        codes[i, slots.predicted] = code
        if code != past and sums.cuts.shape[2] > 0:
            _change_cut(loss, rows, i, start.bias, code, past, grids, sums.cuts[0], sums.b[0])
        if loss.stays(share, here, 0.0, y[i]):
            codes[i, slots.ascent] = loss.encode(share)
            keys[i] = loss.priority(share, here, 0.0, y[i])
        else:
            shares[place] = share
    return bad


@helper
def _coordinate_steps(loss, group, waiting, rows, margins, start, dual, grids, w, shares):
    """A dual ascent step for the rows at `waiting` in a group, in that order; moves those still free to the front.

    Returns their number.
    """
    last, free, bias, C = len(w) - 1, 0, start.bias, start.stretch * start.C
    for at in range(len(waiting)):
        place = waiting[at]
        i = group + place
        if at + AHEAD < len(waiting):
            fetch_row(rows, group + waiting[at + AHEAD])
        first, stop = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])
        running, square = 0.0, 0.0
        if bias != 0.0:
            running, square = bias * shrunk(w[last], start.l1), bias * bias
        for t in range(first, stop):
            value = entry(rows.data, t)
            running += value * shrunk(w[np.uint64(rows.indices[t])], start.l1)
            square += value * value
        y, u = rows.y[i], weight_of(rows.u, i)
        sign, scale = loss.sign(y), C * u
        z, q = sign * running - loss.offset(y), scale * square
        share = loss.step(shares[place], z, q, y) if q > 0.0 else loss.dual(z, y)
        code = loss.encode(loss.limited(share, grids.limit, u))
        after = loss.decode(code, y)
        step = (after - shares[place]) * scale * sign
        margins.codes[i, dual] = code
        margins.keys[i] = loss.priority(after, z, u * square, y)
        waiting[free] = place
        free += loss.free(after, y)
        if step == 0.0:
            continue
        shares[place] = after
        if bias != 0.0:
            w[last] += step * bias
        for t in range(first, stop):
            w[np.uint64(rows.indices[t])] += step * entry(rows.data, t)
    return free


@helper
def _add_changes(loss, first, stop, rows, codes, bias, slots, grids, sums):
    """Adds to the second cut and constant the difference of rows' shares in the ascent from the predicted ones."""
    cut, constant = sums.cuts[1], sums.b[1]
    for i in range(max(first, 0), min(stop, len(rows.y))):
        after, before = codes[i, slots.ascent], codes[i, slots.predicted]
        if after != before:
            _change_cut(loss, rows, i, bias, after, before, grids, cut, constant)


@inlined
def _change_cut(loss, rows, i, bias, code, past, grids, cut, sums):
    """Adds row i to a cut and its constant with the share of `code`, and subtracts what it added with that of `past`."""
    y, weight = rows.y[i], weight_of(rows.u, i)
    after, before = loss.decode(code, y), loss.decode(past, y)
    _change_sum(loss, weight, after, before, y, grids, sums)
    after, before = -loss.sign(y) * (weight * after), -loss.sign(y) * (weight * before)
    _change_row(rows, i, bias, after, before, grids, cut)


@inlined
def _change_sum(loss, weight, after, before, y, grids, sums):
    """Adds share `after` of a row to the constant of a cut, and subtracts share `before`, on the grids of weights.

    sums: [Σ u constant, its remainder after the coarse grid, Σ u |f|, Σ u size], the last two for its rounding.
    """
    new, old = weight * loss.constant(after, y), weight * loss.constant(before, y)
    given, taken = rounded(new, grids.weight), rounded(old, grids.weight)
    sums[0] += given - taken
    sums[1] += left(new, given, grids.fine_weight) - left(old, taken, grids.fine_weight)
    if loss.sized():
        sums[2] += rounded(weight * abs(after), grids.weight) - rounded(weight * abs(before), grids.weight)
        sums[3] += rounded(weight * loss.size(after, y), grids.weight) - rounded(weight * loss.size(before, y), grids.weight)


@inlined
def _change_row(rows, i, bias, after, before, grids, cut):
    """cut (folds, D) += after·x_i − before·x_i, each on the grids."""
    vector, fine, high, low = grids.vector, grids.fine_vector, cut[0], cut[-1]
    if bias != 0.0:
        given, taken = rounded(after * bias, vector), rounded(before * bias, vector)
        high[-1] += given - taken
        if fine != 0.0:
            low[-1] += left(after * bias, given, fine) - left(before * bias, taken, fine)
    for t in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
        value = entry(rows.data, t)
        given, taken = rounded(after * value, vector), rounded(before * value, vector)
        high[np.uint64(rows.indices[t])] += given - taken
        if fine != 0.0:
            low[np.uint64(rows.indices[t])] += left(after * value, given, fine) - left(before * value, taken, fine)


@kernel
def offer(loss, first, rows, keys, codes, dual, bias, numbers, limit, n, cached):
    """Copies rows from `first` on with keys below `limit` behind the n rows of a cache, while they fit.

    `numbers` are the row numbers. Rows that dual ascent cannot move (weight 0, no features) are left out. Returns (the next row,
    rows in the cache).
    """
    for i in range(first, len(rows.y)):
        if keys[i] >= limit:
            continue
        start, stop = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])
        at = np.uint64(cached.indptr[n])
        if n == len(cached.number) or at + (stop - start) > np.uint64(len(cached.indices)):
            return i, n
        norm = bias * bias
        for t in range(start, stop):
            cached.indices[at] = rows.indices[t]
            value = entry(rows.data, t)
            norm += value * value
            put(cached.data, at, value)
            at += np.uint64(1)
        own = weight_of(rows.u, i)
        if norm == 0.0 or own == 0.0:
            continue
        cached.number[n], cached.key[n], cached.square[n] = numbers[i], keys[i], norm
        cached.share[n] = loss.decode(codes[i, dual], rows.y[i])
        cached.weight[n] = own if loss.sign(rows.y[i]) > 0.0 else -own
        put(cached.target, np.uint64(n), rows.y[i])
        n += 1
        cached.indptr[n] = at
    return len(rows.y), n


@kernel
def sweep(loss, order, cached, C, bias, l1, slack, w):
    """A dual ascent sweep over the cached rows in `order` at w (v, if there is an `l1`); shares and w are updated in place.

    Rows at a bound whose z is more than `slack` from where they would leave it are shrunk away (Hsieh et al. 2008, 3.2): the
    others come first in `order`. Returns (increase of the rows' terms of the dual, number of remaining rows, the largest
    violation).
    """
    gain, largest, left = 0.0, 0.0, 0
    weight, square, share = cached.weight, cached.square, cached.share
    for at in range(len(order)):
        i = order[at]
        if at + AHEAD < len(order):
            fetch_row(cached, order[at + AHEAD])
        sign, y = 1.0 if weight[i] > 0.0 else -1.0, target_of(cached.target, i)
        start, stop = np.uint64(cached.indptr[i]), np.uint64(cached.indptr[i + 1])
        running = bias * shrunk(w[-1], l1) if bias != 0.0 else 0.0
        for t in range(start, stop):
            running += entry(cached.data, t) * shrunk(w[np.uint64(cached.indices[t])], l1)
        z = sign * running - loss.offset(y)
        if loss.stays(share[i], z, slack, y):
            continue
        order[left] = i
        left += 1
        after = loss.step(share[i], z, C * abs(weight[i]) * square[i], y)
        step = (after - share[i]) * C * weight[i]
        if step == 0.0:
            continue
        largest = max(largest, loss.violation(share[i], z, y))
        gain += (loss.constant(after, y) - loss.constant(share[i], y)) * C * weight[i] * sign
        share[i] = after
        if bias != 0.0:
            w[-1] += step * bias
        for t in range(start, stop):
            w[np.uint64(cached.indices[t])] += step * entry(cached.data, t)
    return gain, left, largest


@kernel
def gained(loss, weight, target, before, after):
    """Σ weight (constant of share `after` − that of `before`), all (n)."""
    gain = 0.0
    for i in range(len(weight)):
        gain += weight[i] * (loss.constant(after[i], target[i]) - loss.constant(before[i], target[i]))
    return gain


@kernel
def write_back(loss, cached, places, first_row, dual, bias, grids, codes, cuts, sums):
    """Write the shares of the cached rows at `places` to column `dual` of their codes; updates cut and constant.

    `codes` start at row `first_row`.
    """
    for i in places:
        row, y, weight = cached.number[i] - first_row, target_of(cached.target, i), cached.weight[i]
        old = codes[row, dual]
        new = loss.encode(loss.limited(cached.share[i], grids.limit, abs(weight)))
        if old == new:
            continue
        codes[row, dual] = new
        before, after = loss.decode(old, y), loss.decode(new, y)
        _change_sum(loss, abs(weight), after, before, y, grids, sums[1])
        _change_row(cached, i, bias, -weight * after, -weight * before, grids, cuts[1])
