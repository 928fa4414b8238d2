"""Best label paths through sequences (Viterbi), with or without a loss for wrong labels, transition counts, and dual steps.

Conventions: `starts` (S + 1) int64 are the rows where sequences begin, and the end; scores `z`, `z_b` float64 (n, K); `target`
(n) int32 the class of each row, 0 … K − 1, whose label is one of the K known ones, at most 32,767; `transitions`
float64 (K, K), [j, k] for class k after class j. All paths add their numbers in row order, so rounding never puts the best one
below the targets' path.
"""

import numpy as np

from streamcut.compiled.records import entry
from streamcut.compiler.jit import allocating, helper, kernel


@allocating
def best_paths(starts, target, z_b, z, kappa, transitions, augment, back, path, excess):
    """path[i] = the class of row i on the best path of its sequence; excess[s] = how much better it is than the targets.

    Rows score z_b + κ(z − z_b), plus `augment` for each class except the target. Of equal predecessors the target is preferred,
    then the lowest class. `back` (n, K) int16 is a buffer.
    """
    classes = z.shape[1]
    value, after, origin = np.empty(classes), np.empty(classes), np.empty(classes, np.int64)
    for s in range(len(starts) - 1):
        first, stop = starts[s], starts[s + 1]
        own = 0.0
        for i in range(first, stop):
            t = target[i]
            if i == first:
                after[:] = 0.0
            else:
                before = target[i - 1]
                own += transitions[before, t]
                for k in range(classes):
                    after[k], origin[k] = value[before] + transitions[before, k], before
                for j in range(classes):
                    for k in range(classes):
                        candidate = value[j] + transitions[j, k]
                        if candidate > after[k]:
                            after[k], origin[k] = candidate, j
                for k in range(classes):
                    back[i, k] = origin[k]
            for k in range(classes):
                value[k] = after[k] + (z_b[i, k] + kappa * (z[i, k] - z_b[i, k]) + augment)
            # the target's own score, without the loss, in the same order of additions
            score = z_b[i, t] + kappa * (z[i, t] - z_b[i, t])
            value[t] = after[t] + score
            own += score
        last = target[stop - 1]
        for k in range(classes):
            if value[k] > value[last]:
                last = k
        excess[s] = value[last] - own
        for i in range(stop - 1, first, -1):
            path[i] = last
            last = back[i, last]
        path[first] = last


@allocating
def along_line(starts, target, z_b, z, k, transitions, slopes, excess, slope):
    """excess[s] as `best_paths` has it, augmented by 1, at z_b + k(z − z_b), and slope[s] its derivative in k.

    `transitions` are those at k, `slopes` (K, K) their derivative. No path is kept: value and derivative are computed together.
    """
    classes = z.shape[1]
    value, after, origin = np.empty(classes), np.empty(classes), np.empty(classes, np.int64)
    rise, rise_after = np.empty(classes), np.empty(classes)
    for s in range(len(starts) - 1):
        first, stop = starts[s], starts[s + 1]
        own, own_rise = 0.0, 0.0
        for i in range(first, stop):
            t = target[i]
            if i == first:
                after[:] = 0.0
                rise_after[:] = 0.0
            else:
                before = target[i - 1]
                own += transitions[before, t]
                own_rise += slopes[before, t]
                for y in range(classes):
                    after[y], origin[y] = value[before] + transitions[before, y], before
                for j in range(classes):
                    for y in range(classes):
                        candidate = value[j] + transitions[j, y]
                        if candidate > after[y]:
                            after[y], origin[y] = candidate, j
                for y in range(classes):
                    rise_after[y] = rise[origin[y]] + slopes[origin[y], y]
            for y in range(classes):
                value[y] = after[y] + (z_b[i, y] + k * (z[i, y] - z_b[i, y]) + 1.0)
                rise[y] = rise_after[y] + (z[i, y] - z_b[i, y])
            score = z_b[i, t] + k * (z[i, t] - z_b[i, t])
            value[t] = after[t] + score
            own += score
            own_rise += z[i, t] - z_b[i, t]
        last = target[stop - 1]
        for y in range(classes):
            if value[y] > value[last]:
                last = y
        excess[s], slope[s] = value[last] - own, rise[last] - own_rise


@kernel
def count_transitions(starts, target, path, out):
    """Adds 1 to out[j, k] for every class k after j on the path, and subtracts 1 for every k after j among the targets."""
    for s in range(len(starts) - 1):
        for i in range(starts[s] + 1, starts[s + 1]):
            out[path[i - 1], path[i]] += 1.0
            out[target[i - 1], target[i]] -= 1.0


@allocating
def ascend(rows, bias, starts, order, scale, weights, held, sums, buffers):
    """A Frank-Wolfe step for each sequence, in `order` (S), in place on `held` and the weights; then its part of the cut.

    A step moves the mixture of labellings that a sequence holds towards the best path as long as the dual objective rises, and
    the `weights` by −`scale` times the change. `sums` get Σ x shares and Σ edges of the mixtures held.
    """
    W, transitions, target, moves, z, path = weights.features, weights.transitions, rows.y, buffers.moves, buffers.z, buffers.path
    shares, edges, losses = held.shares, held.edges, held.losses
    move = np.empty_like(transitions)
    for s in order:
        first, stop = starts[s], starts[s + 1]
        _scores(rows, bias, W, first, stop, z)
        best_paths(starts[s : s + 2], target, z, z, 0.0, transitions, 1.0, buffers.back, path, buffers.excess[s : s + 1])
        own, loss = losses[s] + np.sum(edges[s] * transitions), 0.0
        for i in range(first, stop):
            loss += 1.0 if path[i] != target[i] else 0.0
            for k in range(z.shape[1]):
                own += shares[i, k] * z[i, k]
        gain = buffers.excess[s] - own
        if gain > 0.0:
            _direction(first, stop, target, path, shares, edges[s], z, move)
            count = _moves(rows, bias, first, stop, buffers)
            square = np.sum(move * move)
            for f in range(count):
                j = np.uint64(buffers.touched[f])
                for k in range(np.uint64(z.shape[1])):
                    square += moves[j, k] * moves[j, k]
            step = gain / (scale * square) if gain < scale * square else 1.0
            for f in range(count):
                j = np.uint64(buffers.touched[f])
                for k in range(np.uint64(z.shape[1])):
                    W[j, k] -= scale * step * moves[j, k]
            transitions -= scale * step * move
            edges[s] += step * move
            shares[first:stop] += step * z[first:stop]
            losses[s] += step * (loss - losses[s])
        out_edges = sums.transitions
        out_edges += edges[s]
        _add_held(rows, bias, first, stop, shares, sums.features)


@helper
def _scores(rows, bias, W, first, stop, z):
    """z[i, k] = ⟨W[:, k], x_i⟩ for rows first:stop."""
    last, classes = np.uint64(len(W) - 1), np.uint64(W.shape[1])
    for i in range(np.uint64(first), np.uint64(stop)):
        for k in range(classes):
            z[i, k] = bias * W[last, k] if bias != 0.0 else 0.0
        for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + np.uint64(1)])):
            j = np.uint64(rows.indices[p])
            value = entry(rows.data, p)
            for k in range(classes):
                z[i, k] += value * W[j, k]


@helper
def _direction(first, stop, target, path, shares, edges, z, move):
    """The direction from a sequence's mixture to the path: `z` row by row, `move` of the edges."""
    classes = len(edges)
    for j in range(classes):
        for k in range(classes):
            move[j, k] = -edges[j, k]
    for i in range(first, stop):
        for k in range(classes):
            z[i, k] = -shares[i, k]
        z[i, path[i]] += 1.0
        z[i, target[i]] -= 1.0
        if i > first:
            move[path[i - 1], path[i]] += 1.0
            move[target[i - 1], target[i]] -= 1.0


@helper
def _moves(rows, bias, first, stop, buffers):
    """moves[j] = Σ x_ij z[i] over rows first:stop, for the features j in `touched`; returns their number."""
    z, moves, seen, touched, indptr = buffers.z, buffers.moves, buffers.seen, buffers.touched, rows.indptr
    last, classes, count = np.uint64(len(moves) - 1), np.uint64(z.shape[1]), 0
    seen[-1] += 1  # the number of this step: a feature with another number is new
    for i in range(first, stop):
        if not np.any(z[i]):
            continue
        for p in range(indptr[i], indptr[i + 1] + (bias != 0.0)):
            j, value = last, bias
            if p < indptr[i + 1]:
                j = np.uint64(rows.indices[p])
                value = entry(rows.data, p)
            if seen[j] != seen[-1]:
                seen[j] = seen[-1]
                touched[count] = j
                count += 1
                for k in range(classes):
                    moves[j, k] = 0.0
            for k in range(classes):
                moves[j, k] += value * z[np.uint64(i), k]
    return count


@helper
def _add_held(rows, bias, first, stop, shares, out):
    """out[j] += Σ x_ij shares[i] over rows first:stop; most rows hold nothing but their target."""
    last, classes = np.uint64(len(out) - 1), np.uint64(out.shape[1])
    for i in range(first, stop):
        if not np.any(shares[i]):
            continue
        row = np.uint64(i)
        if bias != 0.0:
            for k in range(classes):
                out[last, k] += bias * shares[row, k]
        for p in range(np.uint64(rows.indptr[row]), np.uint64(rows.indptr[row + np.uint64(1)])):
            j = np.uint64(rows.indices[p])
            value = entry(rows.data, p)
            for k in range(classes):
                out[j, k] += value * shares[row, k]
