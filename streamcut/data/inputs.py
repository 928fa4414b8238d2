"""Rows of any input, as the model expects them: stores are checked against its recipe, raw input is prepared by it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from streamcut.errors import BadInputError, UsageError
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.shown import unknown
from streamcut.io.dataset import Dataset, is_dataset
from streamcut.io.formats.finding import find_files, sniff
from streamcut.io.formats.registry import FORMATS, FRAME, NPZ, SCORED, STORE, SVMLIGHT, Raw
from streamcut.io.manifest import Manifest
from streamcut.io.memory import MemoryDataset
from streamcut.io.recipe.recipe import PLAIN, Recipe, require_same
from streamcut.io.remote import is_url
from streamcut.io.sources.arrays import in_memory
from streamcut.io.sources.lazy import framed, is_frame


def rows_of(
    data: object, recipe: Recipe | None, raw: Raw | None = None, expect: Callable[[Manifest | str], object] = lambda rows: None
) -> Iterator[Chunk]:
    """The rows of `data` in order, with the features of `recipe`; a chunk is valid until the next one.

    Before reading, `expect` gets the manifest of the data, or the format where there is none, and may raise.

    data   an opened data set, the path of a store or of raw input (svmlight text; tables, if the recipe is one of tables), what
           streamcut.io.sources.lazy.framed takes, or (X, y) or (X, y, row weights)

    Raises BadInputError for a store with another recipe, and for raw input that does not fit the recipe.
    """
    raw, data = raw or Raw(), with_labels(framed(data), recipe)
    if isinstance(data, tuple):
        data = arrays_of(data, recipe)
    elif is_frame(data):
        expect(FRAME.name)
        yield from FRAME.rows(data, recipe or PLAIN, raw)
        return
    elif isinstance(data, str | os.PathLike):
        kind = raw_format(os.fspath(data), raw.format)
        if kind is not None:
            expect(kind)
            yield from FORMATS[kind].rows(os.fspath(data), recipe or PLAIN, raw)
            return
    data = opened(data)
    raw.expect_no_columns("a store keeps no columns; give the table itself")
    where = str(data.path or "the rows")
    if not isinstance(data, MemoryDataset):
        require_same(recipe, data.recipe, where)
    renamed = _other_numbers(recipe, data.recipe, where) if raw.labelled else None
    expect(data.manifest)
    buffers = data.buffers()
    for shard in range(len(data.manifest.shards)):
        chunk = data.read(shard, buffers)
        yield chunk if renamed is None else replace(chunk, y=renamed(chunk.y))


def opened(data: object) -> Dataset:
    """`data` itself, the store at a path, the stores at a list of paths, or (X, y) or (X, y, row weights), as a data set.

    Raises what opening raises.
    """
    parts = data if isinstance(data, list) else [data]
    paths = [os.fspath(part) for part in parts if isinstance(part, str | os.PathLike)]
    if paths and len(paths) == len(parts):
        from streamcut.io import joined

        return joined.opened(paths)
    if isinstance(data, tuple):
        return in_memory(*data)
    if not is_dataset(data):
        raise UsageError(
            f"data: {type(data).__name__} is neither a store, (X, y) or (X, y, row weights), nor, with label, a frame or a file"
        )
    return data


def with_labels(data: object, recipe: Recipe | None) -> object:
    """One frame of (frame, labels) where `recipe` makes features of columns; anything else unchanged."""
    rule = None if recipe is None or recipe.table is None else recipe.labels
    if rule is None or rule.column is None or not (isinstance(data, tuple) and len(data) == 2):
        return data
    rows = framed(data[0])
    if not is_frame(rows):
        return data
    import pyarrow as pa

    if rule.comparison is not None:
        raise UsageError(f"data: labels are the outcome of {rule.comparison}; give the frame with that column, without labels")
    frame, labels = pa.table(rows), pa.array(data[1])
    kept = [name for name in frame.column_names if name != rule.column]
    if len(labels) != frame.num_rows:
        raise BadInputError(f"X has {frame.num_rows:,} rows, y {len(labels):,}")
    return frame.select(kept).append_column(rule.column, labels)


def arrays_of(data: tuple[ArrayLike, ...], recipe: Recipe | None) -> MemoryDataset:
    """(X, y) or (X, y, row weights) as a data set; labels that are words get the numbers of `recipe`."""
    words = {} if recipe is None else {word: number for number, word in recipe.labels.names.items()}
    X, y, *weight = data
    return in_memory(X, y, weight[0] if weight else None, words)


def raw_format(path: str, wanted: str) -> str | None:
    """The format of raw input that is read directly; None: a store, or no such file.

    Raises UsageError for input that has to be converted first.
    """
    if wanted not in ("auto", *SCORED):
        raise UsageError(f"format: {unknown(wanted, ('auto', *SCORED))}")
    if wanted != "auto":
        return wanted
    if os.path.isdir(path) or not (path == "-" or os.path.exists(path)):
        name = find_files([path], "auto")[0] if "://" in path or os.path.isdir(path) or _matches(path) else None
        text = name == SVMLIGHT.name and not is_url(path)  # or no such file
        return name if name in SCORED and not text else None
    kind = sniff(path)
    if kind in SCORED:
        return kind
    if kind not in (STORE.name, NPZ.name):  # opening it explains an .npz
        raise UsageError(f"{path}: {kind} is not read directly; make a store of it with `streamcut convert`")
    return None


def _matches(path: str) -> bool:
    import glob

    return glob.has_magic(path) and any(glob.iglob(path, recursive=True))


def require_same_numbers(
    recipe: Recipe | None, other: Recipe | None, where: str, than: str = "the model's training data"
) -> None:
    """Raise BadInputError if a word that is a label has another number in the data `where`, of recipe `other`, than in `than`."""
    ours, theirs = ((one or PLAIN).labels.names for one in (recipe, other))
    numbers = {word: number for number, word in ours.items()}
    for number, word in theirs.items() if ours else ():
        if numbers.get(word, number) != number or ours.get(number, word) != word:
            expected = f"{numbers[word]:g}" if word in numbers else "no label"
            raise BadInputError(
                f"{where}: label {word!r} is {number:g} here, and {expected} in {than}; prepare these data with the recipe "
                "of the others (--recipe MODEL or STORE)"
            )


def _other_numbers(recipe: Recipe | None, other: Recipe | None, where: str) -> Callable[[np.ndarray], np.ndarray] | None:
    """A map from labels of `other` to those of `recipe`, where both have words for them; None: they are the same.

    Raises BadInputError for rows without labels, and (when called) for words unknown to `recipe`.
    """
    if other is not None and other.labels.none:
        raise BadInputError(f"{where}: its rows have no labels; they can be scored, not measured")
    ours, theirs = ((recipe or PLAIN).labels.names, (other or PLAIN).labels.names)
    if not ours or not theirs or all(ours.get(number) == word for number, word in theirs.items()):
        return None
    numbers = {word: number for number, word in ours.items()}
    old, new = np.array(sorted(theirs)), [numbers.get(theirs[number], np.nan) for number in sorted(theirs)]

    def renamed(y: np.ndarray) -> np.ndarray:
        labels = np.array(new)[np.searchsorted(old, y)]
        if np.isnan(labels).any():
            word = theirs[float(y[np.argmax(np.isnan(labels))])]
            raise BadInputError(f"{where}: label {word!r} is none of the model's: {', '.join(list(numbers)[:10])}")
        return labels

    return renamed
