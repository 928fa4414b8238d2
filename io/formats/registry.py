"""What a format of input is, and all formats in the order in which they are listed."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from streamcut.errors import BadInputError, UsageError
from streamcut.io.recipe.table import MISSING_LABELS, UNFIT
from streamcut.options.option import option

if TYPE_CHECKING:
    import pyarrow as pa

    from streamcut.foundation.chunk import Chunk
    from streamcut.io.conversion.options import ConvertOptions
    from streamcut.io.recipe.recipe import Recipe
    from streamcut.io.sources.lazy import Frame
    from streamcut.io.sources.source import Source

FRAME_NAME = "the frame"  # in messages


@dataclass
class Raw:
    """How raw input is read, and what was noticed on the way.

    index_base      None: as in the recipe, else 1
    labelled        labels are read; otherwise they are ignored and may be missing
    named           also read the names of the rows, if any: barcodes of cells
    keep            columns of a table to return with the rows, in `kept`: batches of Arrow, in row order
    counters        {what was unusual: how often}, such as values of a column that training did not see
    """

    index_base: int | None = option(
        None,
        "Number of the first feature in svmlight text.  [default: what it was in the training data, else 1]",
        choices=(None, 0, 1),
    )
    labelled: bool = True
    named: bool = False
    missing_labels: str = option("error", "Tables: rows without a label are an error, or left out.", choices=MISSING_LABELS)
    format: str = option("auto", "Format of DATA, if it is no store; auto: found from its name and content.", flag="format")
    keep: tuple[str, ...] = option((), "Tables, cells: columns of DATA to write with the answers.", metavar="A,B", kind="names")
    strict: bool = option(False, "Refuse rows with values that do not fit the model's recipe, instead of counting them.")
    counters: Counter[str] = field(default_factory=Counter)
    kept: deque[pa.RecordBatch] = field(default_factory=deque)

    @property
    def unseen(self) -> dict[str, int]:
        """The counters of rows that did not fit the model's recipe."""
        return {what: count for what, count in self.counters.items() if what.startswith(UNFIT)}

    def count(self, counters: Mapping[str, int], where: str) -> None:
        """Add the counters of input so far. With `strict`, raises BadInputError for what does not fit."""
        self.counters = +Counter(counters)
        for what, count in self.unseen.items() if self.strict else ():
            raise BadInputError(f"{where}: {what}: {count:,}; without --strict (strict=False) such rows are scored all the same")

    def expect_no_columns(self, what: str) -> None:
        """Raise UsageError if columns are requested from input that has none."""
        if self.keep:
            raise UsageError(f"keep: {', '.join(self.keep)}: {what}")


@dataclass(frozen=True)
class Format:
    """One format of input.

    name      in --format
    source    the class of its source in streamcut.io, "module.Name"; `reader`: that of its files, if the source reads several
    help      its text in `streamcut convert --help`; formats with the same help are listed together; "": never given by name
    suffixes  of names that claim it, before that of a compression
    heads     magic bytes; for a format that has some, the content decides, and a contradicting name is refused
    members   names in an HDF5 or Zarr group with such rows, */name inside any of its groups
    options   of `convert` that apply to it, in addition to those of every format
    labels    where its labels are: in the rows, in a separate "file", in a "column" that must be named
    remote    it may be behind a URL
    scored    `predict` and `evaluate` read it; otherwise it needs a store first
    """

    name: str
    source: str
    reader: str = ""
    help: str = ""
    suffixes: tuple[str, ...] = ()
    heads: tuple[bytes, ...] = ()
    members: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    labels: Literal["rows", "file", "column"] = "rows"
    remote: bool = False
    scored: bool = False

    @property
    def is_table(self) -> bool:
        """Whether its rows are columns with names."""
        return self.source == _TABLES

    def reader_class(self) -> Any:
        """The class of its files, imported now."""
        return _loaded(self.reader)

    def open(self, paths: Sequence[str | Frame], options: ConvertOptions, scratch: str) -> Source:
        """The files, or the frame, of a conversion. Raises UsageError for options that exclude each other."""
        return _loaded(self.source).open(self, paths, options, scratch)

    def rows(self, data: str | Frame, recipe: Recipe, raw: Raw) -> Iterator[Chunk]:
        """The rows of a path or a frame for a model of this recipe. Raises BadInputError and UsageError."""
        from streamcut.io.formats.finding import FileStates, find_files

        files = find_files([data], self.name)[1] if isinstance(data, str) else [data]
        source = _loaded(self.source).scoring(self, files, recipe, raw)
        where, rows = data if isinstance(data, str) else FRAME_NAME, 0
        for chunk, _ in FileStates(source.paths).watch(source.blocks()):
            raw.count(source.counters, where)
            rows += chunk.n_rows
            yield chunk
        raw.count(source.counters, where)
        if not rows:
            raise BadInputError(f"{where}: no rows")


def _loaded(home: str) -> Any:
    """The class at `home`, "module.Name" in streamcut.io."""
    module, _, name = home.rpartition(".")
    return getattr(import_module(f"streamcut.io.{module}"), name)


_TABLES, _MATRICES = "tables.source.TableSource", "sources.matrices.MatrixSource"
_TABLE_HELP = """tables: columns of numbers, categories, texts and times, with --label COLUMN (their roles are guessed
from their types, shown, and changed with --categorical, --numeric, --text, --time, --drop);
also Parquet with lists of feature numbers and of values"""
_TABLE_OPTIONS = (
    "labels", "labels_as", "qid", "weights", "categorical", "numeric", "text", "time", "cross", "drop", "id", "ngrams",
    "header", "missing", "missing_labels", "max_categories", "recipe", "hash_bits", "standardise", "text_weights", "min_count",
    "stop_words",
)  # fmt: skip
_KEPT = ("n_features", "duplicates", "keep_zeros")
_NAMED = ("labels", "qid", "weights")


def _table(name: str, reader: str, suffixes: tuple[str, ...] = (), said: str = _TABLE_HELP, **more: Any) -> Format:
    more = {"remote": True, **more}
    return Format(name, _TABLES, f"tables.{reader}", said, suffixes, options=_TABLE_OPTIONS, scored=True, **more)


def _matrix(name: str, reader: str, said: str, suffixes: tuple[str, ...] = (), **more: Any) -> Format:
    more = {"options": (*_NAMED, "feature_names", *_KEPT), "labels": "file", **more}
    return Format(name, _MATRICES, f"sources.{reader}", said, suffixes, **more)


SVMLIGHT = Format(
    "svmlight",
    "text.svmlight.SvmlightSource",
    help="text, also compressed with gzip, bzip2, xz or zstd",
    options=(
        "feature_names", "recipe", "n_features", "duplicates", "wide_index", "max_line_bytes", "keep_zeros", "index_base",
        "hash_bits", "multilabel", "label_weights", "on_error", "max_errors",
    ),
    remote=True,
    scored=True,
)  # fmt: skip
CSV = _table("csv", "text_files.CsvFile", (".csv",))
TSV = _table("tsv", "text_files.TsvFile", (".tsv", ".tab"))
JSONL = _table("jsonl", "text_files.JsonFile", (".jsonl", ".ndjson", ".json"))
PARQUET = _table("parquet", "files.ParquetTable", (".parquet",), heads=(b"PAR1",))
_ARROW = b"ARROW1", b"\xff\xff\xff\xff"
ARROW = _table("arrow", "files.ArrowFile", (".arrow", ".arrows", ".feather", ".ipc"), heads=_ARROW)
_DOCUMENTS = "a folder of texts, each a row; the folder that it lies in is its label"
DOCUMENTS = _table("documents", "frames.DocumentFiles", (), _DOCUMENTS, remote=False)
FRAME = _table("frame", "frames.FrameFile", (), "", remote=False)
NPZ = _matrix(
    "npz",
    "matrix_files.NpzFile",
    "CSR, CSC or COO matrices of scipy.sparse.save_npz, with --label FILE",
    (".npz",),
    heads=(b"PK\x03\x04",),
)
NPY = _matrix("npy", "matrix_files.NpyFile", "dense matrices of numpy.save, with --label FILE", (".npy",), heads=(b"\x93NUMPY",))
MTX = _matrix(
    "mtx",
    "matrix_files.MtxFile",
    "MatrixMarket, one row an example, with --label FILE",
    (".mtx",),
    heads=(b"%%MatrixMarket",),
)
ANNDATA = _matrix(
    "anndata",
    "cells.AnnDataFile",
    ".h5ad or Zarr (csr, csc, dense), with --label COLUMN of obs; the names of var become those of the features;\n"
    "--layer raw is the matrix of raw",
    (".h5ad",),
    heads=(b"\x89HDF\r\n\x1a\n",),
    members=("obs",),
    labels="column",
    options=(*_NAMED, "missing_labels", "layer", *_KEPT),
    scored=True,
)
LISTS = _matrix(  # Parquet with a list of feature numbers in each row
    "lists",
    "matrix_files.ListsFile",
    "",
    labels="column",
    options=(*_NAMED, "feature_names", "index_column", "value_column", "index_base", *_KEPT),
)
TENX = _matrix(
    "10x",
    "cells.TenXFile",
    "matrices of CellRanger (.h5), a barcode a row, with --label FILE or none",
    members=("*/barcodes",),
    scored=True,
)
VW = Format(
    "vw",
    "text.vw.VwSource",
    help="Vowpal Wabbit's text (.vw, or --format=vw): single labels, importances, namespaces; --hash-bits, or a dictionary",
    suffixes=(".vw",),
    options=("labels", "missing_labels", "max_categories", "recipe", "hash_bits"),
    remote=True,
    scored=True,
)
STORE = _matrix(
    "streamcut",
    "matrix_files.StoreFile",
    "stores, to shuffle, split, or store otherwise",
    members=("shards",),
    labels="rows",
    options=_KEPT,
)
_LISTED = (SVMLIGHT, CSV, TSV, JSONL, PARQUET, ARROW, DOCUMENTS, FRAME, NPZ, NPY, MTX, ANNDATA, LISTS, TENX, VW, STORE)
FORMATS: dict[str, Format] = {form.name: form for form in _LISTED}
ASKED = tuple(name for name, form in FORMATS.items() if form.help)
SCORED = tuple(name for name in ASKED if FORMATS[name].scored)  # what `predict` and `evaluate` read without a store


def kinds_with(option: str) -> tuple[str, ...]:
    """The formats that have an option of `convert`; () if all have it."""
    return tuple(name for name, form in FORMATS.items() if option in form.options)


def listing() -> str:
    """The formats with their descriptions, for help texts."""
    together: dict[str, list[str]] = {}
    for name in ASKED:
        together.setdefault(FORMATS[name].help, []).append(name)
    lines = []
    for text, names in together.items():
        first, *others = text.split("\n")
        head = ", ".join(names)
        lines += [f"  {head:<10} {first}"] if len(names) == 1 else [f"  {head}", f"{'':13}{first}"]
        lines += [f"{'':13}{other}" for other in others]
    return "\n".join(lines)
