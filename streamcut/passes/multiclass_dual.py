"""Dual coordinate ascent on the Crammer-Singer loss over streamed rows, with scores and the predicted cut in the same look.

The dual variable of row i is C u_i p_i with p_i in the simplex of K classes, p_i = e_t (t its target) when the row has no part
in W = C Σ u_i (e_t − p_i) x_iᵀ. The dual along row i is a parabola in p_i with the same curvature in all directions, so its
maximum is a projection on the simplex (Keerthi et al. 2008 solve the same subproblem in other variables). A row keeps p_i in
every cut of the bundle: 16-bit codes q of all classes but the target, p = (q / 65535)², rounded down, the rest being the
target's: exact at both ends, where most are, and fine near 0. Cuts are summed from these codes.

Conventions as in streamcut.passes.multiclass; `cuts` is float64 (D, 2, K).
"""

import numpy as np

from streamcut.jit import inlined, kernel

ONE = 65535  # the code of share 1
_TINY = 1e-200  # the dual along a row is as good as straight below this curvature


@inlined
def _share(code):
    root = np.float64(code) / 65535.0
    return root * root


@kernel
def merge_shares(codes, into, gone, weight):
    """codes[:, into] becomes (1 − weight)·itself + weight·codes[:, gone], in place: the shares of merged cuts."""
    for i in range(len(codes)):
        for k in range(codes.shape[2]):
            if codes[i, into, k] != codes[i, gone, k]:
                share = (1.0 - weight) * _share(codes[i, into, k]) + weight * _share(codes[i, gone, k])
                codes[i, into, k] = np.uint16(np.sqrt(share) * 65535.0)


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
    """out = xᵢ W; returns ‖xᵢ‖²."""
    last = len(W) - 1
    square = bias * bias
    for k in range(len(out)):
        out[k] = bias * W[last, k] if bias != 0.0 else 0.0
    for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
        j = np.uint64(indices[p])
        value = 1.0 if data is None else np.float64(data[p])
        square += value * value
        for k in range(len(out)):
            out[k] += value * W[j, k]
    return square


@kernel
def _climb(indptr, indices, data, t, weight, C, bias, i, W, share, new, room, moved):
    """Row i goes to the maximum of the dual along it: `share` (K,) and W move, in place. Returns whether it moved."""
    square = _score(indptr, indices, data, W, bias, i, new)
    size = C * weight * square
    if size > _TINY:
        for k in range(len(new)):
            new[k] = share[k] + (new[k] + (0.0 if k == t else 1.0)) / size
        _project(new)
    else:
        new[:] = 0.0
        new[0 if t != 0 else 1] = 1.0
    count = 0
    for k in range(len(new)):
        if new[k] != share[k]:
            moved[count] = k
            room[count] = C * weight * (share[k] - new[k])
            share[k] = new[k]
            count += 1
    if count == 0:
        return False
    for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
        j = np.uint64(indices[p])
        value = 1.0 if data is None else np.float64(data[p])
        for m in range(count):
            W[j, moved[m]] += room[m] * value
    if bias != 0.0:
        for m in range(count):
            W[len(W) - 1, moved[m]] += room[m] * bias
    return True


@kernel
def _mix(codes, slots, mixture, t, share):
    """share = Σ_s mixture[s] · the shares in slot slots[s] of codes (T, K), what is left being the target's."""
    share[:] = 0.0
    for s in range(len(slots)):
        for k in range(len(share)):
            share[k] += mixture[s] * _share(codes[slots[s], k])
    others = 0.0
    for k in range(len(share)):
        others += share[k]
    share[t] = max(0.0, 1.0 - others)


@kernel
def _add(cuts, j, t, in_cut, rival, terms, moved, count, value, vector):
    """Adds to entry j of both cuts: value (e_k − e_t) times in_cut for the rival k, and times terms[m] for each k = moved[m]."""
    term = (in_cut * value + vector) - vector
    cuts[j, 0, rival] += term
    cuts[j, 0, t] -= term
    for m in range(count):
        term = (terms[m] * value + vector) - vector
        cuts[j, 1, moved[m]] += term
        cuts[j, 1, t] -= term


@kernel
def _settle(
    indptr, indices, data, t, weight, bias, i, share, in_cut, in_dual, vector, scalar, cuts, sums, terms, moved
):  # fmt: skip
    """Row i's shares become codes, `in_dual` (K,), and part of the dual cut; its codes `in_cut` part of the predicted cut."""
    rival, count = t, 0
    for k in range(len(share)):
        if in_cut[k] != 0:
            rival = k
        in_dual[k] = np.uint16(np.sqrt(share[k]) * 65535.0) if k != t else np.uint16(0)
        if in_dual[k] != 0:
            moved[count] = k
            terms[count] = (weight * _share(in_dual[k]) + scalar) - scalar
            sums[1] += terms[count]
            count += 1
    whole = 0.0 if rival == t else (weight + scalar) - scalar
    sums[0] += whole
    if count == 0 and rival == t:
        return
    for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
        value = 1.0 if data is None else np.float64(data[p])
        _add(cuts, np.uint64(indices[p]), t, whole, rival, terms, moved, count, value, vector)
    if bias != 0.0:
        _add(cuts, np.uint64(len(cuts) - 1), t, whole, rival, terms, moved, count, bias, vector)


@kernel
def ascend(
    indptr, indices, data, target, u, z_b, kappa, slots, mixture, C, bias, cut, dual, vector, scalar,
    order, offset, sweeps, W, W_run, cuts, z, codes, sums, shares, active, new, room, moved,
):  # fmt: skip
    """One look at every row: its scores under W, its part of the cut at z_b + κ(z − z_b), and `sweeps` of dual ascent.

    Ascent starts from the shares Σ_t mixture[t]·shares in slot slots[t], goes to the maximum of the dual along one row after the
    other at W_run, and takes W_run along. A row without features gives all its share to a wrong class. Rows ascend by groups of
    len(order), each in that order, `sweeps` times while the group is in the processor's cache; from the second sweep on only
    those that moved or are no longer all their target's. Row 0 is the one at `offset` of the first group.
    Fills z; slots `cut` and `dual` of codes (n, T, K) get the shares of both cuts; adds both to `cuts`, their Σ u (1 − p_t) to
    sums. Room to work in: shares (len(order), K), active (len(order)), new, room, moved (K).
    Returns the index of a row with a score that is not finite, or −1.
    """
    bad = -1
    for group in range(-offset, len(z), len(order)):
        first, end = max(group, 0), min(group + len(order), len(z))
        for i in range(first, end):
            t, share = target[i], shares[i - group]
            _score(indptr, indices, data, W, bias, i, z[i])
            total, best, rival = 0.0, z_b[i, t] + kappa * (z[i, t] - z_b[i, t]) - 1.0, t
            for k in range(len(share)):
                total += z[i, k]
                there = z_b[i, k] + kappa * (z[i, k] - z_b[i, k])
                if k != t and there > best:
                    best, rival = there, k
            if bad < 0 and not np.isfinite(total):
                bad = i
            _mix(codes[i], slots, mixture, t, share)
            codes[i, cut, :] = 0
            if rival != t:
                codes[i, cut, rival] = ONE
        count = 0
        for place in order:
            if first <= group + place < end:
                active[count] = group + place
                count += 1
        for _ in range(sweeps):
            left = 0
            for a in range(count):
                i = active[a]
                share = shares[i - group]
                weight = 1.0 if u is None else u[i]
                climbed = _climb(indptr, indices, data, target[i], weight, C, bias, i, W_run, share, new, room, moved)
                if climbed or share[target[i]] < 1.0:
                    active[left] = i
                    left += 1
            count = left
        for i in range(first, end):
            _settle(
                indptr, indices, data, target[i], 1.0 if u is None else u[i], bias, i, shares[i - group],
                codes[i, cut], codes[i, dual], vector, scalar, cuts, sums, room, moved,
            )  # fmt: skip
    return bad
