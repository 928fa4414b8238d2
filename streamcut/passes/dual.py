"""Dual coordinate ascent over streamed rows, with scores and the predicted cut: everything while a group of rows is in cache.

The dual variable of row i is α_i = f_i C u_i with a share 0 ≤ f_i ≤ 1. A row keeps its share in every cut of the bundle, as
16-bit codes q with f = (q / 65535)²: exact at both bounds, where most shares are, and fine near 0, where the shares of a large
C are. Sweeps end in shares that have a code, so a new cut and the shares that rows remember for it agree.

`cuts` (D, 2) float64 interleaves both cuts, so that one entry of a row touches one cache line of it: Σ −u_i y_i 1[z_c < 1] x_i,
the predicted cut, and Σ −u_i y_i f_i x_i, that of the ascent. They are sums on the grid of `vector`
(streamcut.passes.linear.exact_rounder), exact in any order; sums of weights are on the grid of `scalar`.
w is scored, w_run is the running w′ of the ascent; D = d, or d + 1 with the bias. Labels, weights `u`, margins as in
streamcut.passes.hinge.

The `cached_` arrays and `share` belong to rows in a cache: CSR, row numbers, keys, u_i y_i, ‖x_i‖², and f_i as float64.
"""

import numpy as np

from streamcut.jit import inlined, kernel

ONE = 65535  # the code of share 1
_NOT_FREE = 1e3  # added to the keys of rows whose share is at a bound: free rows come first, whatever their margins


@inlined
def _share(code):
    root = np.float64(code) / 65535.0
    return root * root


@inlined
def _code(share):
    return np.uint16(np.sqrt(share) * 65535.0 + 0.5)


@kernel
def merge_shares(codes, into, gone, weight):
    """Column `into` of codes (n, T) becomes (1 − weight)·itself + weight·column `gone`, in place: the shares of merged cuts."""
    for i in range(len(codes)):
        if codes[i, into] != codes[i, gone]:
            codes[i, into] = _code((1.0 - weight) * _share(codes[i, into]) + weight * _share(codes[i, gone]))


@kernel
def ascend(
    indptr, indices, data, y, positive, u, z_b, kappa, slots, mixture, C, bias, cut, dual, vector, scalar,
    order, offset, w, w_run, cuts, z, codes, keys, sums,
):  # fmt: skip
    """One look at every row: its margin under w, its part of the cut at z_b + κ(z − z_b), one step of dual ascent.

    The step starts from the share Σ_t mixture[t]·share in column slots[t], goes to the maximum of the dual along row i at w′, and
    takes w′ along. A row without features has share 1. Fills z and keys (n); columns `cut` and `dual` of codes (n, T) get the
    shares of both cuts; adds to `cuts`, and Σ u 1[z_c < 1], Σ u f to sums. A row's key tells how much it may still move:
    |1 − y⟨w′, x⟩|, rows at a bound after all others.
    Rows ascend by groups of len(order), each in that order; row 0 is the one at `offset` of the first group. Scores come first,
    in the order of memory: that fetches the group, without which a random order takes twice the time.
    Returns the index of a row whose score is not finite, or −1.
    """
    n = len(y)
    last = len(cuts) - 1
    bad = -1
    constant = bias * w[-1] if bias != 0.0 else 0.0
    for group in range(-offset, n, len(order)):
        for i in range(max(group, 0), min(group + len(order), n)):
            score = constant
            for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                if data is None:
                    score += w[np.uint64(indices[t])]
                else:
                    score += data[t] * w[np.uint64(indices[t])]
            if bad < 0 and not np.isfinite(score):
                bad = i
            z[i] = score if y[i] == positive else -score
            codes[i, cut] = ONE if z_b[i] + kappa * (z[i] - z_b[i]) < 1.0 else 0
            before = 0.0
            for t in range(len(mixture)):
                before += mixture[t] * _share(codes[i, slots[t]])
            keys[i] = before
        for place in order:
            i = group + place
            if i < 0 or i >= n:
                continue
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
            weight = 1.0 if u is None else u[i]
            before = keys[i]
            ahead = 1.0 - sign * running
            room = C * weight * square
            code = _code(min(1.0, max(0.0, before + ahead / room))) if room > 0.0 else np.uint16(ONE)
            codes[i, dual] = code
            keys[i] = abs(ahead) + (_NOT_FREE if code == 0 or code == ONE else 0.0)
            in_cut = codes[i, cut] != 0
            if not in_cut and code == 0 and before == 0.0:
                continue
            after = _share(code)
            step = (after - before) * C * weight * sign
            in_first = -weight * sign if in_cut else 0.0
            in_second = -weight * sign * after
            sums[0] += (weight + scalar) - scalar if in_cut else 0.0
            sums[1] += (weight * after + scalar) - scalar
            if bias != 0.0:
                w_run[last] += step * bias
                cuts[last, 0] += (in_first * bias + vector) - vector
                cuts[last, 1] += (in_second * bias + vector) - vector
            for t in range(start, stop):
                j = np.uint64(indices[t])
                value = 1.0 if data is None else np.float64(data[t])
                w_run[j] += step * value
                cuts[j, 0] += (in_first * value + vector) - vector
                cuts[j, 1] += (in_second * value + vector) - vector
    return bad


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
        number[n], key[n], square[n], share[n] = first_row + i, keys[i], norm, _share(codes[i, dual])
        weight[n] = own if y[i] == positive else -own
        n += 1
        cached_indptr[n] = at
    return len(y), n


@kernel
def keep(kept, cached_indptr, cached_indices, cached_data, number, key, weight, square, share):
    """Leaves only the rows `kept` (increasing) in a cache, in place."""
    at = np.uint64(0)
    for n in range(len(kept)):
        i = kept[n]
        start, stop = np.uint64(cached_indptr[i]), np.uint64(cached_indptr[i + 1])
        for t in range(start, stop):
            cached_indices[at] = cached_indices[t]
            if cached_data is not None:
                cached_data[at] = cached_data[t]
            at += np.uint64(1)
        number[n], key[n], weight[n], square[n], share[n] = number[i], key[i], weight[i], square[i], share[i]
        cached_indptr[n + 1] = at


@kernel
def sweep(order, cached_indptr, cached_indices, cached_data, weight, square, share, C, bias, w):
    """A sweep of dual ascent over cached rows in `order` at w; `share` and w move in place. Returns C Σ u_i Δf_i."""
    gain = 0.0
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
        after = min(1.0, max(0.0, share[i] + ahead / (C * abs(weight[i]) * square[i])))
        step = (after - share[i]) * C * weight[i]
        if step == 0.0:
            continue
        gain += step * sign
        share[i] = after
        if bias != 0.0:
            w[-1] += step * bias
        for t in range(start, stop):
            w[np.uint64(cached_indices[t])] += step if cached_data is None else step * cached_data[t]
    return gain


@kernel
def settle(cached_indptr, cached_indices, cached_data, number, weight, share, dual, bias, vector, scalar, codes, cuts, sums):
    """Cached rows take their shares home: to column `dual` of `codes`, and by their difference to the dual cut and its sum."""
    last = len(cuts) - 1
    for i in range(len(number)):
        row = number[i]
        old, new = codes[row, dual], _code(share[i])
        if old == new:
            continue
        codes[row, dual] = new
        before, after = -weight[i] * _share(old), -weight[i] * _share(new)
        sums[1] += ((abs(after) + scalar) - scalar) - ((abs(before) + scalar) - scalar)
        if bias != 0.0:
            cuts[last, 1] += ((after * bias + vector) - vector) - ((before * bias + vector) - vector)
        for t in range(np.uint64(cached_indptr[i]), np.uint64(cached_indptr[i + 1])):
            j = np.uint64(cached_indices[t])
            value = 1.0 if cached_data is None else np.float64(cached_data[t])
            cuts[j, 1] += ((after * value + vector) - vector) - ((before * value + vector) - vector)
