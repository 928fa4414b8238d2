"""The source that suits the inputs and the options, and the memory that it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.conversion.plan import ConvertPlan
from streamcut.io.sources.canonical import RowRules
from streamcut.io.sources.columns import ColumnFile
from streamcut.io.sources.row_source import ENTRY_BYTES, LISTS, TABLES, BlockSize, RowSource, TableReader, TableSource
from streamcut.io.tables.dictionary import KeyRoom
from streamcut.io.text.options import by_recipe
from streamcut.io.text.svmlight import LONGEST_LINE, Reject, SvmlightOptions, SvmlightSource, blocks_in_flight
from streamcut.opened import readable

# Of lines as short as lines can be ("1\n"): the text, the arrays that the parser fills, and the rows that leave it.
TEXT_BYTES = 42
LINE_BYTES = 16  # of one long line, whose entries take four bytes of text at the least
TABLE_BLOCKS = 4  # a block of a table in units of a block of text


def open_readers(kind: str, paths: Sequence[Any], options: ConvertOptions, scratch: str) -> Sequence[Any]:
    """Readers of the files of every kind but text, which stream by themselves; [] for those. Tables have one for all files.

    Frames stand in the place of their paths. `scratch`: folder for scratch files.
    """
    if kind in ("svmlight", "vw"):
        return []
    if kind in TABLES:
        from streamcut.io.tables.opening import open_tables

        with readable(paths[0] if isinstance(paths[0], str) else "the frame"):
            found = open_tables(paths, kind, options)
            found.rehearse()
        return [found]
    if kind == "streamcut":
        from streamcut.io.sources.other_stores import StoreReader

        return [StoreReader(path) for path in paths]
    if kind == "anndata":
        from streamcut.io.sources.anndata_files import AnnDataReader

        columns = str(options.labels), options.qid, options.weights
        return [AnnDataReader(path, *columns, layer=options.layer, scratch=scratch) for path in paths]
    if kind == LISTS:
        from streamcut.io.sources.parquet_files import ParquetReader

        labels, values, base = str(options.labels), options.value_column or None, int(options.index_base or 0)
        return [ParquetReader(path, labels, options.index_column, values, base, options.qid, options.weights) for path in paths]
    return _matrix_readers(kind, paths, options, scratch)


def holds_lists(paths: Sequence[str], options: ConvertOptions) -> bool:
    """Whether Parquet files hold lists of feature numbers instead of columns."""
    from streamcut.io.tables.opening import holds_lists as of_file

    return of_file(paths[0], options.index_column)


def _matrix_readers(kind: str, paths: Sequence[str], options: ConvertOptions, scratch: str) -> Sequence[TableReader]:
    """Readers of matrices whose labels lie in files of their own, over the rows of all matrices."""
    from streamcut.io.sources.scipy_files import MatrixMarketReader, NpyReader, NpzReader, SideFiles

    def reader(path: str, rows: int) -> Any:
        if kind == "10x":
            from streamcut.io.sources.tenx_files import TenXReader

            return TenXReader(path, side, rows)
        if kind == "npz":
            return NpzReader(path, side, rows, scratch)
        return (NpyReader if kind == "npy" else MatrixMarketReader)(path, side, rows)

    qid = None if options.qid is None else ColumnFile(options.qid, "--qid")
    weight = None if options.weights is None else ColumnFile(options.weights, "--weights")
    labels = ColumnFile(str(options.labels), "--labels") if options.labels_in_file(kind) else None
    side = SideFiles(labels, qid, weight)
    readers: list[TableReader] = []
    rows = 0
    for path in paths:
        readers.append(reader(path, rows))
        rows += readers[-1].n_rows
    side.expect_end(rows)
    return readers


def source_bytes(kind: str, readers: Sequence[Any], block_bytes: int, threads: int) -> int:
    """Memory that reading takes with blocks of `block_bytes`, apart from rows that are longer than a block."""
    if kind == "svmlight":
        return blocks_in_flight(threads) * block_bytes * TEXT_BYTES
    if kind == "vw":
        from streamcut.io.text.vw import BYTES

        return block_bytes * BYTES
    if kind in TABLES:
        return readers[0].reading_bytes(block_bytes, threads)
    return max((reader.held_bytes for reader in readers), default=0) + TABLE_BLOCKS * block_bytes


def open_source(
    kind: str,
    paths: Sequence[str],
    readers: Sequence[Any],
    options: ConvertOptions,
    plan: ConvertPlan,
    on_reject: Callable[[Reject], None],
    planned: Callable[[int], ConvertPlan],
) -> RowSource:
    """The rows of `paths`, in blocks that fit the plan; `planned` gives that of another limit. Raises what the sources raise."""
    if kind == "svmlight":
        return SvmlightSource(
            list(paths),
            svmlight_options(options),
            threads=plan.threads,
            block_bytes=plan.block_bytes,
            max_line_bytes=options.max_line_bytes or LONGEST_LINE,
            held_line=_held_line(plan),
            memory_for=partial(_memory_for, plan.limit, planned),
            on_reject=on_reject,
            recipe=options.recipe,
        )
    room = KeyRoom(plan.key_bytes, plan.limit, partial(_memory_for_keys, plan.limit, planned))
    if kind == "vw":
        from streamcut.io.text.vw import BYTES, VwOptions, VwSource

        labels = "none" if options.labels == "none" else "skip" if options.missing_labels == "skip" else "read"
        dtype = options.dtype or (None if options.recipe is None else options.recipe.dtype) or "float32"
        how = VwOptions(labels, options.hash_bits, options.max_categories, dtype, options.keep_zeros, options.recipe)
        return VwSource(list(paths), how, plan.block_bytes, plan.block_bytes + plan.row_bytes // BYTES, room)
    if kind in TABLES:
        return readers[0].rows(plan.block_bytes, plan.row_bytes // 8, plan.threads, grouped=not options.group_by_qid, room=room)
    kept = options.dtype, options.duplicates, options.keep_zeros, options.label_map, options.n_features
    rules = RowRules(*kept, options.missing_labels)
    usual = TABLE_BLOCKS * plan.block_bytes // ENTRY_BYTES
    size = BlockSize(usual, usual + plan.row_bytes // ENTRY_BYTES)
    return TableSource(list(paths), readers, rules, size, grouped=not options.group_by_qid)


def _held_line(plan: ConvertPlan) -> int:
    """Bytes of the longest line of text that the plan leaves memory for."""
    return max(plan.block_bytes, plan.row_bytes // (LINE_BYTES * blocks_in_flight(plan.threads)))


def _memory_for(limit: int, planned: Callable[[int], ConvertPlan], size: int) -> int:
    """A limit above `limit`, by 5 % more than need be, that leaves memory for a line of `size` bytes."""
    while _held_line(planned(limit)) < size:
        limit += limit // 20
    return limit


def _memory_for_keys(limit: int, planned: Callable[[int], ConvertPlan], size: int) -> int:
    """A limit above `limit`, by 2 % more than need be, that leaves memory for a dictionary of `size` bytes."""
    while planned(limit).key_bytes < size:
        limit += limit // 50
    return limit


def svmlight_options(options: ConvertOptions) -> SvmlightOptions:
    if options.recipe is not None:
        return SvmlightOptions(
            **by_recipe(options.recipe),
            n_features=options.n_features,
            wide_index=options.wide_index,
            keep_zeros=options.keep_zeros,
            on_error=options.on_error,
            max_errors=1000 if options.max_errors is None else options.max_errors,
            group_by_qid=options.group_by_qid,
        )
    base = 1 if options.index_base is None else options.index_base
    return SvmlightOptions(
        index_base=None if base == "auto" else int(base),
        n_features=options.n_features,
        wide_index=options.wide_index,
        hash_bits=options.hash_bits,
        dtype=options.dtype or "float32",
        duplicates=options.duplicates,
        label_map=options.label_map,
        multilabel=options.multilabel,
        label_weights=options.label_weights,
        keep_zeros=options.keep_zeros,
        on_error=options.on_error,
        max_errors=1000 if options.max_errors is None else options.max_errors,
        group_by_qid=options.group_by_qid,
    )
