"""The worst labelling of all rows at once, by a search over contingency tables (Joachims 2005, algorithms 2 and 3).

A measure of all rows sees of a labelling only how many positive rows it misses (`missed`) and how many negative ones it lets in
(`false_alarms`). Among labellings with the same two numbers the worst flips the positives of the lowest scores and the negatives
of the highest. So with the positives' scores ascending and the negatives' descending, a search over the numbers is a search
over all labellings. Below m is the number of rows; what is maximised is

    Δ(missed, false alarms) + (1/m)(Σ scores of the flipped negatives − Σ scores of the flipped positives).

The paper tries all tables of F₁, O(m²). With `missed` fixed that is concave in the false alarms, so bisection of its
increments finds the best: O(m log m).
"""

import numpy as np

from streamcut.jit import kernel


@kernel
def worst_for_f1(positives, negatives):
    """(missed, false alarms) of the labelling with the largest 1 − F₁ plus scores; see above."""
    P, N = len(positives), len(negatives)
    scale = 1.0 / (P + N)
    gained = np.empty(N + 1)  # by letting in the negatives so far
    gained[0] = 0.0
    for j in range(N):
        gained[j + 1] = gained[j] + negatives[j]
    best, best_missed, best_alarms = -np.inf, 0, 0
    lost = 0.0  # by missing the positives so far
    for missed in range(P + 1):
        if missed > 0:
            lost += positives[missed - 1]
        hits = P - missed
        low, high = 0, N  # the largest number of false alarms whose last one still pays
        while low < high:
            alarms = (low + high + 1) // 2
            size = np.float64(P + hits + alarms)
            if 2.0 * hits / (size * (size - 1.0)) + scale * negatives[alarms - 1] > 0.0:
                low = alarms
            else:
                high = alarms - 1
        value = 1.0 - 2.0 * hits / (P + hits + low) + scale * (gained[low] - lost)
        if value > best:
            best, best_missed, best_alarms = value, missed, low
    return best_missed, best_alarms


@kernel
def worst_at_k(positives, negatives, k, full):
    """(missed, false alarms) of the labelling with exactly k positives and the largest 1 − hits/full plus scores; see above."""
    P, N = len(positives), len(negatives)
    scale = 1.0 / (P + N)
    fewest = max(0, k - N)
    most = min(P, k)
    sum_ = 0.0
    for i in range(P - most):
        sum_ -= positives[i]
    for j in range(k - most):
        sum_ += negatives[j]
    best, best_hits = -np.inf, most
    for hits in range(most, fewest - 1, -1):
        value = 1.0 - hits / full + scale * sum_
        if value > best:
            best, best_hits = value, hits
        if hits > fewest:  # one more missed, one more let in
            sum_ += negatives[k - hits] - positives[P - hits]
    return P - best_hits, k - best_hits


@kernel
def worst_for_errors(positives, negatives):
    """(missed, false alarms) of the labelling with the largest rate of errors plus scores: each row by itself, a hinge."""
    missed, alarms = 0, 0
    while missed < len(positives) and positives[missed] < 1.0:
        missed += 1
    while alarms < len(negatives) and negatives[alarms] > -1.0:
        alarms += 1
    return missed, alarms


@kernel
def flip(places, scores, coefficient, out, sums):
    """out[i] = coefficient for the rows i in `places`; sums (total, rounding lost) += Σ coefficient·scores[i] over them."""
    total, lost = sums[0], sums[1]
    for i in places:
        out[i] = coefficient
        term = coefficient * scores[i]
        added = total + term
        lost += (total - added) + term if abs(total) >= abs(term) else (term - added) + total
        total = added
    sums[0], sums[1] = total, lost
