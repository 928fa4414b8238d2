"""The source of rows in files that can be read from any row: matrices, Parquet with lists, AnnData, 10x, stores."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

from streamcut.errors import BadInputError, UsageError
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.files import scratch_folder
from streamcut.foundation.opened import readable
from streamcut.io.recipe.recipe import Recipe, difference, require_same
from streamcut.io.sources.canonical import RawRows, RowRules, canonical
from streamcut.io.sources.labels import Labels
from streamcut.io.sources.matrix_files import ColumnFile
from streamcut.io.sources.source import GroupCheck, Sizes, describe, expect_short

if TYPE_CHECKING:
    import pyarrow as pa

    from streamcut.io.conversion.options import ConvertOptions
    from streamcut.io.formats.registry import Format, Raw


class MatrixFile(Protocol):
    """A file of a matrix, made of its path, the options and a folder for scratch files.

    n_features   None: only reading tells
    held_bytes   memory in addition to its rows
    """

    @property
    def n_rows(self) -> int: ...

    @property
    def n_features(self) -> int | None: ...

    @property
    def held_bytes(self) -> int: ...

    @property
    def recipe(self) -> Recipe: ...

    def rows(self, start: int) -> Iterator[RawRows]:
        """The rows from number `start` on, without labels where these are in another file."""


class MatrixSource:
    """Source over matrices, one after another, each read from any row on. `grouped`: a qid may not recur; `side`: values of rows
    in other files.

    kept   receives what the files keep of the rows, as batches of Arrow
    """

    notes = rejects = ()
    rereads = False

    def __init__(
        self,
        paths: Sequence[str],
        files: Sequence[MatrixFile],
        rules: RowRules,
        labels: Labels,
        *,
        grouped: bool = True,
        side: Sequence[ColumnFile | None] = (),
        kept: deque[pa.RecordBatch] | None = None,
    ) -> None:
        widths = {file.n_features for file in files if file.n_features is not None}
        if len(widths) > 1 and rules.n_features is None:
            counts = ", ".join(map(str, sorted(widths)))
            raise BadInputError(f"the inputs have {counts} features; say how many there are with --n-features")
        self.paths, self.files, self.rules, self.labels = paths, files, rules, labels
        self._grouped, self._side, self._kept = grouped, side, kept
        self._row_bytes: int | None = None  # rows that are scored may have any length
        self.n_features = rules.n_features if rules.n_features is not None else next(iter(widths), None)
        self.held_bytes = max((file.held_bytes for file in files), default=0)
        self.identity = {"inputs": [describe(path) for path in paths]}
        self.counters: Counter[str] = Counter()
        self.total_rows = sum(file.n_rows for file in files)
        for column in filter(None, side):
            column.expect(self.total_rows, ", ".join(paths))
        self._recipe = self._common_recipe()

    @classmethod
    def open(cls, form: Format, paths: Sequence[str], options: ConvertOptions, scratch: str) -> Self:
        files = [form.reader_class()(path, options, scratch) for path in paths]
        side: Sequence[ColumnFile | None] = ()
        if form.labels == "file":
            named = str(options.labels) if options.labels_in_file(form.name) else None
            side_paths = {"--label": named, "--qid": options.qid, "--weights": options.weights}
            side = [None if path is None else ColumnFile(path, what) for what, path in side_paths.items()]
        rules = RowRules(options.dtype, options.duplicates, options.keep_zeros, options.n_features)
        mapped, skip = options.label_map is not None, options.missing_labels == "skip"
        labels = Labels(options.label_map or {}, learn=not mapped, in_files=True, mapped=mapped, skip=skip)
        return cls(paths, files, rules, labels, grouped=not options.group_by_qid, side=side)

    @classmethod
    def scoring(cls, form: Format, paths: Sequence[str], recipe: Recipe, raw: Raw) -> Self:
        from streamcut.io.conversion.options import ConvertOptions

        column = recipe.labels.column if raw.labelled else "none"
        if column is None or (raw.labelled and form.labels == "file"):
            raise UsageError(
                f"{paths[0]}: it is unknown where the labels are; make a store of it with `streamcut convert --label`"
            )
        if form.labels == "file":
            raw.expect_no_columns("a 10x matrix has no columns except the barcodes, which a table of answers already has")
        options = ConvertOptions(labels=column, layer=recipe.layer)
        scratch, keep = str(scratch_folder(None)), {"keep": raw.keep, "named": raw.named}
        files = [form.reader_class()(path, options, scratch, **keep) for path in paths]
        words = {word: number for number, word in recipe.labels.names.items()} if raw.labelled else {}
        labels = Labels(words, learn=False, in_files=True, skip=raw.missing_labels == "skip")
        source = cls(paths, files, RowRules(), labels, kept=raw.kept if raw.keep or raw.named else None)
        require_same(recipe, source.recipe(), paths[0])
        return source

    def begin(self, sizes: Sizes) -> None:
        """Blocks have AT_ONCE entries, whatever the sizes; a single longer row is a block."""
        self._row_bytes = sizes.row

    def recipe(self) -> Recipe:
        """The recipe of the inputs, with the numbers of label words."""
        words = tuple(self.labels.words.items())
        if not words:
            return self._recipe
        return replace(self._recipe, labels=replace(self._recipe.labels, words=words, learned=not self.labels.mapped))

    def _common_recipe(self) -> Recipe:
        """Raises BadInputError for inputs of different recipes."""
        recipes = [replace(file.recipe, dtype=self.rules.dtype or file.recipe.dtype) for file in self.files]
        for path, other in zip(self.paths, recipes, strict=True):
            differs = difference(recipes[0], other)
            if differs is None and other.labels != recipes[0].labels and not self.labels.mapped:
                differs = "their labels are other words or numbers"
            if differs is not None:
                raise BadInputError(f"{path}: prepared by another recipe than {self.paths[0]}: {differs}")
        return recipes[0]

    def blocks(self, start: dict | None = None) -> Generator[tuple[Chunk, dict]]:
        """As in Source. A recurring qid is noticed only among the rows from `start` on."""
        begin = start or {"file": 0, "row": 0, "given": 0, "counters": {}, "words": []}
        self.counters = Counter(begin["counters"])
        self.labels.words.update(begin["words"])
        first_row = begin["given"]
        self.labels.numbers = (first_row > 0 and not begin["words"]) or None
        has_qid, groups = None, GroupCheck()
        for number, row, raw in self._raw_rows(begin["file"], begin["row"]):
            path, words = self.paths[number], list(self.labels.words.items())
            position = {"file": number, "row": row, "given": first_row, "counters": dict(self.counters), "words": words}
            chunk = canonical(raw, self.rules, self.counters, path, first_row, row, self.labels)
            rows = np.arange(chunk.n_rows)
            if self.labels.skip and np.isnan(chunk.y).any():
                rows = np.flatnonzero(~np.isnan(chunk.y))
                self.counters["rows without label left out"] += chunk.n_rows - len(rows)
                from streamcut.io.rows import take_rows  # Numba, not needed elsewhere in this file

                chunk = take_rows(chunk, rows)
            if chunk.n_rows == 0:
                continue
            if has_qid not in (None, chunk.qid is not None):
                raise BadInputError(f"{path}: some inputs have a qid and others do not; give one to all of them, or to none")
            has_qid = chunk.qid is not None
            if chunk.qid is not None and self._grouped:
                groups.expect_new(chunk.qid, path, row + rows)
            if self._kept is not None:
                self._keep(number, row, rows)
            yield chunk, position
            first_row += chunk.n_rows

    def _raw_rows(self, file: int, row: int) -> Iterator[tuple[int, int, RawRows]]:
        """(number of the file, number of the first row in it, rows), with labels, from a row of a file on."""
        before = sum(matrix.n_rows for matrix in self.files[:file])
        for number in range(file, len(self.files)):
            with readable(self.paths[number]):
                for whole in self.files[number].rows(row):
                    for raw in whole.pieces():
                        expect_short(len(raw.indices), self._row_bytes, f"{self.paths[number]}: row {row} (0-based)")
                        if self._side:
                            here = slice(before + row, before + row + raw.n_rows)
                            columns = (None if column is None else column.values[here] for column in self._side)
                            raw = RawRows(raw.indptr, raw.indices, raw.values, *columns)
                        yield number, row, raw
                        row += raw.n_rows
            before, row = before + self.files[number].n_rows, 0

    def _keep(self, number: int, row: int, rows: np.ndarray) -> None:
        """Append what is kept of these of the rows from `row` on. Raises BadInputError."""
        import pyarrow as pa

        from streamcut.io.sources.cells import AnnDataFile, TenXFile

        file = self.files[number]
        assert self._kept is not None
        assert isinstance(file, AnnDataFile | TenXFile)
        kept = file.kept(slice(row, row + int(rows[-1]) + 1))
        try:
            if kept:
                columns = {name: [values[k] for k in rows.tolist()] for name, values in kept.items()}
                self._kept.append(pa.RecordBatch.from_pydict(columns))
        except pa.ArrowException as error:
            raise BadInputError(f"{self.paths[number]}: a column to keep has values of two types ({error})") from None
