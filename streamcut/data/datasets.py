"""Data sets of whatever a caller gives: stores, arrays in memory, and raw data that have to be converted first."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any

from streamcut.errors import UsageError
from streamcut.execution.row_state import scratch_folder
from streamcut.io.dataset import Dataset
from streamcut.io.sources.lazy import is_lazy, streamed


def opened(data: Any) -> Dataset:
    """`data` if it is a data set, the store at this path, or (X, y) or (X, y, row weights) as one. Raises as opening does."""
    if isinstance(data, str | os.PathLike):
        from streamcut.io.opening import open_dataset

        return open_dataset(os.fspath(data))
    if isinstance(data, tuple):
        from streamcut.io.sources.arrays import in_memory

        return in_memory(*data)
    if not hasattr(data, "manifest"):
        raise UsageError(
            f"data: {type(data).__name__} is neither a store, (X, y) or (X, y, row weights), nor, with label, a frame or a file"
        )
    return data


@contextmanager
def stored(
    data: Any, label: str | None, convert: Mapping[str, Any] | None, scratch: str | None, memory: Any
) -> Iterator[tuple[Any, bool]]:
    """(`data`, False), or (a store that is made of a raw file or a frame and removed in the end, True).

    label, convert   the column with the labels, and more options of `streamcut.convert`; raw data need one of them

    Raises UsageError for labels of data that have their own, and what `convert` raises.
    """
    data = streamed(data)
    if isinstance(data, tuple) and is_lazy(data[0]):
        from streamcut.io.conversion.create import NewStore

        with TemporaryDirectory(prefix="streamcut-", dir=scratch_folder(scratch)) as folder:
            place = os.path.join(folder, "data.zarr")
            X, y, *weight = data
            with NewStore(place, memory=memory) as out:
                out.append(X, y, weight=weight[0] if weight else None)
            yield place, True
        return
    if label is None and convert is None and not hasattr(data, "__arrow_c_stream__"):
        yield data, False
        return
    if isinstance(data, tuple) or hasattr(data, "manifest"):
        raise UsageError("label: a store and (X, y) have labels of their own; leave label and convert out")
    from streamcut.io.conversion.convert import convert as made

    with TemporaryDirectory(prefix="streamcut-", dir=scratch_folder(scratch)) as folder:
        place = os.path.join(folder, "data.zarr")
        made(data, place, **{"labels": label, "memory": memory, "scratch": folder, **(convert or {})})
        yield place, True
