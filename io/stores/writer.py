"""Writing a store so that a crash at any moment loses at most the shards in flight, and nothing incomplete bears a final name.

NAME.partial/ holds a lock, the journal and `store/`, the store in the making. Each shard's files are written under temporary
names, fsynced and renamed; then a line of the journal says that the shard is finished. `finish` adds the manifest and the root
and renames `store/` to NAME. Files hold no times and shards are numbered by their rows, so a conversion that was killed and
resumed ends with the same bytes as one that was not.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import streamcut
from streamcut.chunk import Chunk
from streamcut.errors import BadInputError, NotFoundError, UsageError
from streamcut.files import UNREACHABLE, disk_full, failpoint, locked, sync_directory, write_durably
from streamcut.io.features import FeatureStatistics, FeatureTally, by_passes
from streamcut.io.manifest import ArrayInfo, Manifest, ShardInfo, Statistics, StatisticsBuilder
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.stores.codec import MAX_BYTES, crc32c
from streamcut.io.stores.collector import INT32_MAX, ShardCutter, ShardRows
from streamcut.io.stores.journal import Journal, read_journal
from streamcut.io.stores.leftovers import STORE, Replaced, expect_partial, expect_replaceable, remove, remove_partial
from streamcut.io.stores.manifest_file import canonical_json, fingerprint, manifest_bytes, shard_from_record, shard_record
from streamcut.io.stores.narrow import smallest
from streamcut.io.stores.spec import (
    BACKENDS,
    BUILD,
    FEATURES,
    FORMAT_VERSION,
    JOURNAL,
    LOCK,
    MANIFEST,
    MOST_FEATURES,
    PARTIAL,
    RECIPE,
    SHARD_NNZ,
    SHARDS,
    shard_rows,
)
from streamcut.io.stores.structure import first_problem
from streamcut.suggestions import unknown

_FEATURES_AT_ONCE = 1 << 19  # of a resumed store: 16 MiB


def writer_bytes(shard_nnz: int, threads: int) -> int:
    """Bytes that a StoreWriter may hold, unless a single row or group is larger than a shard.

    threads + 1 shards of rows (int32 indices, float64 values, four columns of 8 bytes), and for each thread the values of a
    shard compressed, twice, because the compressor's result is copied.
    """
    rows = shard_nnz * (4 + 8) + shard_rows(shard_nnz) * 4 * 8
    return (threads + 1) * rows + threads * shard_nnz * 2 * 8


@dataclass(frozen=True, slots=True)
class _Block:
    """One call of append: its first row in the whole data set, and what the caller wants back to give it again."""

    first_row: int
    position: dict
    state: dict | None


@dataclass(frozen=True, slots=True)
class _InFlight:
    """A shard that is being written; `record` is what its journal line says besides the shard itself."""

    rows: ShardRows
    record: dict
    written: Future[ShardInfo]


class StoreWriter:
    """Writes rows, block by block, into the store `path`. A context manager: leaving it before `finish` keeps NAME.partial.

    path        of the finished store, NAME
    backend     "zarr" or "hdf5"
    shard_nnz   entries of a shard (see `io/stores/collector.py` for the rule)
    n_features  number of features; None: the largest index seen
    options     JSON identity of the whole conversion: resuming with other options is refused
    resume      continue NAME.partial if there is one; else it is removed
    force       replace an existing store NAME, once the new one is complete
    features    keep statistics of single features if there are no more than this of them (32 bytes each while writing; 0: never)
    threads     background threads that encode and write shards; memory is `writer_bytes(shard_nnz, threads)`

    Entering raises UsageError (NAME exists, or options differ), LockedError, NotFoundError (the directory cannot be written),
    DiskFullError. Afterwards `resume_from` is None for a fresh start, or {"position", "skip", "state"}: call append again with
    the block of that `position` without its first `skip` rows, then with those that follow; `state` came with that block.
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
        if backend not in BACKENDS:
            raise UsageError(f"backend: {unknown(backend, BACKENDS)}")
        if shard_nnz < 1 or threads < 1:
            raise UsageError("shard_nnz and threads must be at least 1")
        self.path = Path(os.path.realpath(path)) if os.path.islink(path) else Path(path)  # a link stays one
        self.resume_from: dict | None = None
        self._partial = self.path.with_name(self.path.name + PARTIAL)
        self._build = self._partial / BUILD
        self._replaced = Replaced(self.path)
        self._backend, self._shard_nnz, self._n_features = backend, shard_nnz, n_features
        own = {"backend": backend, "shard_nnz": shard_nnz, "n_features": n_features, "format_version": FORMAT_VERSION}
        self._options = {**options, **own, "streamcut": streamcut.__version__}
        self._resume, self._force, self._threads = resume, force, threads
        self._statistics = StatisticsBuilder()
        self._features = 0 if n_features is not None and n_features > features else features
        self._tally = FeatureTally(self._features)
        self._shards: list[ShardInfo] = []
        self._blocks: deque[_Block] = deque()
        self._in_flight: deque[_InFlight] = deque()
        self._free: list[ShardRows] = []
        self._made = self._emitted = self._next_row = 0
        self._cutter = ShardCutter(shard_nnz, self._fresh_rows)
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> StoreWriter:
        expect_replaceable(self.path, self._force)
        expect_partial(self._partial)  # before a lock is put into a folder of somebody else's
        with contextlib.ExitStack() as stack:
            try:
                with disk_full(self._partial):
                    self._partial.mkdir(exist_ok=True)
                    stack.enter_context(locked(self._partial / LOCK, str(self.path)))
                    failpoint("convert.open")
                    expect_partial(self._partial)
                    self._begin(stack)
            except OSError as error:
                if error.errno not in UNREACHABLE:
                    raise
                raise NotFoundError(f"{self._partial}: cannot be made ({error.strerror})") from error
            self._pool = ThreadPoolExecutor(self._threads, "streamcut-write")
            stack.callback(self._pool.shutdown, cancel_futures=True)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def append(self, chunk: Chunk, position: dict, state: dict | None = None) -> None:
        """Add the rows of `chunk`, which are copied. `position` and `state` (JSON types) are what `resume_from` gives back.

        Raises BadInputError for rows that break the format (order of indices, nan, a feature ≥ n_features), DiskFullError.
        """
        begun = self.resume_from
        skipped = begun["skip"] if begun is not None and begun["position"] == position else 0
        self._blocks.append(_Block(self._next_row - skipped, position, state))
        self._next_row += chunk.n_rows
        for rows in self._cutter.add(chunk):
            self._emit(rows)
        while self._in_flight and self._in_flight[0].written.done():
            self._commit()

    def finish(self, source: dict, recipe: Recipe | None = None) -> Manifest:
        """Write what is left and give the store its name. `source` (JSON types) goes into the manifest, `recipe` beside it.

        Raises BadInputError when there are no rows, DiskFullError.
        """
        rest = self._cutter.rest()
        if rest is not None:
            self._emit(rest)
        while self._in_flight:
            self._commit()
        if not self._shards:
            raise BadInputError(f"no rows to write into {self.path}")
        named = None if recipe is None or recipe.names is None else len(recipe.names)
        statistics = self._statistics.finish(named if self._n_features is None else self._n_features)
        n_features = statistics.n_features
        shards = tuple(self._files.finish_shard(k, shard, n_features) for k, shard in enumerate(self._shards))
        extras = {} if recipe is None else {RECIPE: recipe.to_json()}
        if (features := self._feature_statistics(statistics, shards)) is not None:
            extras[FEATURES] = features.to_bytes()
        manifest = Manifest(
            statistics=statistics,
            shards=shards,
            fingerprint=fingerprint(n_features, shards),
            backend=self._backend,
            source=source,
            format_version=FORMAT_VERSION,
            streamcut_version=streamcut.__version__,
            files=self._files.files(),
            extras={name: (len(content), crc32c(content)) for name, content in extras.items()},
        )
        for name, content in extras.items():
            write_durably(self._build / name, content, prefix="convert.extra")
        failpoint("convert.manifest")
        write_durably(self._build / MANIFEST, manifest_bytes(manifest), prefix="convert.manifest")
        failpoint("convert.root")
        self._files.finish()
        sync_directory(self._build)
        self._publish()
        return manifest

    def _feature_statistics(self, statistics: Statistics, shards: tuple[ShardInfo, ...]) -> FeatureStatistics | None:
        """Those of all rows: of a resumed store its shards are read for them once more."""
        if self.resume_from is None:
            return self._tally.finish()
        if statistics.n_features > self._features:
            return None
        if self._backend == "hdf5":
            from streamcut.io.stores.hdf5_store import HDF5Store as Store
        else:
            from streamcut.io.stores.zarr_store import ZarrStore as Store  # type: ignore[assignment]
        return by_passes(Store(str(self._build), Manifest(statistics, shards, "", self._backend)), _FEATURES_AT_ONCE)

    # Beginning

    def _begin(self, stack: contextlib.ExitStack) -> None:
        """Make NAME.partial what it was after the last finished shard, or empty."""
        journal = read_journal(self._partial / JOURNAL) if self._resume else []
        records = [record for record in journal if "replacing" not in record[0]]
        if records:
            self._check_options(records[0][0]["options"])
        elif self._build.exists():
            remove(self._build, STORE)
        self._replaced.settle(back=not records)
        expect_replaceable(self.path, self._force)  # another writer may have finished between the first check and the lock
        self._build.mkdir(exist_ok=True)
        if self._backend == "hdf5":
            from streamcut.io.stores.hdf5_writer import HDF5Writer

            self._files: Any = HDF5Writer(self._build, self._n_features)
        else:
            from streamcut.io.stores.zarr_writer import ZarrWriter

            self._files = ZarrWriter(self._build)
        for record, _ in records[1:]:
            info = shard_from_record(record["shard"])
            if not self._files.is_whole(len(self._shards), info):
                break
            self._shards.append(info)
        finished = len(self._shards)
        self._files.keep(finished)
        whole = finished == len(records) - 1  # then what the journal says of NAME.replaced stays, too
        self._journal = Journal(self._partial / JOURNAL, journal[-1][1] if whole else records[finished][1] if records else 0)
        stack.callback(self._journal.close)
        if not records:
            self._journal.append({"options": self._options})
        (self._build / SHARDS).mkdir(exist_ok=True)
        for folder in (self._build, self._partial, self.path.parent):  # from now on what is inside them is safe
            sync_directory(folder)
        if finished:
            self._tally = FeatureTally(0)  # what earlier runs have counted is gone: the shards will be read once more
            last = records[finished][0]
            self._statistics = StatisticsBuilder.from_state(last["statistics"])
            self._emitted, self._next_row = finished, self._statistics.n_rows
            self.resume_from = last["next"]
        sync_directory(self._partial)

    def _check_options(self, begun: dict) -> None:
        differing = [
            f"{key} was {begun.get(key)!r} and is {self._options.get(key)!r}"
            for key in sorted({*begun, *self._options})
            if canonical_json(begun.get(key)) != canonical_json(self._options.get(key))
        ]
        if differing:
            raise UsageError(
                f"{self._partial} was begun differently: {'; '.join(differing)}; "
                "use the same options, or start anew without --resume"
            )

    # Shards on their way

    def _fresh_rows(self) -> ShardRows:
        """Memory for a shard; waits for a shard to be written when all of it is in use."""
        if not self._free and self._made <= self._threads:
            self._made += 1
            return ShardRows(self._shard_nnz)
        if not self._free:
            self._commit()
        return self._free.pop()

    def _emit(self, rows: ShardRows) -> None:
        """Check a complete shard, count it and hand it to a thread."""
        chunk = rows.chunk()
        extra = {name: getattr(chunk, name) for name in ("y", "weight") if getattr(chunk, name) is not None}
        limit = np.iinfo(np.int64).max if self._n_features is None else self._n_features
        problem = first_problem(chunk.indptr, chunk.indices, chunk.data, extra, limit)
        most = MAX_BYTES // 8
        if problem is None and rows.nnz > most:
            problem = "indices", f"has {rows.nnz:,} entries of one row or qid, and a shard holds at most {most:,}"
        first = self._statistics.n_rows
        if problem is None:
            self._statistics.add(chunk)
            self._tally.add(chunk)
            if not math.isfinite(self._statistics.max_squared_norm + (self._statistics.weight_sum or 0.0)):
                problem = "data", "or weight is so large that a sum overflows; scale it down"
        if problem is not None:
            raise BadInputError(f"rows {first}…{first + rows.rows - 1}: {' '.join(problem)}")
        record = {"statistics": self._statistics.state(), "next": self._next_start(self._statistics.n_rows)}
        self._in_flight.append(_InFlight(rows, record, self._pool.submit(self._write, self._emitted, rows)))
        self._emitted += 1

    def _next_start(self, row: int) -> dict:
        """Where to go on after a restart when the shards hold `row` rows; forgets the blocks before."""
        while len(self._blocks) > 1 and self._blocks[1].first_row <= row:
            self._blocks.popleft()
        block = self._blocks[0]
        return {"position": block.position, "skip": row - block.first_row, "state": block.state}

    def _write(self, shard: int, rows: ShardRows) -> ShardInfo:
        """Encode and write one shard; runs in a background thread."""
        chunk, ones = rows.chunk(), False
        contents: dict[str, tuple[str, int, int]] = {}

        def narrowed():
            nonlocal ones
            for name in ("data", "indices", "indptr", "y", "qid", "weight"):
                array = getattr(chunk, name)
                if array is None:
                    continue
                if array.dtype == np.float64:
                    dtype, all_ones = smallest(array)
                    ones = all_ones if name == "data" else ones
                    array = array.astype(dtype, copy=False)
                elif name == "indices" and array.dtype != np.int32 and array.max(initial=0) <= INT32_MAX:
                    array = array.astype(np.int32)
                elif name == "indptr":
                    array = array.astype(contents["indices"][0])
                contents[name] = array.dtype.name, len(array), crc32c(array)
                yield name, array

        guards = self._files.write_shard(shard, narrowed(), rows.rows)
        arrays = {}
        for name, (dtype, size, crc) in contents.items():
            stored_bytes, stored_crc = guards[name]
            arrays[name] = ArrayInfo(dtype, size, crc, stored_bytes, stored_crc)
        return ShardInfo(rows.rows, rows.nnz, ones, arrays)

    def _commit(self) -> None:
        """Wait for the oldest shard in flight and write its line of the journal."""
        oldest = self._in_flight.popleft()
        info = oldest.written.result()
        self._journal.append({"shard": shard_record(info), **oldest.record})
        self._shards.append(info)
        oldest.rows.clear()
        self._free.append(oldest.rows)

    # The end

    def _publish(self) -> None:
        """Give the complete store its name, and remove what it replaces and what it was made of."""
        failpoint("convert.rename")
        expect_replaceable(self.path, self._force)  # it may have come into being meanwhile, or something inside it
        if self.path.exists():
            self._replaced.settle(back=False)
            self._journal.append(self._replaced.record())
            self._replaced.move()
            failpoint("convert.rename")
        os.rename(self._build, self.path)
        sync_directory(self.path.parent)
        failpoint("convert.rename")
        self._replaced.settle(back=False)
        self._journal.close()
        remove_partial(self._partial)
