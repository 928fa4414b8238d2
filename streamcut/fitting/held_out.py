"""Which rows are kept from training, so that models can be measured on them: at random, by groups, or the latest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamcut.errors import BadInputError, UsageError
from streamcut.foundation.units import part_of
from streamcut.io.dataset import Dataset, first_rows
from streamcut.io.row_view import HeldOut, RowView, drawn, held_out_view
from streamcut.io.tables.arrow import ColumnTypeError, ValueOfRowError, decoded, kind_of
from streamcut.io.tables.files import BatchSize, TableFile, require
from streamcut.io.tables.times import times_of

_BATCH = BatchSize(4 << 20, 1 << 16, 64 << 20)


def share_of(validation: Any) -> float:
    """The part of the rows that `validation` ("20%", 0.2) says. Raises UsageError."""
    share = part_of(validation) if isinstance(validation, str) else validation
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0.0 < share < 1.0:
        raise UsageError(f"validation: {validation!r} is no part of the rows; write for example '20%'")
    return float(share)


def split(
    data: Dataset, files: Sequence[TableFile], share: float, seed: int, group: str | None, time: str | None
) -> tuple[RowView, RowView]:
    """(rows to train on, rows held out) of `data`, which was made of the table `files`, row for row.

    group   rows with one value of this column are on one side; `time`: the latest rows by this column are held out
    """
    if group is not None:
        held = HeldOut(which=_groups(files, group, share, seed))
    elif time is not None:
        held = HeldOut(which=_latest(files, time, share))
    else:
        held = HeldOut(share, seed, grouped=data.manifest.statistics.groups is not None)
    training, validation = held_out_view(data, held)
    known, there = training.manifest.statistics.labels, validation.manifest.statistics.labels
    alone = set(there) - set(known) if known and there else set()
    if not alone or not all(label.is_integer() for label in alone) or held.grouped:
        return training, validation
    return held_out_view(data, HeldOut(which=_without(data, held, alone)))  # a class is to be known before it is measured


def _without(data: Dataset, held: HeldOut, labels: set[float]) -> np.ndarray:
    """Which rows are held out, bool (n), if those of some labels are not."""
    which, buffers = [], data.buffers()
    for shard, first in enumerate(first_rows(data.manifest)[:-1]):
        chunk = data.read(shard, buffers)
        which.append((held.of(chunk, first) == 0) & ~np.isin(chunk.y, list(labels)))
    return np.concatenate(which)


def _groups(files: Sequence[TableFile], column: str, share: float, seed: int) -> np.ndarray:
    """Which rows are held out, bool (n): those of a random part of the values of `column`."""
    found = []
    for _, values in _values(files, column):
        words = pc.fill_null(decoded(values).cast(pa.large_string()), "")
        codes = words.dictionary_encode()
        keys = [int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest()) for word in codes.dictionary.to_pylist()]
        which = drawn(np.array(keys, np.uint64), share, seed)
        found.append(which[codes.indices.to_numpy(zero_copy_only=False)])
    return np.concatenate(found or [np.empty(0, bool)])


def _latest(files: Sequence[TableFile], column: str, share: float) -> np.ndarray:
    """Which rows are held out, bool (n): the latest by `column`; those of one time are on one side, those of none are not."""
    found = []
    for name, values in _values(files, column):
        try:
            if kind_of(values.type) == "number":
                times = decoded(values).cast(pa.float64()).to_numpy(zero_copy_only=False)
            else:
                given, _ = times_of(values)
                if pa.types.is_time(given.type):
                    raise ColumnTypeError("holds times of the day, which say nothing of the order of days")
                stamps = given.cast(pa.timestamp("us")).cast(pa.int64())
                times = pc.cast(stamps, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        except ColumnTypeError as error:
            raise BadInputError(f"{name}: column {column!r} {error}") from None
        except ValueOfRowError as error:
            raise BadInputError(f"{name}: column {column!r}: {error.what}; times are read as in ISO 8601") from None
        found.append(times)
    times = np.concatenate(found or [np.empty(0)])
    known = np.sort(times[~np.isnan(times)])
    if not len(known) or known[0] == known[-1]:
        raise UsageError(
            f"time: column {column!r} has {'one time' if len(known) else 'no times'}; nothing is later than the rest"
        )
    begin = known[min(len(known) - 1, int(np.ceil((1.0 - share) * len(known))))]
    return times >= begin if begin > known[0] else times > begin


def _values(files: Sequence[TableFile], column: str) -> Iterator[tuple[str, pa.Array]]:
    """(name of the file, values) of a column, batch after batch; as text where all is text."""
    for file in files:
        require(file.name, file.schema(), [column])
        found = file.schema().field(column).type
        if pa.types.is_null(found) or (file.spelled and kind_of(found) not in ("number", "time")):
            found = pa.string()
        for batch in file.batches(pa.schema([pa.field(column, found)]), 0, _BATCH):
            yield file.name, batch.column(column)
