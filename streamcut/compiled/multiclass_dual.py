"""Dual coordinate ascent on the Crammer-Singer loss over streamed rows, with scores and the predicted cut in the same look.

The dual variable of row i is C u_i p_i with p_i in the simplex of K classes, p_i = e_t (t its target) when the row has no part
in W = C Σ u_i (e_t − p_i) x_iᵀ. The dual along row i is a parabola in p_i with the same curvature in all directions, so its
maximum is a projection on the simplex (Keerthi et al. 2008 solve the same subproblem in other variables). A row keeps p_i in
every cut of the bundle: 16-bit codes q of all classes but the target, p = (q / 65535)², rounded down, the rest being the
target's: exact at both ends, where most are, and fine near 0. Cuts are summed from these codes, on the grids of `vector` and
`scalar` as in streamcut.compiled.dual: what a row added can be taken back exactly.

Conventions as in streamcut.compiled.multiclass; `cuts` is float64 (2, D, K). The value of class k to a row is its score
+ 1[k ≠ t]: ascent moves the row's share to classes of high value.
"""

import numpy as np

from streamcut.compiled.shares import ONE, rounded, share_of, square_of
from streamcut.jit import inlined, kernel

_NEARLY = 1.0 - 1e-7  # rounding of parts and codes apart, such a share is 1
_NOT_FREE = 1e3  # added to the keys of rows whose share is all one class's: the others come first, whatever their scores
_FAR = 1.0  # a row at rest whose class leads by so much is never cached: it would be swept to no end
_AT_REST = -1.0
_FEW = 8  # all classes together take about as long as an eighth of them one by one
_TINY = 1e-200  # the dual along a row is as good as straight below this curvature


@inlined
def _code(share):
    return np.uint16(np.sqrt(share) * 65535.0)


@kernel
def merge_shares(codes, into, gone, weight):
    """codes[:, into] becomes (1 − weight)·itself + weight·codes[:, gone], in place: the shares of merged cuts."""
    for i in range(len(codes)):
        for k in range(codes.shape[2]):
            if codes[i, into, k] != codes[i, gone, k]:
                codes[i, into, k] = _code((1.0 - weight) * share_of(codes[i, into, k]) + weight * share_of(codes[i, gone, k]))


@kernel
def _project(point):
    """`point` becomes the nearest one of the simplex, in place (Michelot 1986: the water level rises until it moves no more)."""
    level = -np.inf
    while True:
        total, count = -1.0, 0
        for value in point:
            if value > level:
                total += value
                count += 1
        if count == 0 or total / count <= level:
            break
        level = total / count
    for k in range(len(point)):
        point[k] = max(0.0, point[k] - level)


@kernel
def _score(indptr, indices, data, W, bias, i, out):
    """out = xᵢ W."""
    last = len(W) - 1
    for k in range(len(out)):
        out[k] = bias * W[last, k] if bias != 0.0 else 0.0
    for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
        j = np.uint64(indices[p])
        value = 1.0 if data is None else np.float64(data[p])
        for k in range(len(out)):
            out[k] += value * W[j, k]


@kernel
def _lead(t, scores, share):
    """How far the class with all the share leads the others in value: below 0 the row leaves it.

    Where share is divided: the lowest value of a class with some of it, less the highest of all.
    """
    best, second, low, whole = -np.inf, -np.inf, np.inf, False
    for k in range(len(share)):
        value = scores[k] + (0.0 if k == t else 1.0)
        if value > best:
            best, second = value, best
        elif value > second:
            second = value
        if share[k] > 0.0:
            low = min(low, value)
            whole = share[k] == 1.0
    return best - second if whole and low == best else low - best


@kernel
def _undivided(share):
    """Whether one class has all the share."""
    most = 0.0
    for k in range(len(share)):
        most = max(most, share[k])
    return most == 1.0


@kernel
def _step(indptr, indices, data, bias, i, room, moved, count, W):
    """W += x_i · room, which is 0 but at the first `count` places `moved`."""
    few = _FEW * count < len(room)
    for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
        j = np.uint64(indices[p])
        value = 1.0 if data is None else np.float64(data[p])
        if few:
            for m in range(count):
                W[j, moved[m]] += room[moved[m]] * value
        else:
            for k in range(len(room)):
                W[j, k] += room[k] * value
    if bias != 0.0:
        for k in range(len(room)):
            W[len(W) - 1, k] += room[k] * bias


@kernel
def _climb(indptr, indices, data, t, scale, square, bias, i, W, share, new, room, moved):
    """Row i, whose scores at W are `new`, goes to the maximum of the dual along it: `share` (K,) and W move, in place.

    `scale` is C u_i. A row without features gives all its share to a wrong class. Returns scale times the target's loss.
    """
    if scale * square > _TINY:
        for k in range(len(new)):
            new[k] = share[k] + (new[k] + (0.0 if k == t else 1.0)) / (scale * square)
        _project(new)
    else:
        new[:] = 0.0
        new[0 if t != 0 else 1] = 1.0
    gain = scale * (share[t] - new[t])
    count = 0
    for k in range(len(new)):
        room[k] = scale * (share[k] - new[k])
        if new[k] != share[k]:
            moved[count] = k
            count += 1
        share[k] = new[k]
    if count > 0:
        _step(indptr, indices, data, bias, i, room, moved, count, W)
    return gain


@kernel
def _mix(codes, slots, parts, t, share):
    """share = Σ_s parts[s] · (the codes in slot slots[s] of codes (T, K))², what is left being the target's."""
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
    share[t] = max(0.0, 1.0 - others)
    if share[t] > _NEARLY:
        most = t
    if share[most] > _NEARLY:
        share[:] = 0.0
        share[most] = 1.0


@kernel
def _encode(t, share, codes):
    """codes (K,) = those of `share`."""
    for k in range(len(share)):
        codes[k] = _code(share[k])
    codes[t] = 0


@kernel
def _coefficients(t, weight, codes, out):
    """out (K,) = what the row counts in each column: weight times the shares of `codes`, less all of them in the target's."""
    total = 0.0
    for k in range(len(codes)):
        out[k] = weight * share_of(codes[k])
        total += out[k]
    out[t] = -total
    return total


@kernel
def _add_change(
    indptr, indices, data, t, weight, bias, i, past, now, which, vector, scalar, cuts, sums, before, after, moved
):  # fmt: skip
    """Adds row i with the codes `now` (K,) to cuts[which] and sums[which], and takes back what it added with the codes `past`.

    moved (K) gets the target, then the classes whose codes differ: the target's never do, they are 0.
    """
    moved[0], count = t, 1
    for k in range(len(now)):
        if now[k] != past[k]:
            moved[count] = k
            count += 1
    if count == 1:
        return
    taken, given = _coefficients(t, weight, past, before), _coefficients(t, weight, now, after)
    sums[which] += rounded(given, scalar) - rounded(taken, scalar)
    few, last = _FEW * count < len(now), cuts.shape[1] - 1
    for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
        j = np.uint64(indices[p])
        value = 1.0 if data is None else np.float64(data[p])
        if few:
            for m in range(count):
                k = moved[m]
                cuts[which, j, k] += rounded(after[k] * value, vector) - rounded(before[k] * value, vector)
        else:
            for k in range(len(now)):
                cuts[which, j, k] += rounded(after[k] * value, vector) - rounded(before[k] * value, vector)
    if bias != 0.0:
        for k in range(len(now)):
            cuts[which, last, k] += rounded(after[k] * bias, vector) - rounded(before[k] * bias, vector)


@kernel
def ascend(
    indptr, indices, data, target, u, z_b, kappa, slots, parts, C, bias, cut, dual, last_cut, last_dual, vector, scalar,
    visits, order, places, offset, W, W_run, cuts, z, codes, keys, sums, shares, waiting, nothing, new, before, after, moved,
):  # fmt: skip
    """One look at every row: its scores under W, its part of the cut at z_b + κ(z − z_b), steps of dual ascent.

    Ascent starts from the shares Σ_s parts[s]·q² of the codes in slots slots[s]; a step goes to the maximum of the dual along the
    row at W_run, and takes W_run along. A row is at rest when one class has all its share and under W leads the others: no step.
    Fills z and keys (n); slots `cut` and `dual` of codes (n, T, K) get the shares of both cuts. Adds to cuts and sums
    (Σ u (1 − p_t) of both) the difference to slots `last_cut` and `last_dual` (−1: to nothing). A row's key tells how much it may
    still move: how far its class leads or trails, rows whose share is undivided after all others.

    Groups of len(order) rows, batches of len(places) groups, `offset` and the order of work are those of
    streamcut.compiled.dual.ascend; from the second of `visits` on only rows whose share is divided. shares (len(order), K),
    waiting (len(order)), new, before, after, moved (K): room to work in; nothing (K): zeros.
    Returns the index of a row with a score that is not finite, or −1.
    """
    size, n, bad = len(order), len(target), -1
    batch = size * len(places)
    for first in range(-offset, n, batch):
        for place in places:
            group = first + size * place
            if group + size <= 0 or group >= n:
                continue
            found = _score_group(
                group, indptr, indices, data, target, z_b, kappa, slots, parts, bias, cut, dual, W, z, codes, keys, shares
            )  # fmt: skip
            bad = found if bad < 0 else bad
            count = 0
            for at in order:
                waiting[count] = at
                count += shares[at, 0] != _AT_REST
            moving = count
            for _ in range(visits):
                moving = _climb_group(
                    group, waiting[:moving], indptr, indices, data, target, u, C, bias, W_run, keys, shares, new, after, moved
                )  # fmt: skip
            for at in range(max(-group, 0), min(size, n - group)):
                i = group + at
                t, weight = target[i], 1.0 if u is None else u[i]
                if shares[at, 0] != _AT_REST:
                    _encode(t, shares[at], codes[i, dual])
                past = codes[i, last_cut] if last_cut >= 0 else nothing
                _add_change(
                    indptr, indices, data, t, weight, bias, i, past, codes[i, cut], 0, vector, scalar, cuts, sums,
                    before, after, moved,
                )  # fmt: skip
                past = codes[i, last_dual] if last_dual >= 0 else nothing
                _add_change(
                    indptr, indices, data, t, weight, bias, i, past, codes[i, dual], 1, vector, scalar, cuts, sums,
                    before, after, moved,
                )  # fmt: skip
    return bad


@kernel
def _score_group(group, indptr, indices, data, target, z_b, kappa, slots, parts, bias, cut, dual, W, z, codes, keys, shares):
    """Scores and shares at the start of a group; _AT_REST for rows that stay where they are, and places that are no row."""
    bad = -1
    shares[:, 0] = _AT_REST
    for place in range(max(-group, 0), min(len(shares), len(target) - group)):
        i = group + place
        t, share = target[i], shares[place]
        _mix(codes[i], slots, parts, t, share)  # before codes are written: a wide load right after a narrow store waits for it
        _score(indptr, indices, data, W, bias, i, z[i])
        total, best, rival = 0.0, z_b[i, t] + kappa * (z[i, t] - z_b[i, t]) - 1.0, t
        for k in range(len(share)):
            total += z[i, k]
            there = z_b[i, k] + kappa * (z[i, k] - z_b[i, k])
            if k != t and there > best:
                best, rival = there, k
        if bad < 0 and not np.isfinite(total):
            bad = i
        codes[i, cut, :] = 0
        if rival != t:
            codes[i, cut, rival] = ONE
        if _undivided(share):
            lead = _lead(t, z[i], share)
            if lead > 0.0:
                _encode(t, share, codes[i, dual])
                keys[i] = lead + _NOT_FREE if lead < _FAR else np.inf
                share[0] = _AT_REST
    return bad


@kernel
def _climb_group(group, waiting, indptr, indices, data, target, u, C, bias, W_run, keys, shares, new, room, moved):
    """A step of dual ascent for the rows at `waiting` in a group, in that order; those with divided shares then come first there.

    Returns how many they are.
    """
    divided = 0
    for place in waiting:
        i, share = group + place, shares[place]
        t, scale = target[i], C if u is None else C * u[i]
        _score(indptr, indices, data, W_run, bias, i, new)
        lead = _lead(t, new, share)
        _climb(indptr, indices, data, t, scale, square_of(indptr, data, bias, i), bias, i, W_run, share, new, room, moved)
        whole = _undivided(share)
        keys[i] = abs(lead) + (_NOT_FREE if whole else 0.0)
        waiting[divided] = place
        divided += not whole
    return divided
