"""Dual coordinate ascent on the softmax loss over streamed rows and over rows in a cache, for all K classes at once.

The dual variable of row i is C u_i p_i with p_i in the simplex, p_i = e_t (t its target) when the row has no part in
W = C Σ u_i (e_t − p_i) x_iᵀ. Along a row the dual is H(p′) + ⟨p′, s⟩ − ½Q‖p′ − p‖², s the scores at W, Q = C u_i ‖x_i‖², up to
constants and the factor C u_i. At its maximum

    log p′_k + Q p′_k = c_k − λ,    c = s + Q p,    Σ p′ = 1,

so p′_k = ω(c_k − λ + log Q) / Q with Wright's ω, ω + log ω = v (Lawrence, Corless & Jeffrey 2012). log Σ p′_k(λ) falls, and its
root is found by Newton's method in a bracket (Yu, Huang & Lin 2011 solve the same subproblem pair by pair of classes).

A row keeps p in every cut of the bundle, as 16-bit codes q of all classes but the target, p = (q / 65535)²; the rest is the
target's. Codes are the nearest ones, rounded down where the nearest add up to more than 1. Cuts are summed from these codes, on
grids: exact in any order. No share is ever at a bound, so every row takes its steps, and sums begin from nothing in every pass.
"""

import math

import numpy as np

from streamcut.compiled.multiclass_dual import score
from streamcut.compiled.records import entry, weight_of
from streamcut.compiled.shares import code_of, rounded, share_of, square_of
from streamcut.compiled.softmax import add, entropy, normalised
from streamcut.compiler.jit import allocating, helper, inlined, kernel

_TINY = 1e-200  # the dual along a row has no curvature of W's below this one
_CLOSE = 1e-12  # of Σ p′: normalising does the rest
_STEPS = 60  # of Newton's method; three to six are taken
_FLAT = 1e-300


@inlined
def _omega(v):
    """Wright's ω: ω + log ω = v, to a few units in the last place (the iteration is of order four)."""
    if v < -2.0:
        if v < -700.0:
            return 0.0
        x = math.exp(v)
        w = x * (1.0 - x * (1.0 - 1.5 * x))
        if v < -18.0:
            return w
    elif v < 4.0:
        d = v - 1.0
        w = 1.0 + d * (0.5 + d * (0.0625 - d / 192.0))
    else:
        low = math.log(v)
        w = v - low + low / v
    for _ in range(4):
        r = v - w - math.log(w)
        one = w + 1.0
        both = 2.0 * one * (one + 2.0 / 3.0 * r)
        w *= 1.0 + r / one * (both - r) / (both - 2.0 * r)
        if abs(r) < 1e-3:
            break
    return w


@kernel
def solve_row(share, scores, q, new):
    """new (K,) = the shares that maximise the dual along a row: `share` at present, `scores` at W, q = Q."""
    K = len(new)
    if not q > _TINY:
        normalised(scores, new)
        return
    root, most, total = math.log(q), -np.inf, 0.0
    for k in range(K):
        most = max(most, scores[k] + q * share[k])
    low, high = most - q, most - q / K + math.log(K)  # the largest share is between 1 / K and 1
    top = -np.inf
    for k in range(K):
        top = max(top, scores[k])
    for k in range(K):
        total += math.exp(scores[k] - top)
    level = min(max(top + math.log(total), low), high)  # what it is where share is the softmax of scores
    last = high - low
    for _ in range(_STEPS):
        total, slope = 0.0, 0.0
        for k in range(K):
            new[k] = _omega(scores[k] + q * share[k] - level + root) / q
            total += new[k]
            slope += new[k] / (1.0 + q * new[k])
        if abs(total - 1.0) <= _CLOSE:
            break
        if total > 1.0:
            low = level
        else:
            high = level
        move = math.log(total) * total / slope if total > 0.0 and slope > 0.0 else 0.0
        if not low < level + move < high or abs(move) > 0.5 * last:
            move = 0.5 * (low + high) - level
        if level + move == level:
            break
        level += move
        last = abs(move)
    if not 0.0 < total < np.inf:  # of scores beyond all reason
        normalised(scores, new)
        return
    for k in range(K):
        new[k] /= total


@kernel
def encode(t, share, codes):
    """codes (K,) = those of `share`; that of the target is 0."""
    total = 0.0
    for k in range(len(share)):
        codes[k] = code_of(share[k]) if k != t else np.uint16(0)
        total += share_of(codes[k])
    if total > 1.0:
        for k in range(len(share)):
            codes[k] = np.uint16(np.sqrt(share[k]) * 65535.0) if k != t else np.uint16(0)


@kernel
def decode(t, codes, share):
    """share (K,) = that of `codes`, the target's what the others leave."""
    others = 0.0
    for k in range(len(share)):
        share[k] = share_of(codes[k])
        others += share[k]
    share[t] = max(0.0, 1.0 - others)


@allocating
def merge_shares(target, codes, into, gone, weight):
    """codes[:, into] (n, T, K) becomes (1 − weight)·itself + weight·codes[:, gone], in place: the shares of merged cuts."""
    share = np.empty(codes.shape[2])
    for i in range(len(codes)):
        for k in range(len(share)):
            share[k] = (1.0 - weight) * share_of(codes[i, into, k]) + weight * share_of(codes[i, gone, k])
        encode(target[i], share, codes[i, into])


@helper
def _mix(codes, mixture, t, share):
    """share = Σ_s parts[s] · (the shares in slot slots[s] of codes (T, K)), what is left being the target's."""
    share[:] = 0.0
    for s in range(len(mixture.slots)):
        for k in range(len(share)):
            code = np.float64(codes[mixture.slots[s], k])
            share[k] += mixture.parts[s] * (code * code)
    others = 0.0
    for k in range(len(share)):
        others += share[k]
    if others > 1.0:
        for k in range(len(share)):
            share[k] /= others
    share[t] = max(0.0, 1.0 - others)


@helper
def _coordinate_step(rows, i, scale, square, bias, W, share, buffers):
    """Row i, whose scores at W are buffers.new, goes to the maximum of the dual along it: `share` and W move, in place."""
    solve_row(share, buffers.new, scale * square, buffers.before)
    for k in range(len(share)):
        buffers.after[k] = scale * (share[k] - buffers.before[k])
        share[k] = buffers.before[k]
    for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
        j = np.uint64(rows.indices[p])
        value = entry(rows.data, p)
        for k in range(len(share)):
            W[j, k] += buffers.after[k] * value
    if bias != 0.0:
        for k in range(len(share)):
            W[len(W) - 1, k] += buffers.after[k] * bias


@helper
def _add_coded(rows, i, t, weight, codes, sign, which, bias, grids, sums, buffers):
    """Adds `sign` times row i, of class t, with the shares of `codes` to cut `which` and its constant."""
    decode(t, codes, buffers.before)
    sums.b[which] += sign * rounded(weight * entropy(buffers.before, t), grids.weight)
    add(rows, i, t, bias, buffers.before, weight, sign, grids, sums.cuts[which])


@kernel
def ascend(rows, margins, start, slots, grids, visits, sums, scratch):
    """One visit of every row: its scores under w, its part of the cut at z_b + κ(z − z_b), steps of dual ascent.

    Ascent starts from the mixed shares (start.parts); a step goes to the maximum of the dual along the row at w′, and takes w′
    along. Fills z and keys (n); slots `predicted` and `ascent` of codes (n, T, K) get the shares of both cuts, which are added to
    the sums. A row's key is the less, the more its shares may move: 1 / √(u ‖x‖² (1 − Σ p²)).

    Groups, batches and the order of work are those of streamcut.compiled.dual.ascend. Returns the index of a row with a score
    that is not finite, or −1.
    """
    size, n, bad = len(visits.order), len(rows.y), -1
    shares, waiting, buffers, codes, bias = scratch.shares, scratch.waiting, scratch.buffers, margins.codes, start.bias
    batch = size * len(visits.places)
    for first in range(-visits.begins, n, batch):
        for place in visits.places:
            group = first + size * place
            if group + size <= 0 or group >= n:
                continue
            found = _score_group(group, rows, margins, start, slots, shares, buffers)
            bad = found if bad < 0 else bad
            count = 0
            for at in visits.order:
                if 0 <= group + at < n:
                    waiting[count] = at
                    count += 1
            for _ in range(visits.steps):
                for at in waiting[:count]:
                    i = group + at
                    score(rows, sums.w, start.l1, bias, i, buffers.new)
                    square = square_of(rows.indptr, rows.data, bias, i)
                    _coordinate_step(rows, i, start.C * weight_of(rows.u, i), square, bias, sums.w, shares[at], buffers)
            for at in range(max(-group, 0), min(size, n - group)):
                i = group + at
                t, weight, rest = rows.y[i], weight_of(rows.u, i), 1.0
                encode(t, shares[at], codes[i, slots.ascent])
                for value in shares[at]:
                    rest -= value * value
                moves = weight * square_of(rows.indptr, rows.data, bias, i) * rest
                margins.keys[i] = 1.0 / math.sqrt(moves) if moves > _FLAT else np.inf
                _add_coded(rows, i, t, weight, codes[i, slots.predicted], 1.0, 0, bias, grids, sums, buffers)
                _add_coded(rows, i, t, weight, codes[i, slots.ascent], 1.0, 1, bias, grids, sums, buffers)
    return bad


@helper
def _score_group(group, rows, margins, start, slots, shares, buffers):
    """Scores, predicted shares, and the mixed shares at the start of a group."""
    z_b, z, codes, kappa, bad = margins.z_b, margins.z, margins.codes, start.kappa, -1
    for place in range(max(-group, 0), min(len(shares), len(rows.y) - group)):
        i = group + place
        # before codes are written: a wide load right after a narrow store waits for it
        _mix(codes[i], start.parts, rows.y[i], shares[place])
        score(rows, start.w, None, start.bias, i, z[i])
        total = 0.0
        for k in range(len(buffers.new)):
            total += z[i, k]
            buffers.new[k] = z_b[i, k] + kappa * (z[i, k] - z_b[i, k])
        if bad < 0 and not np.isfinite(total):
            bad = i
        normalised(buffers.new, buffers.before)
        encode(rows.y[i], buffers.before, codes[i, slots.predicted])
    return bad


@kernel
def sweep(order, cached, C, bias, l1, W, buffers):
    """A sweep of dual ascent over cached rows (records.CachedRows, shares (rows, K)) in `order` at W (V, where there is an `l1`).

    Shares and W move in place. Returns C Σ u_i ΔH: what the rows' terms of the dual gained.
    """
    gain = 0.0
    for i in order:
        t, share, scale = cached.target[i], cached.share[i], C * cached.weight[i]
        score(cached, W, l1, bias, i, buffers.new)
        before = entropy(share, t)
        _coordinate_step(cached, i, scale, cached.square[i], bias, W, share, buffers)
        gain += scale * (entropy(share, t) - before)
    return gain


@kernel
def write_back(cached, first_row, slot, bias, grids, codes, sums, buffers):
    """The shares of cached rows go to `slot` of `codes`, of the rows from `first_row` on; cut 1 and its constant follow."""
    for i in range(len(cached.number)):
        t, weight, now = cached.target[i], cached.weight[i], codes[cached.number[i] - first_row, slot]
        _add_coded(cached, i, t, weight, now, -1.0, 1, bias, grids, sums, buffers)
        encode(t, cached.share[i], now)
        _add_coded(cached, i, t, weight, now, 1.0, 1, bias, grids, sums, buffers)
