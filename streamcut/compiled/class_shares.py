"""Shares of a row in K classes: a point of the simplex, the one that maximises the dual along the row, and its 16-bit codes.

Along row i the dual of a loss of all classes is, up to constants and the factor C u_i, with scores s at the running W

    ⟨p′, v⟩ − ½Q‖p′ − p‖²,  v_k = s_k + 1[k ≠ t], t the target    (Crammer-Singer),
    H(p′) + ⟨p′, s⟩ − ½Q‖p′ − p‖²,  H(p) = −Σ p log p             (softmax: `entropic`),    Q = C u_i ‖x_i‖².

The first is a projection on the simplex (Keerthi et al. 2008 solve the same subproblem in other variables). At the maximum of the
second

    log p′_k + Q p′_k = c_k − λ,    c = s + Q p,    Σ p′ = 1,

so p′_k = ω(c_k − λ + log Q) / Q with Wright's ω, ω + log ω = v (Lawrence, Corless & Jeffrey 2012). log Σ p′_k(λ) is decreasing,
and its root is found by Newton's method in a bracket (Yu, Huang & Lin 2011 solve the same subproblem pair by pair of classes).

A code q of every class except the target stands for p = (q / 65535)²; the target has the rest. Codes are exact at both ends,
where most shares are without entropies, and fine near 0. They are rounded down, with entropies only if the nearest codes add up
to more than 1.
"""

import math

import numpy as np

from streamcut.compiled.shares import ONE, code_of, share_of
from streamcut.compiled.softmax import normalised
from streamcut.compiler.jit import allocating, inlined, kernel

_TINY = 1e-200  # below this curvature the dual along a row is taken as linear
_CLOSE = 1e-12  # of Σ p′; normalisation removes the rest
_STEPS = 60  # of Newton's method; three to six are taken


@kernel
def project(point):
    """Projects `point` on the simplex, in place (Michelot 1986: the water level rises until it is stationary).

    Its largest number is between 0 and 2; the others may be −∞.
    """
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
def balance(share, scores, q, new):
    """`solve` with entropies, at any scores."""
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
    level = min(max(top + math.log(total), low), high)  # its value if share is the softmax of scores
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
    if not 0.0 < total < np.inf:  # of absurdly large scores
        normalised(scores, new)
        return
    for k in range(K):
        new[k] /= total


@kernel
def solve(entropic, t, share, scores, q, new):
    """new (K,) = the shares that maximise the dual along a row of class t: `share` at present, `scores` at W, q = Q.

    Without curvature and entropies a wrong class gets the whole share.
    """
    if entropic:
        balance(share, scores, q, new)
    elif q > _TINY:
        # Only differences matter. Unless the best value is subtracted, a short row would project numbers so large that the sum 1
        # of its shares is lost to rounding; the others may be −∞.
        best = -np.inf
        for k in range(len(new)):
            new[k] = scores[k] + (0.0 if k == t else 1.0)
            best = max(best, new[k])
        for k in range(len(new)):
            new[k] = share[k] + (new[k] - best) / q
        project(new)
    else:
        new[:] = 0.0
        new[0 if t != 0 else 1] = 1.0


@inlined
def code_below(share):
    """The code of a share, rounded down."""
    return np.uint16(np.sqrt(share) * 65535.0)


@kernel
def encode(entropic, t, share, codes):
    """codes (K,) = the codes of `share`; the target's is 0."""
    total = 0.0
    if entropic:
        for k in range(len(share)):
            codes[k] = code_of(share[k]) if k != t else np.uint16(0)
            total += share_of(codes[k])
    if not entropic or total > 1.0:
        for k in range(len(share)):
            codes[k] = code_below(share[k]) if k != t else np.uint16(0)


@kernel
def decode(t, codes, share):
    """share (K,) = the shares of `codes`; the target has the rest."""
    others = 0.0
    for k in range(len(share)):
        share[k] = share_of(codes[k])
        others += share[k]
    share[t] = max(0.0, 1.0 - others)


@kernel
def in_the_simplex(target, codes):
    """Whether the shares of codes (n, T, K) add up to at most 1 in every cut, and the target's are 0."""
    for i in range(len(codes)):
        for slot in range(codes.shape[1]):
            total = 0
            for k in range(codes.shape[2]):
                total += np.int64(codes[i, slot, k]) * np.int64(codes[i, slot, k])
            if total > ONE * ONE or codes[i, slot, target[i]] != 0:
                return False
    return True


@allocating
def remember(entropic, target, z, codes):
    """Sets slot 0 of codes (n, T, K) to the shares of the loss at scores z (n, K): its slope without the target's part."""
    share = np.empty(z.shape[1])
    for i in range(len(z)):
        t = target[i]
        if entropic:
            normalised(z[i], share)
        else:
            best = t
            for k in range(len(share)):
                share[k] = 0.0
                if k != t and z[i, k] > z[i, best] - (1.0 if best == t else 0.0):
                    best = k
            share[best] = 1.0
        encode(entropic, t, share, codes[i, 0])
