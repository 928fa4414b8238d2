"""Writing a store so that a crash at any moment loses at most the shards in flight; files.py says what lies where, and when.

Files hold no times, and shards end where the rows alone say, so a conversion that was killed and resumed gives the same bytes as
an uninterrupted one.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from importlib import import_module

import numpy as np

import streamcut
from streamcut.errors import BadInputError, CorruptError, LockedError, UsageError
from streamcut.foundation.chunk import Chunk, concatenate, copied
from streamcut.foundation.files import disk_full, failpoint
from streamcut.io.dataset import shard_cuts
from streamcut.io.features import FeatureTally
from streamcut.io.manifest import (
    Manifest,
    ShardInfo,
    Statistics,
    StatisticsBuilder,
    canonical_json,
    fingerprint,
    manifest_bytes,
    shard_files,
    shard_from_record,
    shard_record,
)
from streamcut.io.opening import store_of
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.remote import is_url
from streamcut.io.stores import zarr_layout
from streamcut.io.stores.files import discard, entries, entry, expect_free, files_of, remove
from streamcut.io.stores.spec import (
    FEATURES,
    FORMAT_VERSION,
    JOURNAL,
    MANIFEST,
    MOST_FEATURES,
    RECIPE,
    SCRATCH,
    SHARD_NNZ,
    shard_rows,
)
from streamcut.io.stores.structure import INT32_MAX, first_problem
from streamcut.io.stores.zarr_layout import MAX_BYTES

log = logging.getLogger(__name__)

_ANY = Statistics(n_features=2**63 - 1, max_row_nnz=2**63 - 1, max_abs_value=np.inf)  # of shards that are not a store yet
_LAYOUTS = {"zarr": "zarr_layout", "hdf5": "hdf5_store"}  # the modules that write shards
_UPLOADS = 64 << 20  # bytes of objects on their way, and their copies


def writer_bytes(shard_nnz: int, threads: int, remote: bool = False) -> int:
    """Most bytes that a StoreWriter holds, unless a single row or group is larger than a shard.

    threads + 1 shards of rows (int32 indices, float64 values, four columns of 8 bytes), and for each thread the compressed
    values of a shard, twice, because the compressor's result is copied; for a URL (`remote`) also the uploads in flight.
    """
    rows = shard_nnz * (4 + 8) + shard_rows(shard_nnz) * 4 * 8
    return (threads + 1) * rows + threads * shard_nnz * 2 * 8 + (_UPLOADS if remote else 0)


class StoreWriter:
    """Writes rows, block by block, into the store `path`. A context manager: left before `finish`, it keeps what can be resumed.

    path        of the store: on a disk, or a URL of an object store
    backend     "zarr" or "hdf5" (disks only)
    shard_nnz   entries of a shard (see `shard_cuts` for the rule)
    n_features  number of features; None: the largest index seen
    options     JSON identity of the whole conversion: resuming with other options is refused
    resume      continue an unfinished store if there is one; without `resume` it is removed
    force       replace an existing store; it is removed when the first shard is sound
    features    keep statistics per feature if there are at most this many (32 bytes each while writing; 0: never)
    threads     background threads that encode and write shards; memory is `writer_bytes(shard_nnz, threads)`

    Entering raises UsageError (the store exists, or options differ), LockedError, NotFoundError (the directory is not writable),
    DiskFullError. Afterwards `n_rows` counts the rows that an earlier run has stored, and `position` is that of the block which
    holds the first row after them (None: nothing is stored): append the rows from there on, with `seen` set to the number of
    rows before them. Of rows that are appended, those that are stored already are left out.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        *,
        backend: str = "zarr",
        shard_nnz: int = SHARD_NNZ,
        n_features: int | None = None,
        options: dict,
        resume: bool = False,
        force: bool = False,
        features: int = MOST_FEATURES,
        threads: int = 2,
    ) -> None:
        if backend == "hdf5" and is_url(path):
            raise UsageError(f"backend: HDF5 files are written to disks only, not to {path}; take zarr")
        self.path = os.fspath(path)
        self.n_rows = self.seen = self._stored = 0
        self.position: dict | None = None
        self._files, self._layout = files_of(path), import_module(f"streamcut.io.stores.{_LAYOUTS[backend]}")
        self._backend, self._shard_nnz, self._n_features = backend, shard_nnz, n_features
        form = {"backend": backend, "shard_nnz": shard_nnz, "n_features": n_features, "format_version": FORMAT_VERSION}
        self._options = {**options, **form, "streamcut": streamcut.__version__}
        self._first_entry = canonical_json({"options": self._options, "run": uuid.uuid4().hex})
        self._resume, self._force, self._threads = resume, force, threads
        self._statistics = StatisticsBuilder()
        self._tally = FeatureTally(0 if n_features is not None and n_features > features else features)
        self._shards: list[ShardInfo] = []
        self._kept = {entry(0)}  # the names of files of an earlier run to go on from
        self._pending: list[Chunk] = []
        self._entries = 0  # of them
        self._least = 0  # size of pending rows, all of one group, below which its end is not looked for
        self._blocks: deque[tuple[int, dict]] = deque()  # first row and position of blocks with rows that are not handed out
        self._in_flight: deque[tuple[Future[ShardInfo], dict]] = deque()  # shards being written, and where to read on after them
        self._begun = False
        self._cut = 0  # rows handed out in shards
        self._columns: tuple[bool, bool] | None = None
        self._stack = ExitStack()

    def __enter__(self) -> StoreWriter:
        with ExitStack() as stack:
            expect_free(self.path, self._force)
            stack.enter_context(self._files.locked())
            expect_free(self.path, self._force)  # another writer may have finished between the first check and the lock
            names = self._files.names()
            remove(self._files, {name for name in names if name.startswith(f"{SCRATCH}/")})
            if self._resume and MANIFEST not in names:
                self._go_on(entries(self._files))
            self._pool = ThreadPoolExecutor(self._threads, "streamcut-write")
            stack.callback(self._pool.shutdown, cancel_futures=True)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def abandon(self, rows_too: bool = False) -> None:
        """Leave; remove the store unless it is finished, or has rows to go on from and not `rows_too`."""
        self._stack.close()
        if rows_too or self._files.get(entry(1)) is None:
            discard(self.path)

    def append(self, chunk: Chunk, position: dict) -> None:
        """Add the rows of `chunk`, copied, unless they are stored; `position` (JSON types) says where their block begins.

        Raises BadInputError for rows of this or an earlier block that break the format (order of indices, nan, a feature ≥
        n_features), DiskFullError.
        """
        columns = (chunk.qid is not None, chunk.weight is not None)
        if self._columns not in (None, columns):
            raise BadInputError("some blocks of rows have qid or weight and others do not")
        self._columns = columns
        stored = min(max(0, self._stored - self.seen), chunk.n_rows)
        self.seen += chunk.n_rows
        if stored == chunk.n_rows:
            return
        chunk = chunk.rows(stored, chunk.n_rows)
        self._blocks.append((self.n_rows, position))
        self.n_rows += chunk.n_rows
        self._pending.append(_copied(chunk))
        self._entries += chunk.nnz
        rows = self.n_rows - self._cut
        if (self._entries > self._shard_nnz or rows > shard_rows(self._shard_nnz)) and self._entries + rows > self._least:
            self._emit()
        while self._in_flight and self._in_flight[0][0].done():
            self._commit()

    def finish(self, source: dict, recipe: Recipe | None = None) -> Manifest:
        """Write the last shard and the manifest. `source` (JSON types) goes into the manifest, `recipe` next to it.

        Raises BadInputError when there are no rows, LockedError when another process writes to the same URL, DiskFullError.
        """
        self._emit(last=True)
        while self._in_flight:
            self._commit()
        if self._shards and (there := sum(shard.rows for shard in self._shards)) != self.n_rows:
            raise BadInputError(f"{self.path}: {self.n_rows - there:,} rows were refused or not written; begin anew")
        if not self._shards:
            raise BadInputError(f"no rows to write into {self.path}")
        self._begin()
        named = None if recipe is None or recipe.names is None else len(recipe.names)
        statistics = self._statistics.finish(named if self._n_features is None else self._n_features)
        shards, documents = self._layout.finish(self._files, self._shards, statistics.n_features)
        manifest = Manifest(
            statistics=statistics,
            shards=shards,
            fingerprint=fingerprint(statistics.n_features, shards),
            backend=self._backend,
            source=source,
            format_version=FORMAT_VERSION,
            streamcut_version=streamcut.__version__,
            files=zarr_layout.guards(documents),
        )
        extras = {} if recipe is None else {RECIPE: recipe.to_json()}
        if (features := self._tally.finish()) is not None:
            extras[FEATURES] = features.to_bytes()
        self._files.put((name, (content,)) for name, content in {**documents, **extras}.items())
        manifest = replace(manifest, extras=zarr_layout.guards(extras))
        if self._files.get(entry(0)) != self._first_entry:
            raise LockedError(f"{self.path} is being written by another process, too; let one of them finish, then start again")
        self._put(MANIFEST, manifest_bytes(manifest), "convert.manifest")
        failpoint("convert.done")
        remove(self._files, {entry(number) for number in range(len(shards) + 1)})
        return manifest

    def _go_on(self, records: list[dict]) -> None:
        """Resume from the shards of an earlier run that `records` lists, as far as they are sound: they are read once more."""
        if not records:
            return
        before, options = records[0]["options"], self._options
        differing = [
            f"{key} was {before.get(key)!r} and is {options.get(key)!r}"
            for key in sorted({*before, *options})
            if canonical_json(before.get(key)) != canonical_json(options.get(key))
        ]
        if differing:
            raise UsageError(
                f"{self.path} was begun differently: {'; '.join(differing)}; use the same options, or start anew without --resume"
            )
        shards = tuple(shard_from_record(record["shard"]) for record in records[1:])
        written = store_of(self._files.root, Manifest(_ANY, shards, "", self._backend))
        buffers = written.buffers()
        for number, shard in enumerate(shards):
            try:
                rows = written.read(number, buffers)
            except CorruptError as error:
                log.info("begun anew at shard %d: %s", number, error)
                break
            self._statistics.add(rows)
            self._tally.add(rows)
            self._shards.append(shard)
            self._kept |= {*shard_files(self._backend, number, shard), entry(number + 1)}
            self.position = records[number + 1]["next"]
        self.n_rows = self._cut = self._stored = self._statistics.n_rows

    def _begin(self) -> None:
        """Before anything is written: remove what is not of the shards to go on from, and record the options.

        What replaces a store removes its manifest only when the journal is there: at every moment one of the two shows whose
        files these are.
        """
        if self._begun:
            return
        self._begun = True
        old = {name for name in self._files.names() if name not in self._kept and not name.startswith(f"{SCRATCH}/")}
        remove(self._files, {name for name in old if name.startswith(f"{JOURNAL}/")})
        self._files.put([(entry(0), (self._first_entry,))])
        remove(self._files, old & {MANIFEST})
        remove(self._files, old - {MANIFEST})

    # Shards in flight

    def _emit(self, *, last: bool = False) -> None:
        """Hand the shards that are complete to threads, or `last`, all rows."""
        if not self._pending:
            return
        while len(self._in_flight) >= self._threads:  # before the pending rows are copied: memory for one shard is free then
            self._commit()
        rows = concatenate(self._pending)
        self._pending.clear()
        cuts = shard_cuts(rows, self._shard_nnz)
        complete = cuts if last else cuts[:-1]
        for start, stop in complete:
            while len(self._in_flight) >= self._threads:
                self._commit()
            self._hand_out(rows.rows(start, stop))
        if not last:
            self._pending.append(_copied(rows.rows(*cuts[-1])) if complete else rows)
            self._entries = self._pending[0].nnz
            self._least = 0 if complete else 2 * (rows.nnz + rows.n_rows)

    def _hand_out(self, rows: Chunk) -> None:
        """Check a shard and add it to the statistics, and let a thread encode and write it. Raises BadInputError."""
        assert rows.data is not None  # `_copied` wrote the ones
        first, self._cut = self._cut, self._cut + rows.n_rows
        cut = slice(rows.indptr[0], rows.indptr[-1])
        rows = replace(rows, indptr=rows.indptr - cut.start, indices=_small(rows.indices[cut]), data=rows.data[cut])
        per_row = {"y": rows.y} if rows.weight is None else {"y": rows.y, "weight": rows.weight}
        limit, most = np.iinfo(np.int64).max if self._n_features is None else self._n_features, MAX_BYTES // 8
        problem = first_problem(rows.indptr, rows.indices, rows.data, per_row, limit)
        if problem is None and rows.nnz > most:
            problem = "indices", f"has {rows.nnz:,} entries of one row or qid, and a shard holds at most {most:,}"
        if problem is None:
            self._statistics.add(rows)
            self._tally.add(rows)
            if not self._statistics.is_finite():
                problem = "data", "or weight is so large that a sum overflows; scale it down"
        if problem is not None:
            raise BadInputError(f"rows {first}…{self._cut - 1}: {' '.join(problem)}")
        self._begin()
        while len(self._blocks) > 1 and self._blocks[1][0] <= self._cut:
            self._blocks.popleft()
        number, n_features = len(self._shards) + len(self._in_flight), -1 if self._n_features is None else self._n_features
        written = self._pool.submit(self._layout.write, self._files, number, rows, n_features)
        self._in_flight.append((written, self._blocks[0][1]))

    def _commit(self) -> None:
        """Wait until the oldest shard in flight is written, and add it to the journal."""
        written, following = self._in_flight.popleft()
        info = written.result()
        self._put(
            entry(len(self._shards) + 1), canonical_json({"shard": shard_record(info), "next": following}), "convert.journal"
        )
        self._shards.append(info)

    def _put(self, name: str, content: bytes, point: str) -> None:
        """Write a file that decides what a crash leaves, after failpoint `point`."""
        with disk_full(self.path, len(content)):
            failpoint(point)
            self._files.put([(name, (content,))])


def _copied(chunk: Chunk) -> Chunk:
    """A copy of the rows with float64 values, and int32 indices where they fit."""
    copy = copied(chunk)
    data = np.ones(copy.nnz) if copy.data is None else copy.data.astype(np.float64, copy=False)
    return replace(copy, data=data, indices=_small(copy.indices))


def _small(indices: np.ndarray) -> np.ndarray:
    """`indices` as int32 where they fit."""
    small = indices.dtype != np.int32 and indices.max(initial=0) <= INT32_MAX
    return indices.astype(np.int32) if small else indices
