"""Bundles of several blocks of rows: cuts (blocks, T + 1, D), of which cut 0 of each block is the zero cut.

An empty slot is a zero cut, too, so that the master problem need not know of it. Products of all pairs of cuts are in a Gram
matrix whose rows are the slots of one block after those of another.
"""

from streamcut.compiled.vectors import dot
from streamcut.jit import kernel


@kernel
def make_room(beta, unused, age, cuts, keep, into, gone, share):
    """Decides what happens in each block until `cuts` more fit in its T slots: beta, unused, age (blocks, T + 1) change in place.

    age says when a cut came, −1 of empty slots; the newest `keep` of a block stay as long as two others are left. The cut that
    was unused for longest goes; where all are used, the two with the smallest β merge: turn j merges cut gone[k, j] with the
    part share[k, j] into cut into[k, j], all (blocks, cuts), −1 where nothing merges. Returns whether anything merges.
    """
    merges = False
    T = beta.shape[1] - 1
    for k in range(len(beta)):
        for turn in range(cuts):  # `into[:] = -1` takes longer to compile
            into[k, turn], gone[k, turn], share[k, turn] = -1, -1, 0.0
        live = 0
        for t in range(1, T + 1):
            live += age[k, t] >= 0
        turn = 0
        while live + cuts > T:
            stays = keep if live >= keep + 2 else 0
            idle, first, second = -1, -1, -1
            for t in range(1, T + 1):
                if age[k, t] < 0:
                    continue
                newer = 0
                for s in range(1, T + 1):
                    newer += age[k, s] > age[k, t]
                if newer < stays:
                    continue
                if idle < 0 or (unused[k, t], -age[k, t]) > (unused[k, idle], -age[k, idle]):
                    idle = t
                if first < 0 or (beta[k, t], age[k, t]) < (beta[k, first], age[k, first]):
                    first, second = t, first
                elif second < 0 or (beta[k, t], age[k, t]) < (beta[k, second], age[k, second]):
                    second = t
            if unused[k, idle] > 0:
                beta[k, 0] += beta[k, idle]
                beta[k, idle], age[k, idle] = 0.0, -1
            else:
                total = beta[k, first] + beta[k, second]
                into[k, turn], gone[k, turn] = first, second
                share[k, turn] = beta[k, second] / total if total > 0.0 else 0.5
                beta[k, first], beta[k, second], age[k, second] = total, 0.0, -1
                turn += 1
                merges = True
            live -= 1
    return merges


@kernel
def merge(cuts, gram, into, gone, share):
    """Cut into[k] of each block becomes (1 − share[k])·itself + share[k]·cut gone[k], with its products; −1: none does."""
    T = cuts.shape[1]
    for k in range(len(cuts)):
        s, t, part = into[k], gone[k], share[k]
        if s < 0:
            continue
        for i in range(cuts.shape[2]):
            cuts[k, s, i] += part * (cuts[k, t, i] - cuts[k, s, i])
        row, other = k * T + s, k * T + t
        for c in range(len(gram)):
            gram[row, c] += part * (gram[other, c] - gram[row, c])
        for c in range(len(gram)):
            gram[c, row] = gram[row, c]
        gram[row, row] = dot(cuts[k, s], cuts[k, s])


@kernel
def empty(cuts, gram, b, errors, age):
    """Slots that nobody has (age −1) become zero cuts, where they are none."""
    T = cuts.shape[1]
    for k in range(len(cuts)):
        for t in range(1, T):
            row = k * T + t
            if age[k, t] < 0 and (b[k, t] != 0.0 or gram[row, row] != 0.0 or errors[k, t, 0] != 0.0 or errors[k, t, 1] != 0.0):
                for i in range(cuts.shape[2]):
                    cuts[k, t, i] = 0.0
                for c in range(len(gram)):
                    gram[row, c], gram[c, row] = 0.0, 0.0
                b[k, t], errors[k, t, 0], errors[k, t, 1] = 0.0, 0.0, 0.0


@kernel
def products(cuts, age, new, gram):
    """Fills the rows and columns of gram of cut new[k] of each block."""
    K, T = cuts.shape[0], cuts.shape[1]
    for k in range(K):
        row = k * T + new[k]
        for j in range(K):
            for t in range(1, T):
                c = j * T + t
                if age[j, t] < 0 or (j < k and t == new[j]):
                    continue
                gram[row, c] = gram[c, row] = dot(cuts[k, new[k]], cuts[j, t])


@kernel
def combine(cuts, coefficients, out):
    """out (D) = Σ_k Σ_t coefficients[k, t] · cuts[k, t]."""
    out[:] = 0.0
    for k in range(len(cuts)):
        for t in range(cuts.shape[1]):
            c = coefficients[k, t]
            if c != 0.0:
                for i in range(len(out)):
                    out[i] += c * cuts[k, t, i]
