"""Ranking by the list of all pairs: what streamcut never makes."""

import numpy as np


def all_pairs(y, qid=None):
    """(i, j) of every pair with y_i > y_j in the same group."""
    qid = np.zeros(len(y)) if qid is None else qid
    return [(i, j) for i in range(len(y)) for j in range(len(y)) if y[i] > y[j] and qid[i] == qid[j]]


def pair_weights(pairs, qid=None, normalisation="pairs"):
    """Weight of each pair: 1/|P|, or 1/(Q |P_q|) over the Q groups that have pairs."""
    if normalisation == "pairs" or qid is None:
        return np.full(len(pairs), 1.0 / max(len(pairs), 1))
    groups = [qid[i] for i, _ in pairs]
    found = sorted(set(groups))
    return np.array([1.0 / (len(found) * groups.count(q)) for q in groups])


def risk(scores, pairs, weights):
    """(Σ weight·max(0, 1 − (s_i − s_j)), its subgradient in the scores, Σ weight over active pairs)."""
    loss, offset, coefficients = 0.0, 0.0, np.zeros(len(scores))
    for (i, j), u in zip(pairs, weights, strict=True):
        if scores[i] - scores[j] < 1.0:
            loss += u * (1.0 - (scores[i] - scores[j]))
            offset += u
            coefficients[i] -= u
            coefficients[j] += u
    return loss, coefficients, offset


def differences(X, pairs):
    """x_i − x_j of every pair, dense (pairs, d): ranking as classification without bias."""
    return np.array([X[i] - X[j] for i, j in pairs])
