"""The water level of responses: the level to which slack lifts the smallest, in the Stochastic Batch Perceptron.

Pouring a volume V into a basin with floor c raises its surface to the γ with Σ_i max(0, γ − c_i) = V. With an unregularised bias
there are two basins, one per class, whose heights the bias shifts against each other; at the best bias water covers equally many
rows in both, and the sum of both levels counts.

Cotter, Shalev-Shwartz & Srebro 2012, Appendix B, Algorithms 2 and 3. Only the order of the search differs: there both ends of
each basin's range move alternately, here one range of ranks, common to both basins, is narrowed (the k-th smallest of one class
is always paired with the k-th smallest of the other), starting at the rank of the last level. Linear time on average; `work`
arrays are reordered in place. Ranks stay between 1 and the size of a basin, which is at least 1.
"""

from streamcut.compiler.jit import helper, kernel


@helper
def _select(work, low, high, k):
    """Reorders work[low:high] so that work[k] is what sorting would put there, with nothing larger before or smaller after.

    Hoare's algorithm; the pivot is what lies at k.
    """
    left, right = low, high - 1
    while left < right:
        pivot = work[k]
        i, j = left, right
        while i <= j:
            while work[i] < pivot:
                i += 1
            while pivot < work[j]:
                j -= 1
            if i <= j:
                work[i], work[j] = work[j], work[i]
                i += 1
                j -= 1
        if j < k:
            left = i
        if k < i:
            right = j


@kernel
def keep_below(c, sign, wanted, limit, work):
    """Copies to `work` the responses c_i ≤ limit of the rows with sign_i == wanted (0: of all rows); returns how many."""
    n = 0
    for i in range(len(c)):
        work[n] = c[i]
        n += (c[i] <= limit) & ((wanted == 0) | (sign[i] == wanted))  # not `and`: a branch here is mispredicted
    return n


@helper
def _next_rank(lower, upper, went_up, reach):
    """The next rank to try: halfway between the bounds, but no further than `reach` from the bound moved last."""
    middle = (lower + upper + 1) // 2
    return min(middle, lower + reach) if went_up else max(middle, upper - reach)


@kernel
def level(work, n, volume, guess):
    """(γ, k): the level of `volume` ≥ 0 over work[:n], n ≥ 1, and how many numbers it covers (at least the smallest).

    The nearer `guess` is to k, the fewer numbers are moved.
    """
    lower, upper = 0, n  # least and greatest possible number of covered ones
    lower_sum = 0.0
    high, reach, middle = n, max(guess // 16, 1), min(max(guess, 1), n)
    while lower < upper:
        _select(work, lower, high, middle - 1)
        middle_sum = lower_sum
        for i in range(lower, middle):
            middle_sum += work[i]
        uncovered = middle * work[middle - 1] - middle_sum >= volume
        if uncovered:
            upper = high = middle - 1
        else:
            lower, lower_sum = middle, middle_sum
        reach *= 2
        middle = _next_rank(lower, upper, not uncovered, reach)
    if lower == 0:  # no volume
        return work[0], 1
    return (volume + lower_sum) / lower, lower


@kernel
def level_of_two(positive, n_positive, negative, n_negative, volume, guess):
    """(γ₊, γ₋, k): levels over positive[:n₊] and negative[:n₋] that `volume` ≥ 0 fills together, k covered in each.

    Neither class may be empty. The water level is (γ₊ + γ₋) / 2 and the bias (γ₋ − γ₊) / 2. If only their sum is determined, the
    middle of the allowed range is taken. A fully covered class takes all further water. `guess`: as for `level`.
    """
    n = min(n_positive, n_negative)
    lower, upper = 0, n
    lower_sum = 0.0
    high_positive, high_negative, reach, middle = n_positive, n_negative, max(guess // 16, 1), min(max(guess, 1), n)
    while lower < upper:
        _select(positive, lower, high_positive, middle - 1)
        _select(negative, lower, high_negative, middle - 1)
        middle_sum = lower_sum
        for i in range(lower, middle):
            middle_sum += positive[i] + negative[i]
        uncovered = middle * (positive[middle - 1] + negative[middle - 1]) - middle_sum >= volume
        if uncovered:
            upper = high_positive = high_negative = middle - 1
        else:
            lower, lower_sum = middle, middle_sum
        reach *= 2
        middle = _next_rank(lower, upper, not uncovered, reach)
    if lower == 0:  # no volume
        lower, lower_sum = 1, positive[0] + negative[0]
    top_positive, top_negative = positive[lower - 1], negative[lower - 1]
    rise = (volume + lower_sum) / lower - top_positive - top_negative  # of both levels together, above the last ones covered
    rise_positive, rise_negative = rise, rise
    for i in range(lower, n_positive):
        rise_positive = min(rise_positive, positive[i] - top_positive)
    for i in range(lower, n_negative):
        rise_negative = min(rise_negative, negative[i] - top_negative)
    difference = rise_positive - rise_negative
    return top_positive + 0.5 * (rise + difference), top_negative + 0.5 * (rise - difference), lower
