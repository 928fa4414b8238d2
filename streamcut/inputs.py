"""Rows of whatever a caller gives, as the model wants them: stores are compared with its recipe, raw input is prepared by it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from streamcut.chunk import Chunk
from streamcut.errors import UsageError
from streamcut.io.memory import MemoryDataset
from streamcut.io.recipe.comparison import PLAIN, require_same
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.sources.row_source import sniff


def rows_of(data: Any, recipe: Recipe | None, *, index_base: int | None = None) -> Iterator[Chunk]:
    """The rows of `data` in their order, with the features of `recipe`; a chunk is valid until the next one.

    data        an opened data set, the path of a store or of an svmlight file, or (X, y) or (X, y, row weights)
    index_base  number of the first feature in svmlight text; None: as the recipe has it, else 1

    Raises BadInputError for a store of another recipe.
    """
    if isinstance(data, tuple):
        X, y, *weight = data
        data = MemoryDataset(X, y, weight=weight[0] if weight else None)
    elif isinstance(data, str | os.PathLike):
        if _is_text(data):
            yield from _text_rows(data, recipe or PLAIN, index_base)
            return
        data = open_store(data)
    if not isinstance(data, MemoryDataset):
        require_same(recipe, data.recipe, str(data.path))
    buffers = data.buffers()
    for shard in range(len(data.manifest.shards)):
        yield data.read(shard, buffers)


def open_store(path: str | os.PathLike):
    """The store at `path`. Raises NotFoundError when there is none."""
    from streamcut.io.opening import open_dataset

    return open_dataset(path)


def _is_text(path: str | os.PathLike) -> bool:
    """Whether `path` is parsed on the way: stdin, a pipe or an svmlight file. Raises UsageError for what is to be converted."""
    if os.fspath(path) != "-" and (os.path.isdir(path) or not os.path.exists(path)):
        return False  # a store, a URL, or a matter of which open_store says what is wrong
    kind = sniff(os.fspath(path))
    if kind in ("mtx", "anndata", "parquet"):  # open_store says what an .npz is
        raise UsageError(f"{path}: {kind} is not read directly; make a store of it with `streamcut convert`")
    return kind == "svmlight"


def _text_rows(path: str | os.PathLike, recipe: Recipe, index_base: int | None) -> Iterator[Chunk]:
    from streamcut.io.text.svmlight import SvmlightOptions, SvmlightSource, by_recipe
    from streamcut.io.unchanged import FileStates

    if recipe.hash_bits is not None and index_base is not None:
        raise UsageError("index_base: the model hashes the features as they are written, so their numbers have no first one")
    given = by_recipe(recipe) if index_base is None else {**by_recipe(recipe), "index_base": index_base}
    if recipe.hash_bits is None:
        given["dtype"] = "float64"  # the numbers as they are written; hashed sums are those of training to the bit
    options = SvmlightOptions(**given)
    states = FileStates([path])
    for chunk, _ in states.watch(SvmlightSource([os.fspath(path)], options, model_takes=recipe.in_words()).blocks()):
        yield chunk
