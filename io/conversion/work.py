"""The work of a conversion, from the source to the outputs.

    rows as they come:   source → split → one writer for each output
    shuffled, grouped:   source → split → one external sort for each output; then, one at a time: sorted rows → writer

When resumed, complete outputs stay. Rows in input order are read from the block that the writers name; rows with a qid from
the beginning, since only that shows whether a qid recurs. Sorted rows are read and sorted again (runs on disk are not trusted
after a crash), and stored rows are skipped. In every case the result has the same bytes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np

from streamcut.errors import BadInputError, NotFoundError, StreamcutError, UsageError
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.files import scratch_folder
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.conversion.plan import ConvertPlan
from streamcut.io.conversion.prepared import Prepared
from streamcut.io.conversion.progress import Reporter
from streamcut.io.conversion.shuffle import ExternalSort, random_keys
from streamcut.io.manifest import Manifest, Statistics
from streamcut.io.opening import open_dataset
from streamcut.io.places.remote import is_url
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.rows import take_rows
from streamcut.io.stores.files import files_of
from streamcut.io.stores.journal import discard, has_rows, is_store, settle
from streamcut.io.stores.spec import SCRATCH
from streamcut.io.stores.writer import StoreWriter

SPLIT_STREAM = 1  # of random_keys: a split is independent of a shuffle with the same seed


class Target:
    """The store `path`. `record` (JSON types) must be equal in a resumed run and the first.

    resumed_at  position of the first block whose rows are not all stored; None: it begins anew, or is complete
    stored      rows that an earlier run stored; `complete`: all rows
    """

    def __init__(self, path: str, record: dict, plan: ConvertPlan, n_features: int | None, settings: ConvertOptions) -> None:
        self.path = path
        self.statistics: Statistics | None = None  # known once it is complete
        self.counters: dict[str, int] = {}
        manifest = _existing(path, record, settings.force) if settings.resume and is_store(path) else None
        self.complete = manifest is not None
        self.resumed_at: dict | None = None
        self.stored = 0
        self.seen = 0  # rows of this output seen so far, stored before or now
        self.refused: list[str] = []
        self._stack = ExitStack()
        self._writer: StoreWriter | None = None
        if manifest is not None:
            self.statistics, self.counters = manifest.statistics, manifest.source.get("counters", {})
            self.refused = manifest.source.get("refused", [])
            self.stored = manifest.statistics.n_rows
            settle(path)
            return
        writer = StoreWriter(
            path,
            backend=settings.backend,
            shard_nnz=plan.shard_nnz,
            n_features=n_features,
            options=record,
            resume=settings.resume,
            force=settings.force,
            features=plan.features,
            threads=plan.threads,
        )
        self._writer = self._stack.enter_context(writer)
        if writer.resume_from is not None:
            self.resumed_at = writer.resume_from["position"]
            self.stored = self.resumed_at["given"] + writer.resume_from["skip"]

    def close(self) -> None:
        """Release the writer and its memory; what was not finished stays."""
        self._stack.close()
        self._writer = None

    def abandon(self, rows_too: bool = False) -> None:
        """Remove an unfinished store that holds no rows worth resuming (`rows_too`: even then)."""
        if self.complete or (not rows_too and has_rows(self.path)):
            return
        self.close()  # no writer uses it any more
        discard(self.path)

    def stored_bytes(self) -> int:
        """Bytes of the finished store."""
        return sum(files_of(self.path).names().values())

    def give(self, chunk: Chunk, position: dict) -> None:
        """Write the rows of `chunk` that are not stored yet; `position` is where their block began."""
        known = min(max(0, self.stored - self.seen), chunk.n_rows)
        self.seen += chunk.n_rows
        if known == chunk.n_rows:
            return
        first_row = self.seen - chunk.n_rows + known
        rows = replace(chunk.rows(known, chunk.n_rows), first_row=first_row)
        assert self._writer is not None, "finished or closed"
        # `given` makes the position that of exactly these rows, however a resumed run cuts blocks.
        self._writer.append(rows, {**position, "given": first_row})

    def finish(self, record: dict, counters: dict[str, int], recipe: Recipe | None, refused: list[str]) -> None:
        """Give the store its name, with its source, its counters, the first refused lines and its recipe."""
        if self.complete:
            return
        if self.seen == 0:
            raise BadInputError(f"{self.path}: this output gets no rows; change --split or --seed")
        assert self._writer is not None, "closed before it was finished"
        self.counters = counters
        source = {"made_from": lasting(record), "counters": counters} | ({"refused": refused} if refused else {})
        self.statistics = self._writer.finish(source, recipe).statistics
        self.close()


def lasting(record: dict) -> dict:
    """`record` without what differs between equal conversions of equal data: modification times and memory."""
    kept = {name: value for name, value in record.items() if name != "features"}
    return {**kept, "inputs": [[name, size] for name, size, _ in record["inputs"]]}


def _existing(path: str, record: dict, force: bool) -> Manifest | None:
    """The manifest of the store at `path` if a resumed conversion would make the same; None: it is to be replaced.

    Raises UsageError when it is a different store, unless `force`.
    """
    try:
        manifest = open_dataset(path).manifest
    except StreamcutError:
        if force:
            return None
        raise
    if manifest.source.get("made_from") == lasting(record):
        return manifest
    if force:
        return None
    raise UsageError(f"{path}: exists and was made from other data or with other options; replace it with --force")


class Work:
    """One run from the source to the targets, which `record` identifies. `read`: rows so far."""

    def __init__(self, given: Prepared, targets: list[Target], record: dict, report: Reporter) -> None:
        self.source, self.settings, self.states, self.plan = given.source, given.settings, given.states, given.plan
        self.targets, self.record, self.report = targets, record, report
        self.read = 0

    def run(self) -> None:
        """Do all remaining work."""
        if all(target.complete for target in self.targets):
            return
        if self.settings.sorting:
            self._sorted()
        else:
            self._as_they_come()

    @property
    def refused(self) -> list[str]:
        """The first lines that the source left out, with the reasons."""
        return list(getattr(self.source, "rejects", ()))

    def _as_they_come(self) -> None:
        start = self._start()
        if start is not None:
            for target, seen in zip(self.targets, start["seen"], strict=True):
                target.seen = seen
        for chunk, place in self._blocks(start):
            position = {
                "source": place,
                "read": chunk.first_row,
                "seen": [target.seen for target in self.targets],
                "has_qid": chunk.qid is not None,
            }
            for target, which in zip(self.targets, self._split(chunk), strict=True):
                target.give(chunk if which is None else take_rows(chunk, which), position)
        for target in self.targets:
            self._finish(target)

    def _start(self) -> dict | None:
        """The earliest position from which an output lacks rows; None: the beginning."""
        unfinished = [target for target in self.targets if not target.complete]
        positions = [target.resumed_at for target in unfinished if target.resumed_at is not None]
        again = getattr(self.source, "rereads", False)  # it numbers keys in order of appearance
        if again or len(positions) < len(unfinished) or any(position["has_qid"] for position in positions):
            return None
        return min(positions, key=lambda position: position["read"])

    def _sorted(self) -> None:
        first = 1.0 if self.settings.split is None else min(max(self.settings.split, 0.25), 0.75)
        with ExitStack() as stack:
            sorts = {}
            for target, share in zip(self.targets, (first, 1 - first), strict=False):
                if not target.complete:
                    place = _scratch(target.path, self.settings)
                    sorts[target.path] = stack.enter_context(ExternalSort(place, int(share * self.plan.sort_bytes)))
            for chunk, _ in self._blocks(None):
                keys = self._keys(chunk)
                for target, which in zip(self.targets, self._split(chunk), strict=True):
                    if target.path in sorts:
                        rows = (chunk, keys) if which is None else (take_rows(chunk, which), keys[which])
                        sorts[target.path].add(*rows)
            for target in self.targets:
                if (sort := sorts.get(target.path)) is None:
                    continue
                for chunk in sort.sorted():
                    target.give(chunk, {})
                    self.report.writing(target.seen, sort.rows)
                sort.close()
                self._finish(target)

    def _finish(self, target: Target) -> None:
        """Give a store its name, with the source's recipe, and the feature names given by the options."""
        recipe, names = self.source.recipe(), self.settings.feature_names
        recipe = recipe if names is None else replace(recipe or Recipe(), names=names)
        target.finish(self.record, dict(self.source.counters), recipe, self.refused)

    def _split(self, chunk: Chunk) -> list[np.ndarray | None]:
        """Which rows of `chunk` go to each output, None: all. The first gets a row with probability `split`, by seed and row
        number (or qid) alone."""
        if self.settings.split is None:
            return [None]
        first = random_keys(self.settings.split_seed, _numbers(chunk), SPLIT_STREAM) < np.uint64(self.settings.split * 2.0**64)
        return [np.flatnonzero(first), np.flatnonzero(~first)]

    def _keys(self, chunk: Chunk) -> np.ndarray:
        """The sort keys of the rows: a random number per row or per group, or the qid itself."""
        if self.settings.group_by_qid and chunk.qid is None:
            raise BadInputError("--group-by-qid: the rows have no qid")
        if self.settings.shuffle is None and chunk.qid is not None:
            return chunk.qid.astype(np.uint64)
        return random_keys(self.settings.shuffle or 0, _numbers(chunk))

    def _blocks(self, start: dict | None) -> Iterator[tuple[Chunk, dict]]:
        """Blocks of the source from `start` on.

        Raises ChangedInputError before anything made of the changed files gets a final name.
        """
        for chunk, place in self.states.watch(self.source.blocks(None if start is None else start["source"])):
            yield chunk, place
            self.read += chunk.n_rows
            self.report.reading(self.read, place)
        if self.read == 0:
            raise BadInputError("no rows in the input")


def _numbers(chunk: Chunk) -> np.ndarray:
    """What draws for a row depend on: its number, or its qid."""
    return chunk.first_row + np.arange(chunk.n_rows) if chunk.qid is None else chunk.qid


def _scratch(output: str, settings: ConvertOptions) -> Path:
    """The folder of runs: inside OUTPUT, whose lock we hold, or in --scratch (for URLs TMPDIR) under a unique name."""
    if settings.scratch is None and not is_url(output):
        return Path(output, SCRATCH)
    folder = scratch_folder(settings.scratch)
    if not folder.is_dir():
        raise NotFoundError(f"--scratch: {folder} is not a directory")
    digest = hashlib.sha256((output if is_url(output) else os.path.realpath(output)).encode()).hexdigest()[:12]
    return folder / f"{Path(output).name}.{digest}.scratch"
