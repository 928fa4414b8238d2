"""Losses of whole labellings by trying every labelling."""

from itertools import product

import numpy as np


def delta(loss, truth, said, k):
    """Loss of the labelling `said` (bool arrays), or None when it is not allowed."""
    hits, P = np.sum(truth & said), truth.sum()
    if loss == "error":
        return np.mean(truth != said)
    if loss == "f1":
        return 1.0 - 2.0 * hits / (P + said.sum())
    k = P if loss == "prbep" else k
    if said.sum() != k:
        return None
    return 1.0 - hits / (P if loss == "rec@k" else k)


def risk(scores, truth, loss, k=0):
    """max(0, max over labellings of Δ − (1/m) Σ over flipped rows of y_i s_i)."""
    sign = np.where(truth, 1.0, -1.0)
    worst = 0.0
    for labels in product((False, True), repeat=len(scores)):
        said = np.array(labels)
        loss_of_it = delta(loss, truth, said, k)
        if loss_of_it is not None:
            worst = max(worst, loss_of_it - np.mean(sign * scores * (said != truth)))
    return worst


def risk_by_tables(scores, truth, loss, k=0):
    """The same by all contingency tables, for more rows."""
    P, N = truth.sum(), (~truth).sum()
    lost = np.append(0.0, np.cumsum(np.sort(scores[truth])))
    gained = np.append(0.0, np.cumsum(np.sort(scores[~truth])[::-1]))
    worst = 0.0
    for missed in range(P + 1):
        for alarms in range(N + 1):
            hits, size = P - missed, P - missed + alarms
            wanted = {"prbep": P, "prec@k": k, "rec@k": k}.get(loss, size)
            if size == wanted:
                of_table = {
                    "error": (missed + alarms) / (P + N),
                    "f1": 1.0 - 2.0 * hits / (P + size),
                    "prec@k": 1.0 - hits / max(k, 1),
                }.get(loss, 1.0 - hits / P)
                worst = max(worst, of_table + (gained[alarms] - lost[missed]) / (P + N))
    return worst
