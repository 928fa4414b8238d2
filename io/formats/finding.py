"""The input files and their format: detected by content, and by name where the content is not decisive."""

from __future__ import annotations

import glob
import os
import stat
import sys
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TypeVar

from streamcut.errors import BadInputError, NotFoundError, UsageError
from streamcut.foundation.opened import IrregularFileError, opened_file, readable, regular
from streamcut.io.formats.registry import ANNDATA, DOCUMENTS, FORMATS, LISTS, MTX, NPZ, PARQUET, STORE, SVMLIGHT, Format
from streamcut.io.remote import is_url, path_in, read_object, size_of
from streamcut.io.stores.spec import MANIFEST
from streamcut.io.text.inputs import STDIN, expect_once, inputs_of, matches

_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_SPREADSHEET = "a spreadsheet; save it as CSV"
_FOREIGN = {  # by the name of a file: what it is, and what to do
    (".xlsx", ".xlsm", ".xls", ".ods"): _SPREADSHEET,
    (".pkl", ".pickle", ".joblib"): "a pickle; save what it holds as Parquet, or give it to streamcut.convert in Python",
    (".dta", ".sav", ".sas7bdat", ".xpt", ".rds", ".rdata"): "a file of a statistics program; save it as CSV or Parquet",
    (".db", ".sqlite", ".sqlite3", ".duckdb", ".mdb"): "a database; write the table to CSV or Parquet",
    (".avro", ".orc"): "a format that is not read; save it as Parquet",
    (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst", ".7z", ".rar"): "an archive; unpack it, and give its files",
}
_ANY = "*/"  # before a name inside any one of the groups
T = TypeVar("T")


def claim(path: str) -> Format | None:
    """The format that a name claims, compressed or not."""
    stem, suffix = os.path.splitext(path_in(path).lower())
    ending = os.path.splitext(stem)[1] if suffix in _COMPRESSED else suffix
    return next((form for form in FORMATS.values() if ending in form.suffixes), None)


def _expect_native(path: str) -> None:
    """Raise BadInputError for a name of a well-known format that is none of FORMATS."""
    for endings, what in _FOREIGN.items():
        if path_in(path).lower().endswith(endings):
            raise BadInputError(f"{path}: {what}")


def sniff(path: str) -> str:
    """The format of `path` (one of FORMATS), from its content; a name that contradicts it is refused.

    Raises NotFoundError, and BadInputError when name or content say that it is none of the formats.
    """
    if path == "-":
        return SVMLIGHT.name
    if is_url(path):
        return _sniff_url(path)
    if not os.path.exists(path):
        raise NotFoundError(f"{path}: no such file or directory")
    if os.path.isdir(path):
        return _sniff_directory(path)
    _expect_native(path)
    claimed = claim(path)
    try:
        with opened_file(path) as file:
            head = file.read(16)
    except IrregularFileError:  # bytes from a pipe or a device would be lost by peeking
        return (claimed or SVMLIGHT).name
    except OSError as error:
        raise NotFoundError(f"{path}: {error.strerror}") from None
    kind = _sniff_head(path, head)
    if claimed is not None and claimed.heads and claimed is not MTX and kind != claimed.name:
        raise BadInputError(
            f"{path}: the name says {claimed.name}, the content does not (it looks like {kind}); say what it is with --format"
        )
    return kind


def is_raw(path: str) -> bool:
    """Whether `path` holds rows that are not in a store: text, a table, or a folder or glob of them.

    False for a possibly damaged store, since opening it will tell, and for files whose labels are elsewhere (matrices, AnnData).
    """
    if path == "-":
        return True
    if is_url(path):
        return _claims_rows(path)
    if os.path.isdir(path):
        if any(os.path.lexists(os.path.join(path, name)) for name in (MANIFEST, "zarr.json", ".zgroup")):
            return False
        return _sniff_directory(path) != SVMLIGHT.name or any(map(_claims_rows, inputs_of(path)))
    if not os.path.exists(path):
        return glob.has_magic(path) and any(glob.iglob(path, recursive=True))
    _expect_native(path)
    if claim(path) is not None:
        return _claims_rows(path)
    try:
        with opened_file(path) as file:
            head = file.read(1 << 10)
    except OSError:
        return False
    return bool(head.strip()) and not any(byte < 9 for byte in head)


def _claims_rows(path: str) -> bool:
    """Whether a name is that of text or a table, or of an AnnData file, which holds its labels."""
    claimed = claim(path)
    return claimed is not None and (claimed.remote or (claimed is ANNDATA and not is_url(path)))


def _sniff_url(url: str) -> str:
    """The format of `url`. Raises NotFoundError for files that can only be read from disks."""
    claimed = claim(url)
    if claimed is not None and claimed.remote:
        return claimed.name
    _expect_native(url)
    size = size_of(url)
    if size is None or (path_in(url) == url and size_of(f"{url.rstrip('/')}/{MANIFEST}") is not None):
        return STORE.name  # or nothing: opening it will tell
    if size == 0:
        return SVMLIGHT.name
    head = read_object(url, 16)
    local = [form for form in FORMATS.values() if not form.remote]
    if claimed in local or any(head.startswith(form.heads) for form in local):
        raise NotFoundError(f"{url}: a file of this kind is read from a disk only; copy it there")
    return _sniff_head(url, head)


def _sniff_head(path: str, head: bytes) -> str:
    if head.startswith(ANNDATA.heads):
        from streamcut.io.sources.cells import is_group, opened_hdf5

        with readable(path):
            file = opened_hdf5(path)
            groups = [file[name] for name in file if is_group(file[name])]
            return _of_members(path, {*file, *(_ANY + name for group in groups for name in group)})
    if head.startswith(NPZ.heads):
        with readable(path), zipfile.ZipFile(regular(path)) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/")]
        if MANIFEST not in names and not all(name.endswith(".npy") for name in names):
            zarr = any(name.endswith(("zarr.json", ".zgroup")) for name in names)
            what = "a zipped Zarr group" if zarr else f"a zip archive ({', '.join(names[:3])}{', …' * (len(names) > 3)})"
            what = _SPREADSHEET if "xl/workbook.xml" in names else f"{what}; unzip it, and give what was in it"
            raise BadInputError(f"{path}: {what}")
        return (STORE if MANIFEST in names else NPZ).name
    for name, form in FORMATS.items():
        if head.startswith(form.heads):
            return name
    claimed = claim(path)
    return claimed.name if claimed is not None and (claimed is MTX or not claimed.heads) else SVMLIGHT.name


def _sniff_directory(path: str) -> str:
    """A Zarr group is a store or AnnData; "documents" is a folder that looks like one; any other holds text files, whose formats
    are detected one by one: "svmlight"."""
    if os.path.lexists(os.path.join(path, MANIFEST)):
        return STORE.name
    if any(os.path.exists(os.path.join(path, name)) for name in ("zarr.json", ".zgroup")):
        return _of_members(path, {name for name in os.listdir(path) if not name.startswith(".") and name != "zarr.json"})
    from streamcut.io.tables.frames import holds_documents

    try:
        files = inputs_of(path)
    except NotFoundError:  # the reader will report it
        return SVMLIGHT.name
    plain = all(claim(name) is None and not name.endswith(_COMPRESSED) for name in files)
    return DOCUMENTS.name if plain and holds_documents(files, path) else SVMLIGHT.name


def _of_members(path: str, members: set[str]) -> str:
    """The format of an HDF5 or Zarr group, also of a damaged or unfinished store: opening it will tell."""
    for name, form in FORMATS.items():
        if form.members and members.issuperset(form.members):
            return name
    held = sorted(name for name in members if not name.startswith(_ANY))
    raise NotFoundError(
        f"{path}: neither a streamcut store nor an AnnData file nor a matrix of 10x "
        f"(it holds {', '.join(held[:10]) or 'nothing'})"
    )


def find_files(inputs: Sequence[str], wanted: str) -> tuple[str, list[str]]:
    """(format, paths) of `inputs`: stores and AnnData directories unchanged, other directories and globs as their files.

    `wanted` other than "auto" decides the format. Raises NotFoundError, and UsageError for a mixture of formats or a file that is
    named twice.
    """
    paths: list[str] = []
    folders: dict[str, str] = {}
    for name in (match for path in inputs for match in matches(path)):
        kind = SVMLIGHT.name
        if os.path.isdir(name):
            kind = wanted if wanted == DOCUMENTS.name else _sniff_directory(name)
        if kind != SVMLIGHT.name:
            paths.append(name)
            folders[name] = kind
        else:
            paths += _files_of(name)
    expect_once(paths)
    if not paths:
        raise UsageError("no input; name files, directories, globs, stores, or - for standard input")
    if wanted != "auto":
        return wanted, paths
    kinds = {path: folders.get(path) or sniff(path) for path in paths}
    if len(set(kinds.values())) > 1:
        listing = ", ".join(f"{path} ({kind})" for path, kind in list(kinds.items())[:6])
        raise UsageError(f"the inputs are of different formats: {listing}; convert them one format at a time, or give --format")
    return kinds[paths[0]], paths


def with_lists(kind: str, paths: Sequence[str], index_column: str) -> str:
    """`kind`, or the format of Parquet files whose `index_column` holds lists of feature numbers."""
    if kind != PARQUET.name:
        return kind
    import pyarrow as pa

    from streamcut.io.tables.files import ParquetTable

    schema = ParquetTable(paths[0]).schema()
    column = schema.field(index_column).type if index_column in schema.names else pa.null()
    return LISTS.name if pa.types.is_list(column) or pa.types.is_large_list(column) else kind


def _files_of(name: str) -> list[str]:
    """The files that `name` stands for; in folders of tables, without marker files of writers (`_SUCCESS`).

    Raises UsageError for folders whose names hold a column (`year=2024`), which would be lost.
    """
    files = inputs_of(name)
    if not os.path.isdir(name) or not any((claimed := claim(path)) and claimed.remote for path in files):
        return files
    for path in files:
        folders = os.path.relpath(path, name).split(os.sep)[:-1]
        if held := next((folder for folder in folders if "=" in folder), None):
            raise UsageError(
                f"{path}: folders such as {held} hold a column in their names, which is not read; write it into the files"
            )
    return [path for path in files if not os.path.basename(path).startswith("_")]


class ChangedInputError(BadInputError):
    """An input has changed since reading began: nothing made of it can be used."""


class FileStates:
    """The sizes and modification times of the files `paths`, and of all files below directories among them.

    Pipes, devices and URLs are left out: they are read once and cannot be compared.
    """

    def __init__(self, paths: Iterable[str | os.PathLike]) -> None:
        self._paths = [os.fspath(path) for path in paths]
        self._before = self._now()

    def _now(self) -> dict[str, tuple[int, int]]:
        states = {}
        for path in self._paths:
            for name in [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names] or [path]:
                with suppress(OSError, ValueError, AttributeError):  # it does not exist; standard input is closed, or no file
                    state = os.fstat(sys.stdin.fileno()) if path == STDIN else os.stat(name)
                    if stat.S_ISREG(state.st_mode):
                        states[name] = (state.st_size, state.st_mtime_ns)
        return states

    def watch(self, blocks: Iterator[T]) -> Iterator[T]:
        """`blocks`, which are read from these files. At their end, and before the error that ends them early (a file cut short
        looks like a malformed one), raises ChangedInputError, naming the file, unless all files are as they were."""
        failure = None
        try:
            yield from blocks
        except Exception as error:
            failure = error
        now = self._now()
        for name in sorted({*self._before, *now}):
            if self._before.get(name) != now.get(name):
                raise ChangedInputError(f"{name}: changed while it was read; convert it again once nothing writes to it")
        if failure is not None:
            raise failure
