"""The curvature of a risk of pairs, when there are enough pairs for their kinks to act as a curve.

A pair (i, j) costs max(0, 1 − (s_i − s_j)). Along a direction its slope jumps where s_i − s_j = 1, and the mean of the jumps of
pairs within ±width of there, over 2·width, is a curvature: Σ over these pairs of u_ij (x_i − x_j)(x_i − x_j)ᵀ. No list of pairs
is made. Each partner of a row in its cell (a query; rows of similar scores if all rows are one group) is replaced by the
partners' mean:

    H = Σ_i (up_i + down_i) x_i x_iᵀ − Σ_cells (p qᵀ + q pᵀ)/√(Σ up · Σ down),   p = Σ up_i x_i, q = Σ down_i x_i

with up_i, down_i the weights of the near pairs in which row i is the upper or the lower one. H has no negative eigenvalue. No
bound depends on it.
"""

import numpy as np

from streamcut.compiled.pairs import below, count_level, sort_scores
from streamcut.compiled.records import entry
from streamcut.compiler.jit import fused, kernel


@kernel
def near_pairs(levels, starts, weights, scores, width, keys, order, spare_keys, spare_order, tree, up, down):
    """up[i], down[i]: the weight of the near pairs of each row, over 2·width.

    Groups, levels, weights and the scratch arrays for sorting are as in streamcut.compiled.pairs.hinge_pairs.
    """
    for g in range(len(starts) - 1):
        first, n = starts[g], starts[g + 1] - starts[g]
        top = 0
        for i in range(first, first + n):
            top = max(top, levels[i])
        if top == 0:
            up[first : first + n] = 0.0
            down[first : first + n] = 0.0
            continue
        sort_scores(scores[first : first + n], keys[:n], order[:n], spare_keys[:n], spare_order[:n])
        s, level, factor = keys[:n].view(np.float64), spare_order[:n], weights[g] / (2.0 * width)
        for t in range(n):
            level[t] = levels[first + order[t]]
        for side in (-1.0, 1.0):
            tree[: top + 2] = 0
            low = high = 0
            for t in range(n):
                while high < n and s[high] - s[t] < side + width:
                    count_level(tree, level[high], top + 1, 1)
                    high += 1
                while low < high and s[low] - s[t] <= side - width:
                    count_level(tree, level[low], top + 1, -1)
                    low += 1
                if side < 0.0:
                    up[first + order[t]] = factor * below(tree, level[t])
                else:
                    down[first + order[t]] = factor * (high - low - below(tree, level[t] + 1))


@fused
def add_to_groups(indptr, indices, data, qid, up, down, begun, p, q, H):
    """H (D, D), the lower triangle, gets `end_group` for each group that ends; `p`, `q` (D + 1,) belong to the last group.

    begun (2,) int64: whether there is a last group, and its qid.
    """
    last = len(p) - 1
    for i in range(len(up)):
        if begun[0] == 0 or begun[1] != qid[i]:
            end_group(p, q, H)
            begun[0], begun[1] = 1, qid[i]
        p[last] += up[i]
        q[last] += down[i]
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            j, value = np.uint64(indices[t]), entry(data, t)
            p[j] += up[i] * value
            q[j] += down[i] * value


@fused
def end_group(p, q, H):
    """H −= (p qᵀ + q pᵀ)/√(Σ up · Σ down), the lower triangle; the last entries of p, q (D + 1,) are Σ up, Σ down. Resets both to
    0.
    """
    D = len(p) - 1
    if p[D] * q[D] > 0.0:
        part = 1.0 / np.sqrt(p[D] * q[D])
        for s in range(D):
            a, b, row = part * p[s], part * q[s], H[s]
            for t in range(s + 1):
                row[t] -= a * q[t] + b * p[t]
    p[:] = 0.0
    q[:] = 0.0


@fused
def add_to_cells(indptr, indices, data, cells, weights, sums):
    """sums[cells[i]] (cells, D + 1) += weights_i (x_i, 1)."""
    last = sums.shape[1] - 1
    for i in range(len(cells)):
        if weights[i] != 0.0:
            row = sums[cells[i]]
            row[last] += weights[i]
            for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                row[np.uint64(indices[t])] += weights[i] * entry(data, t)
