"""Which rows are held out of training to measure models on: at random, by groups, or the latest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamcut.data.row_columns import keys_of_groups, times_of_rows
from streamcut.errors import UsageError
from streamcut.foundation.units import part_of
from streamcut.io.dataset import Dataset, first_rows
from streamcut.io.row_view import HeldOut, RowView, drawn_groups, held_out_view
from streamcut.io.tables.files import TableFile


def share_of(validation: Any) -> float:
    """The share of the rows that `validation` ("20%", 0.2) specifies. Raises UsageError."""
    share = part_of(validation) if isinstance(validation, str) else validation
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0.0 < share < 1.0:
        raise UsageError(f"validation: {validation!r} is not a share of the rows; write for example '20%'")
    return float(share)


def split(
    data: Dataset, files: Sequence[TableFile], share: float, seed: int, group: str | None, time: str | None
) -> tuple[RowView, RowView]:
    """(rows to train on, rows held out) of `data`, which was made from the table `files`, row for row.

    group   rows with the same value of this column stay together; `time`: the latest rows by this column are held out
    """
    if group is not None:
        held = HeldOut(which=drawn_groups(keys_of_groups(files, group), share, seed))
    elif time is not None:
        held = HeldOut(which=_latest(files, time, share))
    else:
        statistics = data.manifest.statistics
        held = HeldOut(share, seed, grouped=statistics.groups is not None, rows=statistics.n_rows)
    training, validation = held_out_view(data, held)
    known, there = training.manifest.statistics.labels, validation.manifest.statistics.labels
    alone = set(there) - set(known) if known and there else set()
    if not alone or not all(label.is_integer() for label in alone) or held.grouped:
        return training, validation
    return held_out_view(data, HeldOut(which=_without(data, held, alone)))  # a class must be in training to be measured


def _without(data: Dataset, held: HeldOut, labels: set[float]) -> np.ndarray:
    """Which rows are held out, bool (n), except those with some labels."""
    which, buffers = [], data.buffers()
    for shard, first in enumerate(first_rows(data.manifest)[:-1]):
        chunk = data.read(shard, buffers)
        which.append((held.of(chunk, first) == 0) & ~np.isin(chunk.y, list(labels)))
    return np.concatenate(which)


def _latest(files: Sequence[TableFile], column: str, share: float) -> np.ndarray:
    """Which rows are held out, bool (n): the latest by `column`; equal times stay together, rows without one are not held out."""
    times = times_of_rows(files, column)
    known = np.sort(times[~np.isnan(times)])
    begin = known[min(len(known) - 1, int(np.ceil((1.0 - share) * len(known))))]
    return times >= begin if begin > known[0] else times > begin
