"""Rows of whatever a caller gives, as the model wants them: stores are compared with its recipe, raw input is prepared by it."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from streamcut.chunk import Chunk
from streamcut.errors import BadInputError, UsageError
from streamcut.execution.row_state import scratch_folder
from streamcut.io.manifest import Manifest
from streamcut.io.memory import MemoryDataset
from streamcut.io.recipe.comparison import PLAIN, require_same
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.recipe.table import UNFIT
from streamcut.io.sources.arrays import in_memory
from streamcut.io.sources.lazy import streamed
from streamcut.io.sources.row_source import TABLES, find_files, sniff
from streamcut.io.unchanged import FileStates
from streamcut.remote import is_url

MATRICES = ("anndata", "10x")  # read on the way, too


@dataclass
class Raw:
    """How raw input is read, and what was noticed on the way.

    index_base      number of the first feature in svmlight text; None: as the recipe has it, else 1
    labelled        labels are read; otherwise they may be anything, or not be there
    missing_labels  of a table: "error", or "skip": rows without a label are left out
    format          of files; "auto" looks into them
    keep            columns of a table that are wanted beside the rows, in `kept`: batches of Arrow, in the order of the rows
    strict          what does not fit the model's recipe is refused instead of counted
    counters        {what was unusual: how often}, such as values of a column that training did not see
    """

    index_base: int | None = None
    labelled: bool = True
    missing_labels: str = "error"
    format: str = "auto"
    keep: tuple[str, ...] = ()
    strict: bool = False
    counters: Counter[str] = field(default_factory=Counter)
    kept: deque[Any] = field(default_factory=deque)

    @property
    def unseen(self) -> dict[str, int]:
        """What did not fit the model's recipe, and how often: those of the counters that speak of it."""
        return {what: count for what, count in self.counters.items() if what.startswith(UNFIT)}

    def count(self, counters: Counter[str], where: str) -> None:
        """Take what was counted in input so far. Raises BadInputError for what does not fit, if it is to be strict."""
        self.counters = counters
        for what, count in self.unseen.items() if self.strict else ():
            raise BadInputError(f"{where}: {what}: {count:,}; without --strict (strict=False) such rows are scored all the same")


def rows_of(
    data: Any, recipe: Recipe | None, raw: Raw | None = None, expect: Callable[[Manifest | str], object] = lambda rows: None
) -> Iterator[Chunk]:
    """The rows of `data` in their order, with the features of `recipe`; a chunk is valid until the next one.

    Before any is read, `expect` gets the manifest of the data, or the format where there is none, and may raise.

    data   an opened data set, the path of a store or of raw input (svmlight text; tables, if the recipe is one of tables), a
           frame (anything with `__arrow_c_stream__`), rows as dicts (one, or a list), or (X, y) or (X, y, row weights)

    Raises BadInputError for a store of another recipe, and for raw input that the recipe does not fit.
    """
    raw, data = raw or Raw(), streamed(framed(data))
    if isinstance(data, tuple):
        words = {} if recipe is None else {word: number for number, word in recipe.labels.names.items()}
        X, y, *weight = data
        data = in_memory(X, y, weight[0] if weight else None, words)
    elif is_frame(data):
        expect("frame")
        yield from _table_rows(data, "frame", recipe or PLAIN, raw)
        return
    elif isinstance(data, str | os.PathLike):
        kind = raw_format(os.fspath(data), raw.format)
        if kind is not None:
            expect(kind)
        if kind == "svmlight":
            yield from _text_rows(os.fspath(data), recipe or PLAIN, raw)
            return
        if kind == "vw":
            yield from _vw_rows(os.fspath(data), recipe or PLAIN, raw)
            return
        if kind in MATRICES:
            yield from _matrix_rows(os.fspath(data), kind, recipe or PLAIN, raw)
            return
        if kind is not None:
            yield from _table_rows(os.fspath(data), kind, recipe or PLAIN, raw)
            return
        data = open_store(data)
    if raw.keep:
        raise UsageError(f"keep: {', '.join(raw.keep)}: a store keeps no columns; give the table itself")
    renamed = None
    if not isinstance(data, MemoryDataset):
        require_same(recipe, data.recipe, str(data.path))
        renamed = _other_numbers(recipe, data.recipe, str(data.path)) if raw.labelled else None
    expect(data.manifest)
    buffers = data.buffers()
    for shard in range(len(data.manifest.shards)):
        chunk = data.read(shard, buffers)
        yield chunk if renamed is None else replace(chunk, y=renamed(chunk.y))


def is_frame(data: Any) -> bool:
    """Whether `data` is a table in memory that gives itself out as Arrow."""
    return hasattr(data, "__arrow_c_stream__")


def framed(data: Any) -> Any:
    """A frame of `data` that is one row or several as {column: value}; anything else as it is. Raises BadInputError."""
    rows = [data] if isinstance(data, Mapping) else data
    if not isinstance(rows, list) or not rows or not all(isinstance(row, Mapping) for row in rows):
        return data
    import pyarrow as pa

    columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        try:
            columns[str(name)] = pa.array([row.get(name) for row in rows])
        except pa.ArrowException as error:
            raise BadInputError(f"the rows: column {name!r}: {error}") from None
    return pa.table(columns)


def open_store(path: str | os.PathLike):
    """The store at `path`. Raises NotFoundError when there is none."""
    from streamcut.io.opening import open_dataset

    return open_dataset(path)


def raw_format(path: str, wanted: str) -> str | None:
    """The format of raw input that is read on the way (svmlight or a table); None: a store, or nothing at all.

    Raises UsageError for what is to be converted first.
    """
    if wanted != "auto":
        return wanted
    if path == "-":
        return "svmlight"
    if os.path.isdir(path) or not os.path.exists(path):
        found = find_files([path], "auto")[0] if "://" in path or os.path.isdir(path) or _matches(path) else None
        return found if found in (*TABLES, *MATRICES, "vw") or (found == "svmlight" and is_url(path)) else None
    kind = sniff(path)
    if kind in ("mtx", "npy"):  # open_store says what an .npz is
        raise UsageError(f"{path}: {kind} is not read directly; make a store of it with `streamcut convert`")
    return kind if kind in ("svmlight", "vw", *TABLES, *MATRICES) else None


def _matches(path: str) -> bool:
    import glob

    return glob.has_magic(path) and any(glob.iglob(path, recursive=True))


def _other_numbers(recipe: Recipe | None, other: Recipe | None, where: str) -> Callable[[np.ndarray], np.ndarray] | None:
    """What turns labels of `other` into those of `recipe`, where both know words for them; None: they are the same.

    Raises BadInputError for rows that have no labels, and (when it is used) for words that `recipe` does not know.
    """
    if other is not None and other.labels.none:
        raise BadInputError(f"{where}: its rows have no labels; they can be scored, not measured")
    ours, theirs = ((recipe or PLAIN).labels.names, (other or PLAIN).labels.names)
    if not ours or not theirs or all(ours.get(number) == word for number, word in theirs.items()):
        return None
    numbers = {word: number for number, word in ours.items()}
    known, found = np.array(sorted(theirs)), [numbers.get(theirs[number], np.nan) for number in sorted(theirs)]

    def renamed(y: np.ndarray) -> np.ndarray:
        labels = np.array(found)[np.searchsorted(known, y)]
        if np.isnan(labels).any():
            word = theirs[float(y[np.argmax(np.isnan(labels))])]
            raise BadInputError(f"{where}: label {word!r} is none that the model knows: {', '.join(list(numbers)[:10])}")
        return labels

    return renamed


def _text_rows(path: str, recipe: Recipe, raw: Raw) -> Iterator[Chunk]:
    from streamcut.io.text.options import SvmlightOptions, by_recipe
    from streamcut.io.text.svmlight import SvmlightSource

    if raw.keep:
        raise UsageError(f"keep: {', '.join(raw.keep)}: svmlight text has no columns")
    if recipe.table is not None:
        raise BadInputError(
            f"{path}: svmlight text, but the model takes {recipe.in_words()}; give it a table, or say its --format"
        )
    if recipe.hash_bits is not None and raw.index_base is not None:
        raise UsageError("index_base: the model hashes the features as they are written, so their numbers have no first one")
    given = by_recipe(recipe) if raw.index_base is None else {**by_recipe(recipe), "index_base": raw.index_base}
    if recipe.hash_bits is None:
        given["dtype"] = "float64"  # the numbers as they are written; hashed sums are those of training to the bit
    options = SvmlightOptions(**given, no_labels=not raw.labelled, wide_index=True)
    rows = SvmlightSource([path], options, model_takes=recipe.in_words())
    for chunk, _ in FileStates(each.name for each in rows.inputs).watch(rows.blocks()):
        yield chunk


def _vw_rows(path: str, recipe: Recipe, raw: Raw) -> Iterator[Chunk]:
    from streamcut.io.text.vw import VwOptions, VwSource

    if recipe.form != "vw":
        raise BadInputError(f"{path}: Vowpal Wabbit's text, but the model takes {recipe.in_words()}")
    if raw.keep:
        raise UsageError(f"keep: {', '.join(raw.keep)}: Vowpal Wabbit's text has no columns")
    labels = "none" if not raw.labelled else "skip" if raw.missing_labels == "skip" else "read"
    rows = VwSource(find_files([path], "vw")[1], VwOptions(labels, dtype=recipe.dtype or "float32", recipe=recipe))
    for chunk, _ in FileStates(each.name for each in rows.inputs).watch(rows.blocks()):
        raw.count(rows.counters, path)
        yield chunk
    raw.count(rows.counters, path)


def _matrix_rows(path: str, kind: str, recipe: Recipe, raw: Raw) -> Iterator[Chunk]:
    """The rows of an AnnData file or a matrix of 10x: of the layer and with the labels that the recipe names."""
    from streamcut.io.sources.reading import matrix_rows

    if raw.keep:
        raise UsageError(f"keep: {', '.join(raw.keep)}: {kind} has no columns to keep")
    column = recipe.labels.column if raw.labelled else "none"
    if column is None or (raw.labelled and kind == "10x"):
        raise UsageError(f"{path}: nobody knows where the labels are; make a store of it with `streamcut convert --labels`")
    words = {word: number for number, word in recipe.labels.names.items()} if raw.labelled else {}
    rows = matrix_rows(path, kind, column, recipe.layer, words, raw.missing_labels, str(scratch_folder(None)))
    require_same(recipe, rows.recipe(), path)
    for chunk, _ in FileStates([path]).watch(rows.blocks()):
        yield chunk
    raw.counters.update(rows.counters)


def _table_rows(data: Any, kind: str, recipe: Recipe, raw: Raw) -> Iterator[Chunk]:
    from streamcut.io.tables.scoring import rows_to_score

    paths = [] if kind == "frame" else find_files([data], kind)[1]
    name = "the frame" if kind == "frame" else data
    if recipe.table is None:
        raise BadInputError(f"{name}: a table, but the model takes {recipe.in_words()}; convert it as the training data was")
    if raw.labelled and recipe.labels.none:
        raise UsageError("the model was trained on rows without labels")
    rows = rows_to_score(
        data if kind == "frame" else paths,
        kind,
        recipe,
        labelled=raw.labelled,
        missing_labels=raw.missing_labels,
        keep=raw.keep,
        kept=raw.kept,
    )
    states, count = FileStates(paths), 0
    for chunk, _ in states.watch(rows.blocks()):
        count += chunk.n_rows
        raw.count(rows.counters, name)
        yield chunk
    if not count:
        raise BadInputError(f"{name}: no rows")
    raw.count(rows.counters, name)
