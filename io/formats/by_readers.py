"""Files that can be read from any row, each by its own reader: matrices, Parquet with lists, AnnData, stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from streamcut.errors import BadInputError, UsageError
from streamcut.foundation.files import scratch_folder
from streamcut.io.formats.format import Conversion, Format, Raw, at

if TYPE_CHECKING:
    from streamcut.foundation.chunk import Chunk
    from streamcut.io.conversion.options import ConvertOptions
    from streamcut.io.recipe.recipe import Recipe
    from streamcut.io.sources.row_source import TableReader, TableSource

BLOCKS = 4  # size of a block of rows, in blocks of text
_SCORED_AT_ONCE, _LONGEST = 32 << 20, 1 << 30  # bytes, of rows to score
_KEPT = ("n_features", "duplicates", "keep_zeros")
_NAMED = ("labels", "qid", "weights")


def _memory(readers: Sequence[Any], block_bytes: int, threads: int) -> int:
    return max((reader.held_bytes for reader in readers), default=0) + BLOCKS * block_bytes


def _source(given: Conversion) -> TableSource:
    from streamcut.io.sources.canonical import RowRules
    from streamcut.io.sources.row_source import ENTRY_BYTES, BlockSize, TableSource

    options, plan = given.options, given.plan
    kept = options.dtype, options.duplicates, options.keep_zeros, options.label_map, options.n_features
    usual = BLOCKS * plan.block_bytes // ENTRY_BYTES
    size = BlockSize(usual, usual + plan.row_bytes // ENTRY_BYTES)
    rules = RowRules(*kept, options.missing_labels)
    return TableSource(list(given.paths), given.readers, rules, size, grouped=not options.group_by_qid)


def _scored(path: str, name: str, recipe: Recipe, raw: Raw, reader: Callable[[str], TableReader]) -> Iterator[Chunk]:
    """The rows of a file with labels of its own: of the layer and with the labels that the recipe names."""
    from streamcut.io.recipe.comparison import require_same
    from streamcut.io.sources.canonical import RowRules
    from streamcut.io.sources.row_source import ENTRY_BYTES, BlockSize, TableSource
    from streamcut.io.unchanged import FileStates

    if name == TENX.name:
        raw.expect_no_columns("a 10x matrix has no columns except the barcodes, which a table of answers already has")
    column = recipe.labels.column if raw.labelled else "none"
    if column is None or (raw.labelled and name == TENX.name):
        raise UsageError(f"{path}: it is unknown where the labels are; make a store of it with `streamcut convert --label`")
    words = {word: number for number, word in recipe.labels.names.items()} if raw.labelled else {}
    rules, size = RowRules(missing_labels=raw.missing_labels), BlockSize(_SCORED_AT_ONCE // ENTRY_BYTES, _LONGEST // ENTRY_BYTES)
    cells: Any = reader(column)
    rows = TableSource([path], [cells], rules, size, words=words)
    require_same(recipe, rows.recipe(), path)
    for chunk, _ in FileStates([path]).watch(rows.blocks()):
        if raw.keep or raw.named:
            _keep(raw, cells.kept(slice(chunk.first_row, chunk.first_row + chunk.n_rows)), path)
        yield chunk
    raw.counters.update(+rows.counters)


def _keep(raw: Raw, columns: dict[str, list], path: str) -> None:
    """Append columns of the rows read, if there are any. Raises BadInputError."""
    import pyarrow as pa

    try:
        if columns:
            raw.kept.append(pa.RecordBatch.from_pydict(columns))
    except pa.ArrowException as error:
        raise BadInputError(f"{path}: a column to keep has values of two types ({error})") from None


def _by_readers(name: str, readers: Callable[..., Sequence[Any]], help: str, **more: Any) -> Format:  # noqa: A002
    return Format(name, readers, _memory, _source, help=help, **more)


# --- matrices, whose labels are in separate files -----------------------------------------------------------------------------


def _matrix(name: str, help: str, reader: Callable[..., TableReader], **more: Any) -> Format:  # noqa: A002
    """`reader` takes (path, side files, number of rows in the files before it)."""

    def readers(paths: Sequence[str], options: ConvertOptions, scratch: str) -> Sequence[TableReader]:
        from streamcut.io.sources.columns import ColumnFile
        from streamcut.io.sources.scipy_files import SideFiles

        qid = None if options.qid is None else ColumnFile(options.qid, "--qid")
        weight = None if options.weights is None else ColumnFile(options.weights, "--weights")
        labels = ColumnFile(str(options.labels), "--label") if options.labels_in_file(name) else None
        side = SideFiles(labels, qid, weight)
        found: list[TableReader] = []
        rows = 0
        for path in paths:
            found.append(reader(path, side, rows))
            rows += found[-1].n_rows
        side.expect_end(rows)
        return found

    return _by_readers(name, readers, help, labels="file", options=(*_NAMED, "feature_names", *_KEPT), **more)


def _score_tenx(path: Any, recipe: Recipe, raw: Raw) -> Iterator[Chunk]:
    from streamcut.io.sources.scipy_files import SideFiles
    from streamcut.io.sources.tenx_files import TenXReader

    return _scored(path, TENX.name, recipe, raw, lambda column: TenXReader(path, SideFiles(None), 0))


NPZ = _matrix(
    "npz",
    "CSR, CSC or COO matrices of scipy.sparse.save_npz, with --label FILE",
    at("sources.scipy_files.NpzReader"),
    suffixes=(".npz",),
    heads=(b"PK\x03\x04",),
)
NPY = _matrix(
    "npy",
    "dense matrices of numpy.save, with --label FILE",
    at("sources.scipy_files.NpyReader"),
    suffixes=(".npy",),
    heads=(b"\x93NUMPY",),
)
MTX = _matrix(
    "mtx",
    "MatrixMarket, one row an example, with --label FILE",
    at("sources.scipy_files.MatrixMarketReader"),
    suffixes=(".mtx",),
    heads=(b"%%MatrixMarket",),
    named=True,
)
TENX = _matrix(
    "10x",
    "matrices of CellRanger (.h5), a barcode a row, with --label FILE or none",
    at("sources.tenx_files.TenXReader"),
    members=("*/barcodes",),
    score=_score_tenx,
)

# --- files that also hold labels ----------------------------------------------------------------------------------------------


_ANNDATA_READER = at("sources.anndata_files.AnnDataReader")


def _anndata(paths: Sequence[str], options: ConvertOptions, scratch: str) -> Sequence[Any]:
    columns = str(options.labels), options.qid, options.weights
    return [_ANNDATA_READER(path, *columns, layer=options.layer, scratch=scratch) for path in paths]


def _score_anndata(path: Any, recipe: Recipe, raw: Raw) -> Iterator[Chunk]:
    more = {"layer": recipe.layer, "scratch": str(scratch_folder(None)), "keep": raw.keep, "named": bool(raw.keep) or raw.named}
    reader = partial(_ANNDATA_READER, path, **more)
    return _scored(path, ANNDATA.name, recipe, raw, reader)


def _lists(paths: Sequence[str], options: ConvertOptions, scratch: str) -> Sequence[Any]:
    from streamcut.io.sources.parquet_files import ParquetReader

    if options.index_base == "auto":
        raise UsageError("--index-base=auto is for svmlight input; say whether the lists count from 0 or from 1")
    labels, values, base = str(options.labels), options.value_column or None, int(options.index_base or 0)
    return [ParquetReader(path, labels, options.index_column, values, base, options.qid, options.weights) for path in paths]


ANNDATA = _by_readers(
    "anndata",
    _anndata,
    ".h5ad or Zarr (csr, csc, dense), with --label COLUMN of obs; the names of var become those of the features;\n"
    "--layer raw is the matrix of raw",
    suffixes=(".h5ad",),
    heads=(b"\x89HDF\r\n\x1a\n",),
    members=("obs",),
    labels="column",
    options=(*_NAMED, "missing_labels", "layer", *_KEPT),
    score=_score_anndata,
)
LISTS = _by_readers(
    "lists",
    _lists,
    "",
    asked=False,  # Parquet with a list of feature numbers in each row
    labels="column",
    options=(*_NAMED, "feature_names", "index_column", "value_column", "index_base", *_KEPT),
)
_STORE_READER = at("sources.other_stores.StoreReader")
STORE = _by_readers(
    "streamcut",
    lambda paths, options, scratch: [_STORE_READER(path) for path in paths],
    "stores, to shuffle, split, or store otherwise",
    members=("shards",),
    options=_KEPT,
)
