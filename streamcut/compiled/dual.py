"""Dual coordinate ascent over streamed rows, with scores and the predicted cut: everything while a group of rows is in cache.

The dual variable of row i is α_i = f_i C u_i with a share 0 ≤ f_i ≤ 1. A row keeps its share in every cut of the bundle, as
16-bit codes q with f = (q / 65535)²: exact at both bounds, where most shares are, and fine near 0, where the shares of a large
C are. Sweeps end in shares that have a code, so a new cut and the shares that rows remember for it agree.

`cuts` (2, folds, D) float64 are both cuts: Σ −u_i y_i 1[z_c < 1] x_i, the predicted one, and Σ −u_i y_i f_i x_i, that of the
ascent. They are sums on `grids` (streamcut.rounding.Grids), exact in any order, and so are the `sums` (2, 2) of weights, the
second of each being what the coarse grid leaves. So what a row adds can be taken back exactly: a pass only adds what changed
since the last one, and has the same bits as one that starts from 0.
w is scored, w_run is the running w′ of the ascent; D = d, or d + 1 with the bias. Labels, weights `u`, margins as in
streamcut.compiled.hinge.

The `cached_` arrays and `share` belong to rows in a cache: CSR, row numbers, keys, u_i y_i, ‖x_i‖², and f_i as float64.
"""

import numpy as np

from streamcut.compiled.shares import ONE, code_of, left, rounded, share_of
from streamcut.jit import inlined, kernel

_NOT_FREE = 1e3  # added to the keys of rows whose share is at a bound: free rows come first, whatever their margins

MIXED = 1 << 31  # what parts of a mixture are multiples of: then Σ part·q² is exact in 64 bits
_WHOLE = MIXED * 65535.0 * 65535.0
_NEARLY = 1.0 - 1e-7  # rounding of parts and merged codes apart, such a share is 1
_AT_REST = -1.0


@kernel
def merge_shares(codes, into, gone, weight):
    """Column `into` of codes (n, T) becomes (1 − weight)·itself + weight·column `gone`, in place: the shares of merged cuts."""
    for i in range(len(codes)):
        if codes[i, into] != codes[i, gone]:
            codes[i, into] = code_of((1.0 - weight) * share_of(codes[i, into]) + weight * share_of(codes[i, gone]))


@kernel
def ascend(
    indptr, indices, data, y, positive, u, z_b, kappa, parts, C, bias, cut, dual, last_cut, last_dual, grids,
    visits, order, places, offset, w, w_run, cuts, z, codes, keys, sums, shares, waiting,
):  # fmt: skip
    """One look at every row: its margin under w, its part of the cut at z_b + κ(z − z_b), steps of dual ascent.

    Ascent starts from the share Σ_t parts[t]/MIXED · (share in column t of codes (n, T)); a step goes to the maximum of the dual
    along row i at w′, and takes w′ along. A row at a bound whose margin under w says that it stays there is at rest: no step.
    A row without features has share 1. Fills z and keys (n); columns `cut` and `dual` of codes get the shares of both cuts. Adds
    to cuts and sums (Σ u 1[z_c < 1], Σ u f) the difference to columns `last_cut` and `last_dual` (−1: to nothing). A row's
    key tells how much it may still move: |1 − y⟨w′, x⟩|, rows at a bound after all others.

    Rows come in groups of len(order), groups in batches of len(places), in the order of `places`; row 0 here is the one at
    `offset` of a batch. In a group scores come first, in the order of memory: that fetches it, without which a random order takes
    twice the time. Then `visits` times the rows that are not at rest, in `order`; then the cuts. shares and waiting: room for
    len(order) float64, int64. Returns the index of a row whose score is not finite, or −1.
    """
    size, n, bad = len(order), len(y), -1
    batch = size * len(places)
    for first in range(-offset, n, batch):
        for place in places:
            group = first + size * place
            if group + size <= 0 or group >= n:
                continue
            found = _score(
                group, indptr, indices, data, y, positive, z_b, kappa, parts, bias, cut, dual, w, z, codes, keys, shares
            )  # fmt: skip
            bad = found if bad < 0 else bad
            count = 0
            for i in order:
                waiting[count] = i
                count += shares[i] != _AT_REST
            for _ in range(visits):
                count = _climb(
                    group, waiting[:count], indptr, indices, data, y, positive, u, C, bias, dual, w_run, codes, keys, shares
                )  # fmt: skip
            _add_changes(
                group, size, indptr, indices, data, y, positive, u, bias, 0, cut, last_cut, grids, codes, cuts, sums
            )  # fmt: skip
            _add_changes(
                group, size, indptr, indices, data, y, positive, u, bias, 1, dual, last_dual, grids, codes, cuts, sums
            )  # fmt: skip
    return bad


@kernel
def _score(group, indptr, indices, data, y, positive, z_b, kappa, parts, bias, cut, dual, w, z, codes, keys, shares):
    """Margins and shares at the start of a group; _AT_REST for rows that stay at their bound, and places that are no row."""
    constant = bias * w[-1] if bias != 0.0 else 0.0
    bad = -1
    shares[:] = _AT_REST
    for place in range(max(-group, 0), min(len(shares), len(y) - group)):
        i = group + place
        total = np.uint64(0)  # before codes are written: a wide load right after a narrow store waits for it
        for t in range(len(parts)):
            code = np.uint64(codes[i, t])
            total += parts[t] * (code * code)
        score = constant
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            if data is None:
                score += w[np.uint64(indices[t])]
            else:
                score += data[t] * w[np.uint64(indices[t])]
        if bad < 0 and not np.isfinite(score):
            bad = i
        margin = score if y[i] == positive else -score
        z[i] = margin
        codes[i, cut] = ONE if z_b[i] + kappa * (margin - z_b[i]) < 1.0 else 0
        share = np.float64(total) / _WHOLE
        if share > _NEARLY:
            share = 1.0
        if (share == 0.0 and margin > 1.0) or (share == 1.0 and margin < 1.0):
            codes[i, dual] = ONE if share == 1.0 else 0
            keys[i] = abs(1.0 - margin) + _NOT_FREE
        else:
            shares[place] = share
    return bad


@kernel
def _climb(group, waiting, indptr, indices, data, y, positive, u, C, bias, dual, w_run, codes, keys, shares):
    """A step of dual ascent for the rows at `waiting` in a group, in that order; those not at a bound then come first there.

    Returns how many they are.
    """
    last, free = len(w_run) - 1, 0
    for place in waiting:
        i = group + place
        start, stop = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        running, square = 0.0, 0.0
        if bias != 0.0:
            running, square = bias * w_run[last], bias * bias
        for t in range(start, stop):
            if data is None:
                running += w_run[np.uint64(indices[t])]
            else:
                value = np.float64(data[t])
                running += value * w_run[np.uint64(indices[t])]
                square += value * value
        if data is None:
            square += np.float64(stop - start)
        sign = 1.0 if y[i] == positive else -1.0
        scale = C if u is None else C * u[i]
        ahead, room = 1.0 - sign * running, scale * square
        code = code_of(min(1.0, max(0.0, shares[place] + ahead / room))) if room > 0.0 else np.uint16(ONE)
        after = share_of(code)
        step = (after - shares[place]) * scale * sign
        codes[i, dual] = code
        bounded = code == 0 or code == ONE
        keys[i] = abs(ahead) + (_NOT_FREE if bounded else 0.0)
        waiting[free] = place
        free += not bounded
        if step == 0.0:
            continue
        shares[place] = after
        if bias != 0.0:
            w_run[last] += step * bias
        for t in range(start, stop):
            w_run[np.uint64(indices[t])] += step if data is None else step * data[t]
    return free


@kernel
def _add_changes(
    group, size, indptr, indices, data, y, positive, u, bias, which, now, last, grids, codes, cuts, sums
):  # fmt: skip
    """Adds a group's shares in column `now`, less those in column `last` (−1: none), to cuts[which] and sums[which]."""
    for i in range(max(group, 0), min(group + size, len(y))):
        code, past = codes[i, now], np.uint16(0)
        if last >= 0:
            past = codes[i, last]
        if code == past:
            continue
        weight = 1.0 if u is None else u[i]
        after, before = weight * share_of(code), weight * share_of(past)
        _change_sum(after, before, grids, sums[which])
        if y[i] == positive:
            after, before = -after, -before
        _change_row(indptr, indices, data, i, bias, after, before, grids, cuts[which])


@inlined
def _change_sum(after, before, grids, sums):
    """Adds `after` and takes back `before` on the grids of weights."""
    given, taken = rounded(after, grids.weight), rounded(before, grids.weight)
    sums[0] += given - taken
    sums[1] += left(after, given, grids.fine_weight) - left(before, taken, grids.fine_weight)


@inlined
def _change_row(indptr, indices, data, i, bias, after, before, grids, cut):
    """cut (folds, D) += after·x_i − before·x_i, each on the grids."""
    vector, fine, high, low = grids.vector, grids.fine_vector, cut[0], cut[-1]
    if bias != 0.0:
        given, taken = rounded(after * bias, vector), rounded(before * bias, vector)
        high[-1] += given - taken
        if fine != 0.0:
            low[-1] += left(after * bias, given, fine) - left(before * bias, taken, fine)
    for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
        value = 1.0 if data is None else np.float64(data[t])
        given, taken = rounded(after * value, vector), rounded(before * value, vector)
        high[np.uint64(indices[t])] += given - taken
        if fine != 0.0:
            low[np.uint64(indices[t])] += left(after * value, given, fine) - left(before * value, taken, fine)


@kernel
def offer(
    first, indptr, indices, data, y, positive, u, keys, codes, dual, bias, first_row, limit, n,
    cached_indptr, cached_indices, cached_data, number, key, weight, square, share,
):  # fmt: skip
    """Copies rows from `first` on with keys below `limit` behind the n rows of a cache, while there is room.

    Rows that dual ascent cannot move (weight 0, no features) are left out. Returns (the row to go on with, rows in the cache).
    """
    for i in range(first, len(y)):
        if keys[i] >= limit:
            continue
        start, stop = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        at = np.uint64(cached_indptr[n])
        if n == len(number) or at + (stop - start) > np.uint64(len(cached_indices)):
            return i, n
        norm = bias * bias
        for t in range(start, stop):
            cached_indices[at] = indices[t]
            value = 1.0 if data is None else np.float64(data[t])
            norm += value * value
            if cached_data is not None:
                cached_data[at] = value
            at += np.uint64(1)
        own = 1.0 if u is None else u[i]
        if norm == 0.0 or own == 0.0:
            continue
        number[n], key[n], square[n], share[n] = first_row + i, keys[i], norm, share_of(codes[i, dual])
        weight[n] = own if y[i] == positive else -own
        n += 1
        cached_indptr[n] = at
    return len(y), n


@kernel
def sweep(order, cached_indptr, cached_indices, cached_data, weight, square, share, C, bias, slack, w):
    """A sweep of dual ascent over cached rows in `order` at w; `share` and w move in place.

    Rows at a bound whose margin is more than `slack` from where they would leave it are shrunk away (Hsieh et al. 2008, 3.2):
    the others come first in `order`. Returns (C Σ u_i Δf_i, how many they are, the largest violation |1 − margin|).
    """
    gain, largest, left = 0.0, 0.0, 0
    for i in order:
        sign = 1.0 if weight[i] > 0.0 else -1.0
        start, stop = np.uint64(cached_indptr[i]), np.uint64(cached_indptr[i + 1])
        running = bias * w[-1] if bias != 0.0 else 0.0
        for t in range(start, stop):
            if cached_data is None:
                running += w[np.uint64(cached_indices[t])]
            else:
                running += cached_data[t] * w[np.uint64(cached_indices[t])]
        ahead = 1.0 - sign * running
        if (share[i] == 0.0 and ahead < -slack) or (share[i] == 1.0 and ahead > slack):
            continue
        order[left] = i
        left += 1
        after = min(1.0, max(0.0, share[i] + ahead / (C * abs(weight[i]) * square[i])))
        step = (after - share[i]) * C * weight[i]
        if step == 0.0:
            continue
        largest = max(largest, abs(ahead))
        gain += step * sign
        share[i] = after
        if bias != 0.0:
            w[-1] += step * bias
        for t in range(start, stop):
            w[np.uint64(cached_indices[t])] += step if cached_data is None else step * cached_data[t]
    return gain, left, largest


@kernel
def settle(cached_indptr, cached_indices, cached_data, number, weight, share, dual, bias, grids, codes, cuts, sums):
    """Cached rows take their shares home: to column `dual` of `codes`, and by their difference to the dual cut and its sum."""
    for i in range(len(number)):
        row = number[i]
        old, new = codes[row, dual], code_of(share[i])
        if old == new:
            continue
        codes[row, dual] = new
        before, after = -weight[i] * share_of(old), -weight[i] * share_of(new)
        _change_sum(abs(after), abs(before), grids, sums[1])
        _change_row(cached_indptr, cached_indices, cached_data, i, bias, after, before, grids, cuts[1])
