"""Tables of columns: CSV, TSV, lines of JSON, Parquet, Arrow, and frames in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from streamcut.errors import BadInputError, UsageError
from streamcut.io.formats.by_readers import LISTS
from streamcut.io.formats.format import Conversion, Format, Raw, at

if TYPE_CHECKING:
    from streamcut.foundation.chunk import Chunk
    from streamcut.io.conversion.options import ConvertOptions
    from streamcut.io.recipe.recipe import Recipe
    from streamcut.io.tables.files import TableFile
    from streamcut.io.tables.rows import RowMaker
    from streamcut.io.tables.source import TableRows

_FRAME = "the frame"
_SCORED_AT_ONCE = 4 << 20  # bytes of a file
_FEW = 1 << 14  # rows of a frame below which a second thread gains nothing


def _parquet_or_lists(paths: Sequence[str], options: ConvertOptions) -> str:
    from streamcut.io.tables.opening import holds_lists

    return LISTS.name if holds_lists(paths[0], options.index_column) else "parquet"


def _source(given: Conversion) -> TableRows:
    plan, (tables,) = given.plan, given.readers
    grouped = not given.options.group_by_qid
    return tables.rows(plan.block_bytes, plan.row_bytes // 8, plan.threads, grouped=grouped, room=plan.key_bytes)


def _table(
    name: str, opened: Callable[..., TableFile], *, asked: bool = True, remote: bool = True, text: str = "", **more: Any
) -> Format:
    """The format of files that `opened` opens lazily, CSV with a Spelling. It raises BadInputError and NotFoundError."""

    table = opened if name in ("csv", "tsv") else lambda path, *_: opened(path)

    def readers(paths: Sequence[Any], options: ConvertOptions, scratch: str) -> Sequence[Any]:
        """One opened table for all files."""
        from streamcut.foundation.opened import readable
        from streamcut.io.tables.opening import OpenedTables

        with readable(paths[0] if isinstance(paths[0], str) else _FRAME):
            return [OpenedTables([table(path, options.spelling) for path in paths], options)]

    def score(data: Any, recipe: Recipe, raw: Raw) -> Iterator[Chunk]:
        """Columns named by `keep` go to `kept`, in batches. Raises BadInputError if one is missing or of another type."""
        from streamcut.io.formats.finding import find_files
        from streamcut.io.tables.source import Reading, TableRows
        from streamcut.io.unchanged import FileStates

        paths = find_files([data], name)[1] if isinstance(data, str) else []
        where = data if isinstance(data, str) else _FRAME
        if recipe.table is None:
            raise BadInputError(f"{where}: a table, but the model takes {recipe.in_words()}; convert it as the training data was")
        if raw.labelled and recipe.labels.none:
            raise UsageError("the model was trained on rows without labels")
        files = [table(each, recipe.table.spelling) for each in paths or [data]]
        threads = 1 if len(files) == 1 and not paths and (files[0].n_rows or _FEW) < _FEW else 2
        maker, reading = _maker(recipe, raw), Reading(block_bytes=_SCORED_AT_ONCE, threads=threads)
        rows = TableRows(files, maker, reading, same_columns=False, kept=raw.kept)
        count = 0
        for chunk, _ in FileStates(paths).watch(rows.blocks()):
            count += chunk.n_rows
            raw.count(rows.counters, where)
            yield chunk
        if not count:
            raise BadInputError(f"{where}: no rows")
        raw.count(rows.counters, where)

    return Format(
        name,
        help=text
        or "tables: columns of numbers, categories, texts and times, with --label COLUMN (their roles are guessed\n"
        "from their types, shown, and changed with --categorical, --numeric, --text, --time, --drop);\n"
        "also Parquet with lists of feature numbers and of values",
        readers=readers,
        memory=lambda readers, block_bytes, threads: readers[0].reading_bytes(block_bytes, threads),
        source=_source,
        score=score,
        options=(
            "labels", "labels_as", "qid", "weights", "categorical", "numeric", "text", "time", "cross", "drop", "id", "ngrams",
            "header", "missing", "missing_labels", "max_categories", "recipe", "hash_bits", "standardise", "text_weights",
            "min_count", "stop_words",
        ),
        asked=asked,
        remote=asked and remote,
        learns=True,
        table=table,
        **more,
    )  # fmt: skip


def _maker(recipe: Recipe, raw: Raw) -> RowMaker:
    """The row encoder of `recipe`, reused if it was made before."""
    from streamcut.io.tables.rows import RowMaker

    how = (raw.labelled, raw.missing_labels, raw.keep)
    if how not in recipe.prepared:
        labels, missing_labels, keep = how
        recipe.prepared.clear()
        recipe.prepared[how] = RowMaker(recipe, dtype=recipe.dtype, labels=labels, missing_labels=missing_labels, keep=keep)
    return recipe.prepared[how]


_CSV = at("tables.text_files.CsvFile")
CSV = _table("csv", lambda path, *spelling: _CSV(path, None, *spelling), suffixes=(".csv",))
TSV = _table("tsv", lambda path, *spelling: _CSV(path, "\t", *spelling), suffixes=(".tsv", ".tab"))
JSONL = _table("jsonl", at("tables.json_files.JsonFile"), suffixes=(".jsonl", ".ndjson", ".json"))
PARQUET = _table("parquet", at("tables.files.ParquetTable"), suffixes=(".parquet",), heads=(b"PAR1",), variant=_parquet_or_lists)
ARROW = _table(
    "arrow",
    at("tables.files.ArrowFile"),
    suffixes=(".arrow", ".arrows", ".feather", ".ipc"),
    heads=(b"ARROW1", b"\xff\xff\xff\xff"),
)
DOCUMENTS = _table(
    "documents",
    at("tables.documents.DocumentFiles"),
    remote=False,
    text="a folder of texts, each a row; the folder that it lies in is its label",
)
FRAME = _table("frame", at("tables.frames.FrameFile"), asked=False)
