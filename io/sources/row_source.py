"""Where rows come from: what every source offers, and which source reads which file."""

from __future__ import annotations

import glob
import os
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from streamcut.chunk import Chunk
from streamcut.errors import BadInputError, MemoryBudgetError, NotFoundError, UsageError
from streamcut.io.recipe.comparison import difference
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.sources.canonical import LabelWords, RawRows, RowRules, canonical
from streamcut.io.sources.remote import remote_files
from streamcut.io.stores.spec import MANIFEST
from streamcut.io.text.groups import GroupCheck
from streamcut.io.text.inputs import expect_file, find_inputs
from streamcut.opened import IrregularFileError, opened_file, readable, regular
from streamcut.redaction import redacted
from streamcut.remote import is_url, read_object, size_of
from streamcut.units import format_bytes

ENTRY_BYTES = 96  # a raw entry, its checks and its canonical form, at the peak of `canonical`
FRAME = "frame"  # a table in memory, which is no format to ask for
TABLES = ("csv", "tsv", "jsonl", "parquet", "arrow", FRAME)
FORMATS = ("svmlight", *TABLES[:-1], "npz", "npy", "mtx", "anndata", "10x", "vw", "streamcut")
LISTS = "lists"  # Parquet with a list of feature numbers in each row, which is no format to ask for
_SUFFIXES = {".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".vw": "vw"}
_SUFFIXES |= {".parquet": "parquet", ".arrow": "arrow", ".arrows": "arrow", ".feather": "arrow", ".ipc": "arrow"}
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")


class RowSource(Protocol):
    """Rows of one or several inputs, in order.

    identity  what a resumed run must have in common with the first (JSON types); "inputs" lists [name, bytes, time of change]
    counters  what was unusual in the rows that `blocks` gave out so far
    """

    identity: dict

    @property
    def counters(self) -> Mapping[str, int]: ...

    def blocks(self, start: dict | None = None) -> Iterator[tuple[Chunk, dict]]:
        """Chunks of consecutive rows, each with the position where it began: `blocks(position)` starts there again.

        A chunk's arrays may be reused for the next one. A qid that comes back is noticed only when all is read
        from the beginning. Raises BadInputError naming the place.
        """

    def recipe(self) -> Recipe | None:
        """How the rows that `blocks` gave out became features, once it has given out all of them."""


class BlockSize(NamedTuple):
    """Entries in one piece: as a rule at most `usual`, and `most` for a single row that is longer."""

    usual: int
    most: int


class TableReader(Protocol):
    """One file of `n_rows` rows that can be read from any row on; `n_features` is None when only reading would tell.

    `held_bytes` is the memory that it takes besides the rows which it gives out.
    """

    @property
    def n_rows(self) -> int: ...

    @property
    def n_features(self) -> int | None: ...

    @property
    def held_bytes(self) -> int: ...

    def rows(self, start: int, size: BlockSize) -> Iterator[RawRows]:
        """Rows from number `start` on, in pieces that `row_ranges` cuts."""


class TableSource:
    """RowSource over TableReaders, one after the other. `paths` name them in messages; `grouped`: a qid may not come back.

    words   {word: number} that labels have to be of, if they are words; None: words get numbers as they come
    """

    def __init__(
        self,
        paths: list[str],
        readers: Sequence[TableReader],
        rules: RowRules,
        size: BlockSize,
        grouped: bool = True,
        words: Mapping[str, float] | None = None,
    ) -> None:
        widths = {reader.n_features for reader in readers if reader.n_features is not None}
        if len(widths) > 1 and rules.n_features is None:
            found = ", ".join(map(str, sorted(widths)))
            raise BadInputError(f"the inputs have {found} features; say how many there are with --n-features")
        self.paths, self.readers, self.rules, self.size, self.grouped = paths, readers, rules, size, grouped
        self.n_features = rules.n_features if rules.n_features is not None else next(iter(widths), None)
        self.identity = {"inputs": [describe(path) for path in paths]}
        self.counters: Counter[str] = Counter()
        self.total_rows = sum(reader.n_rows for reader in readers)
        self._recipe = self._common_recipe()
        self._words = LabelWords(words or {}, learn=words is None)

    def recipe(self) -> Recipe:
        """That of the inputs, and the labels that the rules gave to words."""
        learned = self.rules.label_map is None
        words = tuple((self._words.known if self.rules.label_map is None else self.rules.label_map).items())
        if not words:
            return self._recipe
        return replace(self._recipe, labels=replace(self._recipe.labels, words=words, learned=learned))

    def _common_recipe(self) -> Recipe:
        """Raises BadInputError for inputs of different recipes."""
        found = [getattr(reader, "recipe", None) or Recipe() for reader in self.readers]
        found = [replace(recipe, dtype=self.rules.dtype or recipe.dtype) for recipe in found]
        for path, other in zip(self.paths, found, strict=True):
            differs = difference(found[0], other)
            if differs is None and other.labels != found[0].labels and self.rules.label_map is None:
                differs = "their labels are other words or numbers"
            if differs is not None:
                raise BadInputError(f"{path}: prepared by another recipe than {self.paths[0]}: {differs}")
        return found[0]

    def blocks(self, start: dict | None = None) -> Iterator[tuple[Chunk, dict]]:
        """As RowSource says. Whether a qid comes back is known only of the rows from `start` on."""
        begin = start or {"file": 0, "row": 0, "given": 0, "counters": {}, "words": []}
        self.counters = Counter(begin["counters"])
        self._words.known.update(begin["words"])
        given = begin["given"]
        self._words.numbers = given > 0 and not begin["words"]
        has_qid, groups = None, GroupCheck()
        for number in range(begin["file"], len(self.readers)):
            row = begin["row"] if number == begin["file"] else 0
            for raw in self._raw_rows(number, row):
                counters, words = dict(self.counters), list(self._words.known.items())
                position = {"file": number, "row": row, "given": given, "counters": counters, "words": words}
                chunk = canonical(raw, self.rules, self.counters, self.paths[number], given, row, self._words)
                row += chunk.n_rows
                labelled = None
                if self.rules.missing_labels == "skip" and np.isnan(chunk.y).any():
                    labelled = np.flatnonzero(~np.isnan(chunk.y))
                    chunk = self._labelled(chunk, labelled)
                if chunk.n_rows == 0:
                    continue
                if has_qid not in (None, chunk.qid is not None):
                    raise BadInputError(
                        f"{self.paths[number]}: some inputs have a qid and others none; give all of them one, or none"
                    )
                has_qid = chunk.qid is not None
                if chunk.qid is not None and self.grouped:
                    check_groups(groups, chunk.qid, self.paths[number], position["row"], labelled)
                yield chunk, position
                given += chunk.n_rows

    def _raw_rows(self, number: int, row: int) -> Iterator[RawRows]:
        with readable(self.paths[number]):
            yield from self.readers[number].rows(row, self.size)

    def _labelled(self, chunk: Chunk, rows: np.ndarray) -> Chunk:
        """The rows that have a label."""
        self.counters["rows without label left out"] += chunk.n_rows - len(rows)
        from streamcut.io.conversion.shuffle import take_rows  # Numba, which others of this file do without

        return take_rows(chunk, rows)


def check_groups(groups: GroupCheck, qid: np.ndarray, path: str, row: int, kept: np.ndarray | None = None) -> None:
    """Raise BadInputError where a qid comes back. The rows are those of `path` from `row` on; `kept`: only these of them."""
    repeat = groups.first_repeat(qid)
    if repeat is not None:
        place = row + (repeat if kept is None else int(kept[repeat]))
        raise BadInputError(
            f"{path}: row {place} (0-based): qid {qid[repeat]} comes back after other rows; "
            f"the rows of a qid must stand together (--group-by-qid sorts them)"
        )


def row_ranges(indptr: np.ndarray, size: BlockSize, where: str, first_row: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows with at most `size.usual` entries each, or one longer row. Raises MemoryBudgetError beyond `size.most`."""
    start, n = 0, len(indptr) - 1
    while start < n:
        stop = int(np.searchsorted(indptr, indptr[start] + size.usual, side="right")) - 1
        if stop == start:
            stop = start + 1
            entries = int(indptr[stop] - indptr[start])
            if entries > size.most:
                needed, left = format_bytes(entries * ENTRY_BYTES), format_bytes(size.most * ENTRY_BYTES)
                raise MemoryBudgetError(
                    f"{where}: row {first_row + start} (0-based) has {entries:,} entries and needs {needed} in one piece, "
                    f"but --memory leaves {left} for it; raise --memory"
                )
        yield start, stop
        start = stop


def describe(path: str) -> list:
    """[name, bytes, time of change in ns] of a file or directory; nothing but the name is known of a URL."""
    if "://" in path:
        return [redacted(path), None, None]
    return [path, tree_bytes(path), os.stat(path).st_mtime_ns]


def tree_bytes(path: str | Path) -> int:
    """Bytes of a file, or of all files below a directory, links not followed."""
    if not os.path.isdir(path):
        return os.path.getsize(path)
    return sum(os.lstat(os.path.join(folder, name)).st_size for folder, _, names in os.walk(path) for name in names)


def sniff(path: str) -> str:
    """The format of `path` (one of FORMATS), from its content; a name that says otherwise is refused.

    Raises NotFoundError, and BadInputError when the content is none of the formats.
    """
    if path == "-":
        return "svmlight"
    if is_url(path):
        return _sniff_url(path)
    if not os.path.exists(path):
        raise NotFoundError(f"{path}: no such file or directory")
    if os.path.isdir(path):
        return _sniff_directory(path)
    try:
        with opened_file(path) as file:
            head = file.read(16)
    except IrregularFileError:  # what comes through a pipe or from a device is lost once it was looked at
        return _suffix_says(path) or "svmlight"
    except OSError as error:
        raise NotFoundError(f"{path}: {error.strerror}") from None
    found = _sniff_head(path, head)
    expected = {".npz": "npz", ".h5ad": "anndata", ".parquet": "parquet"}.get(Path(path).suffix.lower())
    if expected and found != expected:
        raise BadInputError(
            f"{path}: the name says {expected}, the content does not (it looks like {found}); say what it is with --format"
        )
    return found


def _sniff_url(url: str) -> str:
    """Raises NotFoundError for files that are read from disks only."""
    if found := _suffix_says(url):
        return found
    size = size_of(url)
    if size is None or size_of(f"{url.rstrip('/')}/{MANIFEST}") is not None:
        return "streamcut"  # or nothing at all: opening it will say
    if size == 0:
        return "svmlight"
    head = read_object(url, 16)
    if head.startswith((b"\x89HDF", b"\x93NUMPY", b"PK\x03\x04", b"%%MatrixMarket")):
        raise NotFoundError(f"{url}: a file of this kind is read from a disk only; copy it there")
    return _sniff_head(url, head)


def _sniff_head(path: str, head: bytes) -> str:
    if head.startswith(b"\x89HDF\r\n\x1a\n"):
        from streamcut.io.sources.self_contained import opened_hdf5

        with readable(path):
            file = opened_hdf5(path)
            members = set(file)
            return "10x" if any("barcodes" in group for _, group in file.groups()) else _sniff_groups(path, members)
    if head.startswith(b"\x93NUMPY"):
        return "npy"
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow"
    if head.startswith(b"PK\x03\x04"):
        with readable(path), zipfile.ZipFile(regular(path)) as archive:
            zarr = any(name.endswith(("zarr.json", ".zgroup")) for name in archive.namelist())
        return "streamcut" if zarr else "npz"
    if head.startswith(b"%%MatrixMarket") or path.lower().endswith((".mtx", ".mtx.gz", ".mtx.bz2")):
        return "mtx"
    found = _suffix_says(path)
    return found if found in ("csv", "tsv", "jsonl", "vw") else "svmlight"


def _suffix_says(path: str) -> str | None:
    """The format of a table that a name claims, also of a compressed one."""
    name = path.lower()
    stem, suffix = os.path.splitext(name)
    return _SUFFIXES.get(os.path.splitext(stem)[1] if suffix in _COMPRESSED else suffix)


def _sniff_directory(path: str) -> str:
    """A Zarr group is a store or an AnnData; any other directory holds text files."""
    if os.path.lexists(os.path.join(path, MANIFEST)):
        return "streamcut"
    if not any(os.path.exists(os.path.join(path, name)) for name in ("zarr.json", ".zgroup")):
        return "svmlight"
    return _sniff_groups(path, {name for name in os.listdir(path) if not name.startswith(".") and name != "zarr.json"})


def _sniff_groups(path: str, members: set[str]) -> str:
    if {"X", "obs"} <= members:
        return "anndata"
    if "shards" in members:
        return "streamcut"  # damaged or unfinished: opening it will say
    raise NotFoundError(
        f"{path}: neither a streamcut store nor an AnnData file nor a matrix of 10x "
        f"(it holds {', '.join(sorted(members)[:10]) or 'nothing'})"
    )


def find_files(inputs: Sequence[str], wanted: str) -> tuple[str, list[str]]:
    """(format, paths) of `inputs`: stores and AnnData directories as they are, other directories and globs as their files.

    `wanted` other than "auto" decides the format. Raises NotFoundError, and UsageError for a mixture of formats or a file that is
    named twice.
    """
    names = [name for given in inputs for name in _glob(given)]
    paths: list[str] = []
    for name in names:
        if "://" in name:
            paths += remote_files(name)
            continue
        whole = os.path.isdir(name) and _sniff_directory(name) != "svmlight"
        paths += [name] if whole else _files_of(name)
    twice = [path for path, count in Counter(map(os.path.realpath, paths)).items() if count > 1]
    if twice:
        raise UsageError(f"{twice[0]}: named twice; each input is read once")
    if not paths:
        raise UsageError("no input; name files, directories, globs, stores, or - for standard input")
    if wanted != "auto":
        return wanted, paths
    found = {path: sniff(path) for path in paths}
    if len(set(found.values())) > 1:
        listing = ", ".join(f"{path} ({kind})" for path, kind in list(found.items())[:6])
        raise UsageError(f"the inputs are of different formats: {listing}; convert them one format at a time, or give --format")
    return found[paths[0]], paths


def _files_of(name: str) -> list[str]:
    """The files that `name` stands for; of a folder of tables without those that writers leave beside them (`_SUCCESS`).

    Raises UsageError for folders that hold a column in their names (`year=2024`), which would be lost.
    """
    found = [given.name for given in find_inputs([name])]
    if not os.path.isdir(name) or not any(_suffix_says(path) for path in found):
        return found
    for path in found:
        folders = os.path.relpath(path, name).split(os.sep)[:-1]
        if held := next((folder for folder in folders if "=" in folder), None):
            raise UsageError(
                f"{path}: folders such as {held} hold a column in their names, which is not read; write it into the files"
            )
    return [path for path in found if not os.path.basename(path).startswith("_")]


def _glob(name: str) -> list[str]:
    """What a glob matches; a name that exists, or matches nothing, stays as it is."""
    if os.path.lexists(name) or "://" in name or not glob.has_magic(name):
        return [name]
    found = sorted(glob.glob(name, recursive=True)) or [name]
    return [each if os.path.isdir(each) else expect_file(each, name) for each in found]
