"""Ranking by the list of all pairs: what streamcut never makes."""

import numpy as np


def all_pairs(y, qid=None):
    """(i, j) of every pair with y_i > y_j in the same group."""
    qid = np.zeros(len(y)) if qid is None else qid
    return [(i, j) for i in range(len(y)) for j in range(len(y)) if y[i] > y[j] and qid[i] == qid[j]]


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
