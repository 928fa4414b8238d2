"""Files that can be read from any row, each by its own reader: matrices, Parquet with lists, AnnData, stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from streamcut.errors import BadInputError, UsageError
from streamcut.foundation.files import scratch_folder
from streamcut.io.formats.format import Format, Opened, Raw, loaded

if TYPE_CHECKING:
    from streamcut.foundation.chunk import Chunk
    from streamcut.io.conversion.options import ConvertOptions
    from streamcut.io.conversion.plan import ConvertPlan
    from streamcut.io.recipe.recipe import Recipe
    from streamcut.io.sources.row_source import TableReader, TableSource

BLOCKS = 4  # size of a block of rows, in blocks of text
_SCORED_AT_ONCE, _LONGEST = 32 << 20, 1 << 30  # bytes, of rows to score
_KEPT = ("n_features", "duplicates", "keep_zeros")
_NAMED = ("labels", "qid", "weights")


class ReaderFormat(Format):
    """A family whose files have readers."""

    scored: ClassVar[bool] = False

    def readers(self, paths: Sequence[str], options: ConvertOptions, scratch: str) -> Sequence[TableReader]:
        """The readers of the files. Raises BadInputError and UsageError."""
        raise NotImplementedError

    def open(self, paths: Sequence[Any], options: ConvertOptions, scratch: str) -> Opened:
        from streamcut.io.sources.canonical import RowRules
        from streamcut.io.sources.labels import Labels
        from streamcut.io.sources.row_source import ENTRY_BYTES, BlockSize, TableSource

        readers = self.readers(paths, options, scratch)
        held = max((reader.held_bytes for reader in readers), default=0)
        rules = RowRules(options.dtype, options.duplicates, options.keep_zeros, options.n_features)
        mapped, skip = options.label_map is not None, options.missing_labels == "skip"
        labels = Labels(options.label_map or {}, learn=not mapped, in_files=True, mapped=mapped, skip=skip)

        def source(plan: ConvertPlan) -> TableSource:
            usual = BLOCKS * plan.block_bytes // ENTRY_BYTES
            size = BlockSize(usual, usual + plan.row_bytes // ENTRY_BYTES)
            return TableSource(list(paths), readers, rules, size, labels, grouped=not options.group_by_qid)

        widths = [reader.n_features for reader in readers if reader.n_features is not None]
        return Opened(lambda block, threads: held + BLOCKS * block, source, max(widths, default=None))

    def _rows_of(self, path: str, reader: Any, recipe: Recipe, raw: Raw) -> Iterator[Chunk]:
        from streamcut.io.recipe.comparison import require_same
        from streamcut.io.sources.canonical import RowRules
        from streamcut.io.sources.labels import Labels
        from streamcut.io.sources.row_source import ENTRY_BYTES, BlockSize, TableSource

        words = {word: number for number, word in recipe.labels.names.items()} if raw.labelled else {}
        size = BlockSize(_SCORED_AT_ONCE // ENTRY_BYTES, _LONGEST // ENTRY_BYTES)
        labels = Labels(words, learn=False, in_files=True, skip=raw.missing_labels == "skip")
        source = TableSource([path], [reader], RowRules(), size, labels)
        require_same(recipe, source.recipe(), path)
        for chunk in raw.watched(source, [path], path):
            if raw.keep or raw.named:
                first, stop = int(source.rows[0]), int(source.rows[-1]) + 1
                columns = reader.kept(slice(first, stop)).items()
                _keep(raw, {name: [values[row - first] for row in source.rows] for name, values in columns}, path)
            yield chunk


def _keep(raw: Raw, columns: dict[str, list], path: str) -> None:
    """Append columns of the rows read, if there are any. Raises BadInputError."""
    import pyarrow as pa

    try:
        if columns:
            raw.kept.append(pa.RecordBatch.from_pydict(columns))
    except pa.ArrowException as error:
        raise BadInputError(f"{path}: a column to keep has values of two types ({error})") from None


def _expect_labels(known: bool, path: str) -> None:
    if not known:
        raise UsageError(f"{path}: it is unknown where the labels are; make a store of it with `streamcut convert --label`")


# --- matrices, whose labels are in separate files -----------------------------------------------------------------------------


@dataclass(frozen=True)
class MatrixFormat(ReaderFormat):
    options: tuple[str, ...] = (*_NAMED, "feature_names", *_KEPT)
    labels: Literal["rows", "file", "column"] = "file"
    home: str = ""

    def readers(self, paths: Sequence[str], options: ConvertOptions, scratch: str) -> Sequence[TableReader]:
        from streamcut.io.sources.matrix_files import SideFiles

        side = SideFiles.of(str(options.labels) if options.labels_in_file(self.name) else None, options.qid, options.weights)
        reader: Callable[..., TableReader] = loaded(f"sources.{self.home}")
        readers: list[TableReader] = []
        rows = 0
        for path in paths:
            readers.append(reader(path, side, rows))
            rows += readers[-1].n_rows
        side.expect_end(rows)
        return readers


class TenXFormat(MatrixFormat):
    scored: ClassVar[bool] = True

    def rows(self, data: Any, recipe: Recipe, raw: Raw) -> Iterator[Chunk]:
        from streamcut.io.sources.cells import TenXReader
        from streamcut.io.sources.matrix_files import SideFiles

        raw.expect_no_columns("a 10x matrix has no columns except the barcodes, which a table of answers already has")
        _expect_labels(not raw.labelled, data)
        return self._rows_of(data, TenXReader(data, SideFiles(), 0), recipe, raw)


NPZ = MatrixFormat(
    "npz",
    "CSR, CSC or COO matrices of scipy.sparse.save_npz, with --label FILE",
    suffixes=(".npz",),
    heads=(b"PK\x03\x04",),
    home="matrix_files.NpzReader",
)
NPY = MatrixFormat(
    "npy",
    "dense matrices of numpy.save, with --label FILE",
    suffixes=(".npy",),
    heads=(b"\x93NUMPY",),
    home="matrix_files.NpyReader",
)
MTX = MatrixFormat(
    "mtx",
    "MatrixMarket, one row an example, with --label FILE",
    suffixes=(".mtx",),
    heads=(b"%%MatrixMarket",),
    home="matrix_files.MatrixMarketReader",
)
TENX = TenXFormat(
    "10x",
    "matrices of CellRanger (.h5), a barcode a row, with --label FILE or none",
    members=("*/barcodes",),
    home="cells.TenXReader",
)

# --- files that also hold labels ----------------------------------------------------------------------------------------------


class AnnDataFormat(ReaderFormat):
    scored: ClassVar[bool] = True

    def readers(self, paths: Sequence[str], options: ConvertOptions, scratch: str) -> Sequence[TableReader]:
        from streamcut.io.sources.cells import AnnDataReader

        columns = str(options.labels), options.qid, options.weights
        return [AnnDataReader(path, *columns, layer=options.layer, scratch=scratch) for path in paths]

    def rows(self, data: Any, recipe: Recipe, raw: Raw) -> Iterator[Chunk]:
        from streamcut.io.sources.cells import AnnDataReader

        column, scratch = recipe.labels.column if raw.labelled else "none", str(scratch_folder(None))
        _expect_labels(column is not None, data)
        named = bool(raw.keep) or raw.named
        reader = AnnDataReader(data, str(column), layer=recipe.layer, scratch=scratch, keep=raw.keep, named=named)
        return self._rows_of(data, reader, recipe, raw)


class ListsFormat(ReaderFormat):
    def readers(self, paths: Sequence[str], options: ConvertOptions, scratch: str) -> Sequence[TableReader]:
        from streamcut.io.sources.parquet_files import ParquetReader

        if options.index_base == "auto":
            raise UsageError("--index-base=auto is for svmlight input; say whether the lists count from 0 or from 1")
        labels, values, base = str(options.labels), options.value_column or None, int(options.index_base or 0)
        return [ParquetReader(path, labels, options.index_column, values, base, options.qid, options.weights) for path in paths]


class StoreFormat(ReaderFormat):
    def readers(self, paths: Sequence[str], options: ConvertOptions, scratch: str) -> Sequence[TableReader]:
        from streamcut.io.sources.other_stores import StoreReader

        return [StoreReader(path) for path in paths]


ANNDATA = AnnDataFormat(
    "anndata",
    ".h5ad or Zarr (csr, csc, dense), with --label COLUMN of obs; the names of var become those of the features;\n"
    "--layer raw is the matrix of raw",
    suffixes=(".h5ad",),
    heads=(b"\x89HDF\r\n\x1a\n",),
    members=("obs",),
    labels="column",
    options=(*_NAMED, "missing_labels", "layer", *_KEPT),
)
LISTS = ListsFormat(  # Parquet with a list of feature numbers in each row
    "lists",
    labels="column",
    options=(*_NAMED, "feature_names", "index_column", "value_column", "index_base", *_KEPT),
)
STORE = StoreFormat("streamcut", "stores, to shuffle, split, or store otherwise", members=("shards",), options=_KEPT)
