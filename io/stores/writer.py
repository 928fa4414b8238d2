"""Writing a store so that a crash at any moment loses at most the shards in flight, and nothing incomplete has a final name.

Each shard's files are durable before the journal lists it as finished; `finish` adds the manifest and gives the store its name.
build.py and remote_build.py do this on a disk and in object storage. Files hold no times and shards are numbered by their rows,
so a conversion that was killed and resumed gives the same bytes as an uninterrupted one.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

import streamcut
from streamcut.errors import BadInputError, UsageError
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.shown import unknown
from streamcut.io.features import FeatureStatistics, FeatureTally, by_passes
from streamcut.io.manifest import Manifest, ShardInfo, Statistics, StatisticsBuilder
from streamcut.io.places.remote import is_url
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.stores.build import build_of
from streamcut.io.stores.codec import MAX_BYTES, crc32c
from streamcut.io.stores.collector import ShardCutter, ShardRows
from streamcut.io.stores.manifest_file import fingerprint, manifest_bytes, shard_from_record, shard_record
from streamcut.io.stores.remote_writer import UPLOAD_HELD
from streamcut.io.stores.shard_arrays import write_shard
from streamcut.io.stores.spec import (
    BACKENDS,
    FEATURES,
    FORMAT_VERSION,
    MOST_FEATURES,
    RECIPE,
    SHARD_NNZ,
    shard_rows,
)
from streamcut.io.stores.structure import first_problem

_FEATURES_AT_ONCE = 1 << 19  # when the shards of a resumed store are reread: 16 MiB


def writer_bytes(shard_nnz: int, threads: int, remote: bool = False) -> int:
    """Most bytes that a StoreWriter holds, unless a single row or group is larger than a shard.

    threads + 1 shards of rows (int32 indices, float64 values, four columns of 8 bytes), and for each thread the compressed
    values of a shard, twice, because the compressor's result is copied; for a URL (`remote`) also the uploads in flight.
    """
    rows = shard_nnz * (4 + 8) + shard_rows(shard_nnz) * 4 * 8
    return (threads + 1) * rows + threads * shard_nnz * 2 * 8 + (UPLOAD_HELD if remote else 0)


@dataclass(frozen=True, slots=True)
class _Block:
    """One call of append: its first row in the whole data set, and the caller's position and state to repeat it."""

    first_row: int
    position: dict
    state: dict | None


@dataclass(frozen=True, slots=True)
class _InFlight:
    """A shard that is being counted and written, then journalled."""

    rows: ShardRows
    written: Future[tuple[ShardInfo, dict]]
    journalled: Future[ShardInfo]


class StoreWriter:
    """Writes rows, block by block, into the store `path`. A context manager: leaving it before `finish` keeps NAME.partial.

    path        of the finished store, NAME: on a disk, or a URL of an object store
    backend     "zarr" or "hdf5" (disks only)
    shard_nnz   entries of a shard (see `io/stores/collector.py` for the rule)
    n_features  number of features; None: the largest index seen
    options     JSON identity of the whole conversion: resuming with other options is refused
    resume      continue NAME.partial if there is one; without `resume` it is removed
    force       replace an existing store NAME, once the new one is complete
    features    keep statistics per feature if there are at most this many (32 bytes each while writing; 0: never)
    threads     background threads that encode and write shards; memory is `writer_bytes(shard_nnz, threads)`. Another one waits
                for uploads to a URL and writes the journal, so that the rows' memory is already free for the next shard

    Entering raises UsageError (NAME exists, or options differ), LockedError, NotFoundError (the directory is not writable),
    DiskFullError. Afterwards `resume_from` is None for a fresh start, or {"position", "skip", "state"}: call append again with
    the block of that `position` without its first `skip` rows, then with the following ones; `state` came with that block.
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
        if backend == "hdf5" and is_url(path):
            raise UsageError(f"backend: HDF5 files are written to disks only, not to {path}; take zarr")
        if shard_nnz < 1 or threads < 1:
            raise UsageError("shard_nnz and threads must be at least 1")
        self.path = os.fspath(path)
        self.resume_from: dict | None = None
        self._build = build_of(path, backend, n_features)
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
        self._journalled: deque[Future[ShardInfo]] = deque()  # shards whose rows are no longer needed, in order
        self._free: list[ShardRows] = []
        self._made = self._emitted = self._handed_out = self._next_row = 0
        self._counted: Future[None] | None = None  # done when the last shard handed out is counted
        self._last_line: Future[ShardInfo] | None = None  # of the journal
        self._cutter = ShardCutter(shard_nnz, self._fresh_rows)
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> StoreWriter:
        with contextlib.ExitStack() as stack:
            self._go_on(self._build.open(stack, self._options, resume=self._resume, force=self._force))
            self._journal = ThreadPoolExecutor(1, "streamcut-journal")
            stack.callback(self._journal.shutdown, cancel_futures=True)
            self._pool = ThreadPoolExecutor(self._threads, "streamcut-write")
            stack.callback(self._pool.shutdown, cancel_futures=True)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def append(self, chunk: Chunk, position: dict, state: dict | None = None) -> None:
        """Add the rows of `chunk`, which are copied. `resume_from` returns `position` and `state` (JSON types).

        Raises BadInputError for rows of this or an earlier block that break the format (order of indices, nan, a feature ≥
        n_features), DiskFullError.
        """
        begun = self.resume_from
        skipped = begun["skip"] if begun is not None and begun["position"] == position else 0
        self._blocks.append(_Block(self._next_row - skipped, position, state))
        self._next_row += chunk.n_rows
        for rows in self._cutter.add(chunk):
            self._emit(rows)
        while self._in_flight and self._in_flight[0].written.done():
            self._take_back()
        while self._journalled and self._journalled[0].done():
            self._commit()

    def finish(self, source: dict, recipe: Recipe | None = None) -> Manifest:
        """Write the last shard and give the store its name. `source` (JSON types) goes into the manifest, `recipe` next to it.

        Raises BadInputError when there are no rows, DiskFullError.
        """
        rest = self._cutter.rest()
        if rest is not None:
            self._emit(rest)
        while self._in_flight:
            self._take_back()
        while self._journalled:
            self._commit()
        if not self._shards:
            raise BadInputError(f"no rows to write into {self.path}")
        named = None if recipe is None or recipe.names is None else len(recipe.names)
        statistics = self._statistics.finish(named if self._n_features is None else self._n_features)
        n_features = statistics.n_features
        shards = tuple(self._build.files.finish_shard(k, shard, n_features) for k, shard in enumerate(self._shards))
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
            files=self._build.files.files(),
            extras={name: (len(content), crc32c(content)) for name, content in extras.items()},
        )
        for name, content in extras.items():
            self._build.write(name, content)
        self._build.publish(manifest_bytes(manifest), force=self._force)
        return manifest

    def _feature_statistics(self, statistics: Statistics, shards: tuple[ShardInfo, ...]) -> FeatureStatistics | None:
        """Feature statistics of all rows; the shards of a resumed store are reread for them."""
        if self.resume_from is None:
            return self._tally.finish()
        if statistics.n_features > self._features:
            return None
        return by_passes(self._build.read_again(Manifest(statistics, shards, "", self._backend)), _FEATURES_AT_ONCE)

    def _go_on(self, records: list[dict]) -> None:
        """Resume from the finished shards of an earlier run."""
        self._shards = [shard_from_record(record["shard"]) for record in records]
        if records:
            self._tally = FeatureTally(0)  # the counts of earlier runs are lost: the shards will be reread
            self._statistics = StatisticsBuilder.from_state(records[-1]["statistics"])
            self._emitted, self._next_row = len(records), self._statistics.n_rows
            self._handed_out = self._next_row
            self.resume_from = records[-1]["next"]

    # Shards in flight

    def _fresh_rows(self) -> ShardRows:
        """Memory for a shard; when all is in use, waits for a shard to be written."""
        if not self._free and self._made <= self._threads:
            self._made += 1
            return ShardRows(self._shard_nnz)
        if not self._free:
            self._take_back()
        return self._free.pop()

    def _emit(self, rows: ShardRows) -> None:
        """Hand a complete shard to a thread, which checks and counts it after its predecessors, and writes it."""
        first, self._handed_out = self._handed_out, self._handed_out + rows.rows
        before, self._counted = self._counted, Future()
        task = self._pool.submit(self._finished, self._emitted, rows, first, before, self._counted)
        line = self._journal.submit(self._line_written, task, self._next_start(self._handed_out), self._last_line)
        self._last_line = line
        self._in_flight.append(_InFlight(rows, task, line))
        self._emitted += 1

    def _finished(
        self, shard: int, rows: ShardRows, first: int, before: Future | None, counted: Future
    ) -> tuple[ShardInfo, dict]:
        """(the written shard, the statistics of all rows up to its end); runs in a background thread."""
        try:
            if before is not None:
                before.result()
            self._count(rows, first)
            state = self._statistics.state()
        except BaseException as error:
            counted.set_exception(error)
            raise
        counted.set_result(None)
        return write_shard(self._build.files, shard, rows), state

    def _count(self, rows: ShardRows, first: int) -> None:
        """Check a shard, whose first row is number `first`, and add it to the statistics. Raises BadInputError."""
        chunk = rows.chunk()
        extra = {name: getattr(chunk, name) for name in ("y", "weight") if getattr(chunk, name) is not None}
        limit = np.iinfo(np.int64).max if self._n_features is None else self._n_features
        problem = first_problem(chunk.indptr, chunk.indices, chunk.data, extra, limit)
        most = MAX_BYTES // 8
        if problem is None and rows.nnz > most:
            problem = "indices", f"has {rows.nnz:,} entries of one row or qid, and a shard holds at most {most:,}"
        if problem is None:
            self._statistics.add(chunk)
            self._tally.add(chunk)
            if not self._statistics.is_finite():
                problem = "data", "or weight is so large that a sum overflows; scale it down"
        if problem is not None:
            raise BadInputError(f"rows {first}…{first + rows.rows - 1}: {' '.join(problem)}")

    def _next_start(self, row: int) -> dict:
        """Where to continue after a restart when the shards hold `row` rows; forgets earlier blocks."""
        while len(self._blocks) > 1 and self._blocks[1].first_row <= row:
            self._blocks.popleft()
        block = self._blocks[0]
        return {"position": block.position, "skip": row - block.first_row, "state": block.state}

    def _line_written(self, written: Future[tuple[ShardInfo, dict]], following: dict, before: Future | None) -> ShardInfo:
        """The shard, once it is journalled after its predecessors; runs in a background thread."""
        if before is not None:
            before.result()
        info, statistics = written.result()
        self._build.append({"shard": shard_record(info), "statistics": statistics, "next": following})
        return info

    def _take_back(self) -> None:
        """Wait until the oldest shard in flight is encoded and written, or uploading, and its rows' memory is free."""
        oldest = self._in_flight.popleft()
        oldest.written.result()
        self._journalled.append(oldest.journalled)
        oldest.rows.clear()
        self._free.append(oldest.rows)

    def _commit(self) -> None:
        """Wait until the oldest pending shard is journalled."""
        self._shards.append(self._journalled.popleft().result())
