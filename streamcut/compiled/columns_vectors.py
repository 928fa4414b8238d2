"""Vectors of K columns side by side, (D, A): sums at the end of a pass and starting points of the next, in one sweep each.

Sums over features add the sums of _TILE features: at least as accurate as streamcut.compiled.vectors.dot.
"""

from streamcut.compiled.vectors import compensated, shrunk
from streamcut.compiler.jit import kernel

_TILE = 16


@kernel
def products(U, G, best, w, magnitudes, tile, out):
    """For every column ⟨U, U⟩, ⟨U, G⟩, ⟨G, G⟩, ⟨b, b⟩, ⟨b, d⟩, ⟨d, d⟩ and ⟨S, |w|⟩ to out (7, A): b the best point, d = w − b,
    S the `magnitudes` (D,). tile (7, A) is scratch space."""
    out[:] = 0.0
    tile[:] = 0.0
    for j in range(len(U)):
        for a in range(U.shape[1]):
            u, g, b = U[j, a], G[j, a], best[j, a]
            d = w[j, a] - b
            tile[0, a] += u * u
            tile[1, a] += u * g
            tile[2, a] += g * g
            tile[3, a] += b * b
            tile[4, a] += b * d
            tile[5, a] += d * d
            tile[6, a] += magnitudes[j] * abs(w[j, a])
        if j % _TILE == _TILE - 1 or j == len(U) - 1:
            for s in range(7):
                for a in range(U.shape[1]):
                    out[s, a] += tile[s, a]
                    tile[s, a] = 0.0


@kernel
def dual_model(U, G, p, q, C, l1, out):
    """For R*(v) = ½‖S(v, l1)‖² at v = C(pG + qU): out (6, A) = [‖w‖², ⟨w, G⟩, ⟨w, U⟩, and ⟨G, G⟩, ⟨G, U⟩, ⟨U, U⟩ over the
    features that w = S(v, l1) has]."""
    out[:] = 0.0
    for j in range(len(U)):
        for a in range(U.shape[1]):
            u, g = U[j, a], G[j, a]
            w = shrunk(C[a] * (p[a] * g + q[a] * u), l1[a])
            if w != 0.0:
                out[0, a] += w * w
                out[1, a] += w * g
                out[2, a] += w * u
                out[3, a] += g * g
                out[4, a] += g * u
                out[5, a] += u * u


@kernel
def penalty_slopes(best, w, k, l1, out):
    """out (A,) = the slope of ½‖b‖² + l1‖b‖₁ at b = best + k_a (w − best), to the right of kinks."""
    out[:] = 0.0
    for j in range(len(best)):
        for a in range(best.shape[1]):
            d = w[j, a] - best[j, a]
            b = best[j, a] + k[a] * d
            sign = 1.0 if b > 0.0 else -1.0 if b < 0.0 else 1.0 if d > 0.0 else -1.0
            out[a] += b * d + l1[a] * sign * d


@kernel
def step(best, w, k, magnitudes, tile, lost, out):
    """best += k_a (w − best) in place; out (3, A) = ‖best‖², ⟨S, |best|⟩ and ‖best‖₁ after it, the last one compensated.

    tile (2, A) and lost (A,) are scratch space.
    """
    out[:] = 0.0
    tile[:] = 0.0
    lost[:] = 0.0
    for j in range(len(best)):
        for a in range(best.shape[1]):
            b = best[j, a] + k[a] * (w[j, a] - best[j, a])
            best[j, a] = b
            tile[0, a] += b * b
            tile[1, a] += magnitudes[j] * abs(b)
            out[2, a], lost[a] = compensated(out[2, a], lost[a], abs(b))
        if j % _TILE == _TILE - 1 or j == len(best) - 1:
            for s in range(2):
                for a in range(best.shape[1]):
                    out[s, a] += tile[s, a]
                    tile[s, a] = 0.0
    for a in range(best.shape[1]):
        out[2, a] += lost[a]


@kernel
def mix(U, p, q, G):
    """G = p_a G + q_a U in place."""
    for j in range(len(U)):
        for a in range(U.shape[1]):
            if q[a] != 0.0 or p[a] != 1.0:
                G[j, a] = p[a] * G[j, a] + q[a] * U[j, a]


@kernel
def towards(y, running, lanes, U, C, e):
    """y becomes r + e_a (C_a U − r), r = `running` / lanes: the sum of the running weights of that many lanes."""
    for j in range(len(y)):
        for a in range(y.shape[1]):
            r = running[j, a] / lanes
            y[j, a] = r + e[a] * (C[a] * U[j, a] - r)


@kernel
def shrink(y, l1, out):
    """out = S(y, l1_a)."""
    for j in range(len(y)):
        for a in range(y.shape[1]):
            out[j, a] = shrunk(y[j, a], l1[a])


@kernel
def choose(source, columns, out):
    """out[:, c] = source[:, columns[c]]."""
    for j in range(len(out)):
        for c in range(len(columns)):
            out[j, c] = source[j, columns[c]]
