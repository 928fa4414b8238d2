"""Data sets from any input: stores, arrays in memory, and raw data that has to be converted first."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any

from streamcut.data.inputs import framed, is_frame
from streamcut.errors import UsageError
from streamcut.execution.row_state import scratch_folder
from streamcut.io.dataset import Dataset
from streamcut.io.formats.finding import claim, is_raw
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.sources.lazy import is_lazy, streamed


def opened(data: Any) -> Dataset:
    """`data` itself, the store at a path, or (X, y) or (X, y, row weights), as a data set. Raises what opening raises."""
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
    """(`data`, False), or (a store made of a raw file or a frame and removed at the end, True).

    label, convert   the column with the labels, and more options of `streamcut.convert`; raw data need one of them

    Raises UsageError for `label` with data that has its own labels, and what `convert` raises.
    """
    data = streamed(framed(data))
    if isinstance(data, tuple) and is_lazy(data[0]):
        from streamcut.io.conversion.create import NewStore

        with TemporaryDirectory(prefix="streamcut-", dir=scratch_folder(scratch)) as folder:
            place = os.path.join(folder, "data.zarr")
            X, y, *weight = data
            with NewStore(place, memory=memory) as out:
                out.append(X, y, weight=weight[0] if weight else None)
            yield place, True
        return
    raw = is_frame(data) or (isinstance(data, str | os.PathLike) and is_raw(os.fspath(data)))
    if label is None and not convert and not raw:
        yield data, False
        return
    if isinstance(data, tuple) or hasattr(data, "manifest"):
        raise UsageError("label: a store and (X, y) have labels of their own; leave label and convert out")
    from streamcut.io.conversion.convert import convert as made

    with TemporaryDirectory(prefix="streamcut-", dir=scratch_folder(scratch)) as folder:
        place = os.path.join(folder, "data.zarr")
        made(data, place, **{"memory": memory, "scratch": folder, **({"labels": label} if label else {}), **(convert or {})})
        yield place, True


@contextmanager
def measurable(data: Any, recipe: Recipe | None, scratch: str | None, memory: Any) -> Iterator[Any]:
    """Evaluation data for models with `recipe`: a store as it is, raw rows as a store made by the recipe.

    Raises what `convert` raises.
    """
    data = framed(data)
    if not is_frame(data) and not (isinstance(data, str | os.PathLike) and is_raw(os.fspath(data))):
        yield data
        return
    from streamcut.io.conversion.convert import convert

    with TemporaryDirectory(prefix="streamcut-", dir=scratch_folder(scratch)) as folder:
        place = os.path.join(folder, "validation.zarr")
        how: dict[str, Any] = {} if recipe is None else {"recipe": recipe}
        if not is_frame(data) and (form := claim(os.fspath(data))) is not None and form.labels == "column":  # cells
            how = {} if recipe is None else {"labels": recipe.labels.column, "layer": recipe.layer}
        convert(streamed(data), place, memory=memory, scratch=folder, **how)
        yield place
