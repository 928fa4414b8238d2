"""Best label paths through sequences (Viterbi), with or without a loss for wrong labels, and what a path counts.

Conventions: `starts` (S + 1) int64 are the rows where sequences begin, and the end; scores `z`, `z_b` float64 (n, K); `target`
(n) int32 the class of each row, 0 … K − 1; `transitions` float64 (K, K), [j, k] for class k after class j. All paths add their
numbers in the same order, that of the rows, so the best one is never below the targets' by rounding.
"""

import numpy as np

from streamcut.jit import kernel


@kernel
def best_paths(starts, target, z_b, z, kappa, transitions, augment, back, path, excess):
    """path[i] = the class of row i on the best path of its sequence; excess[s] = how much better it is than the targets.

    Rows score z_b + κ(z − z_b), plus `augment` for each class but the target's. Of equal predecessors the target's comes first,
    then the lowest class. `back` (n, K) int16 is room.
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


@kernel
def along_line(starts, target, z_b, z, k, transitions, slopes, excess, slope):
    """excess[s] as `best_paths` has it, augmented by 1, at z_b + k(z − z_b), and slope[s] its derivative in k.

    `transitions` are those at k, `slopes` (K, K) their derivative. No path is kept: value and derivative travel together.
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
    """Adds 1 to out[j, k] for every class k after j on the path, and takes 1 from it for every k after j among the targets."""
    for s in range(len(starts) - 1):
        for i in range(starts[s] + 1, starts[s + 1]):
            out[path[i - 1], path[i]] += 1.0
            out[target[i - 1], target[i]] -= 1.0
