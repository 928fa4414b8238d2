"""Tables of columns: CSV, TSV, lines of JSON, Parquet, Arrow, and frames in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamcut.errors import BadInputError, UsageError
from streamcut.io.formats.format import Format, Opened, Raw, loaded

if TYPE_CHECKING:
    from streamcut.foundation.chunk import Chunk
    from streamcut.io.conversion.options import ConvertOptions
    from streamcut.io.conversion.plan import ConvertPlan
    from streamcut.io.recipe.recipe import Recipe
    from streamcut.io.recipe.table import Spelling
    from streamcut.io.tables.files import TableFile
    from streamcut.io.tables.rows import RowMaker
    from streamcut.io.tables.source import TableRows

_FRAME = "the frame"
_SCORED_AT_ONCE = 4 << 20  # bytes of a file
_FEW = 1 << 14  # rows of a frame below which a second thread gains nothing
_TABLES = """tables: columns of numbers, categories, texts and times, with --label COLUMN (their roles are guessed
from their types, shown, and changed with --categorical, --numeric, --text, --time, --drop);
also Parquet with lists of feature numbers and of values"""
_OPTIONS = (
    "labels", "labels_as", "qid", "weights", "categorical", "numeric", "text", "time", "cross", "drop", "id", "ngrams",
    "header", "missing", "missing_labels", "max_categories", "recipe", "hash_bits", "standardise", "text_weights", "min_count",
    "stop_words",
)  # fmt: skip


@dataclass(frozen=True)
class TableFormat(Format):
    """Files that a class opens; `spelled`: with the spelling of their values."""

    help: str = _TABLES
    options: tuple[str, ...] = _OPTIONS
    remote: bool = True
    home: str = ""
    spelled: bool = False

    def file(self, data: Any, spelling: Spelling) -> TableFile:
        """A path, or a frame, as a table. Raises BadInputError and NotFoundError."""
        return loaded(f"tables.{self.home}")(data, *([spelling] if self.spelled else []))

    def open(self, paths: Sequence[Any], options: ConvertOptions, scratch: str) -> Opened:
        from streamcut.foundation.opened import readable
        from streamcut.io.tables.opening import OpenedTables

        with readable(paths[0] if isinstance(paths[0], str) else _FRAME):
            tables = OpenedTables([self.file(path, options.spelling) for path in paths], options)

        def source(plan: ConvertPlan) -> TableRows:
            return tables.rows(plan.block_bytes, plan.row_bytes // 8, plan.threads, plan.key_bytes)

        return Opened(tables.reading_bytes, source, tables.n_features, tables.told)

    def rows(self, data: Any, recipe: Recipe, raw: Raw) -> Iterator[Chunk]:
        """Columns named by `keep` go to `kept`, in batches. Raises BadInputError if one is missing or of another type."""
        from streamcut.io.formats.finding import find_files
        from streamcut.io.tables.source import Reading, TableRows

        paths = find_files([data], self.name)[1] if isinstance(data, str) else []
        where = data if isinstance(data, str) else _FRAME
        if recipe.table is None:
            raise BadInputError(f"{where}: a table, but the model takes {recipe.in_words()}; convert it as the training data was")
        if raw.labelled and recipe.labels.none:
            raise UsageError("the model was trained on rows without labels")
        files = [self.file(each, recipe.table.spelling) for each in paths or [data]]
        threads = 1 if len(files) == 1 and not paths and (files[0].n_rows or _FEW) < _FEW else 2
        maker, reading = _maker(recipe, raw), Reading(block_bytes=_SCORED_AT_ONCE, threads=threads)
        count = 0
        source = TableRows(files, maker, reading, same_columns=False, kept=raw.kept)
        for chunk in raw.watched(source, paths, where):
            count += chunk.n_rows
            yield chunk
        if not count:
            raise BadInputError(f"{where}: no rows")


def _maker(recipe: Recipe, raw: Raw) -> RowMaker:
    """The row encoder of `recipe`, reused if it was made before."""
    from streamcut.io.tables.rows import RowMaker

    how = (raw.labelled, raw.missing_labels, raw.keep)
    if how not in recipe.prepared:
        labels, missing_labels, keep = how
        recipe.prepared.clear()
        recipe.prepared[how] = RowMaker(recipe, dtype=recipe.dtype, labels=labels, missing_labels=missing_labels, keep=keep)
    return recipe.prepared[how]


CSV = TableFormat("csv", suffixes=(".csv",), home="text_files.CsvFile", spelled=True)
TSV = TableFormat("tsv", suffixes=(".tsv", ".tab"), home="text_files.TsvFile", spelled=True)
JSONL = TableFormat("jsonl", suffixes=(".jsonl", ".ndjson", ".json"), home="text_files.JsonFile")
PARQUET = TableFormat("parquet", suffixes=(".parquet",), heads=(b"PAR1",), home="files.ParquetTable")
ARROW = TableFormat(
    "arrow",
    suffixes=(".arrow", ".arrows", ".feather", ".ipc"),
    heads=(b"ARROW1", b"\xff\xff\xff\xff"),
    home="files.ArrowFile",
)
DOCUMENTS = TableFormat(
    "documents",
    help="a folder of texts, each a row; the folder that it lies in is its label",
    remote=False,
    home="documents.DocumentFiles",
)
FRAME = TableFormat("frame", help="", remote=False, home="frames.FrameFile")
