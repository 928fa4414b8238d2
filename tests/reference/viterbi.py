"""Sequence labelling by trying every labelling."""

from itertools import pairwise, product

import numpy as np


def score(path, z, transitions):
    """Σ_t z[t, path_t] + Σ_t transitions[path_t−1, path_t]."""
    return sum(z[t, k] for t, k in enumerate(path)) + sum(transitions[j, k] for j, k in pairwise(path))


def worst(target, z, transitions, augment=1.0):
    """(value, labelling) of max over labellings of augment·(wrong labels) + score − the targets' score."""
    own = score(target, z, transitions)
    n, K = z.shape
    wrong = lambda path: augment * sum(a != b for a, b in zip(path, target, strict=True))  # noqa: E731
    return max((wrong(path) + score(path, z, transitions) - own, path) for path in product(range(K), repeat=n))


def joint_features(X, path, K):
    """Ψ: emissions (d, K) by feature, then transitions (K, K), flat."""
    emissions, transitions = np.zeros((X.shape[1], K)), np.zeros((K, K))
    for t, k in enumerate(path):
        emissions[:, k] += X[t]
    for j, k in pairwise(path):
        transitions[j, k] += 1
    return np.concatenate((emissions.ravel(), transitions.ravel()))


def primal(w, X, target, starts, C, K):
    """½‖w‖² + C Σ over sequences of the loss."""
    W, T = w[: X.shape[1] * K].reshape(-1, K), w[X.shape[1] * K :].reshape(K, K)
    losses = [worst(target[a:b], X[a:b] @ W, T)[0] for a, b in pairwise(starts)]
    return 0.5 * w @ w + C * sum(losses)
