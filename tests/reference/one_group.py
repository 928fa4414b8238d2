"""A risk of one group at given scores, with as little room as one likes."""

import numpy as np

from streamcut.oracles.one_group import CODE_TYPE, OneGroup
from streamcut.oracles.row_blocks import RowBlocks


def evaluated_by_ranges(risk, labels, scores, room=None, *, workers=1):
    """(loss, coefficients, offset) with at most `room` scores in memory; None: all of them."""
    rows = {"z": labels.astype(float), "code": np.empty(len(labels), CODE_TYPE), "c": np.full(len(labels), np.nan)}
    group = OneGroup(risk, RowBlocks(len(labels), lambda: rows, lambda *_: None, workers), None if room is None else 9 * room)
    group.begin(None)
    rows["z"] = scores
    loss, offset = group.value(None)
    return loss, rows["c"], offset
