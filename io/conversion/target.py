"""One output of a conversion: its writer, and the rows that an earlier run stored.

As rows are written, it is counted whether they are sorted by label, for which training takes more passes.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from streamcut.errors import BadInputError, MemoryBudgetError, StreamcutError, UsageError
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.units import format_bytes
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.conversion.plan import GROUP_ENTRY_BYTES, ConvertPlan
from streamcut.io.manifest import Manifest, Statistics
from streamcut.io.opening import open_dataset
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.stores.files import files_of
from streamcut.io.stores.journal import discard, has_rows, is_store, settle
from streamcut.io.stores.writer import StoreWriter

_FEWEST = 100  # rows: with fewer, order means nothing
_SHARE = 0.1  # of the changes expected in random order: sorted rows have fewer


class LabelOrder:
    """Counts how often the label rises and falls between adjacent rows."""

    def __init__(self) -> None:
        self._rows, self._rises, self._falls = 0, 0, 0
        self._last: float | None = None

    def add(self, y: np.ndarray) -> None:
        """Add the labels (n,) of the next rows."""
        if not len(y):
            return
        steps = np.diff(y, prepend=y[0] if self._last is None else self._last)
        self._rises += int(np.count_nonzero(steps > 0))
        self._falls += int(np.count_nonzero(steps < 0))
        self._rows += len(y)
        self._last = float(y[-1])

    def found(self, statistics: Statistics) -> bool:
        """Whether rows of these statistics are sorted: classes one after another, or numbers that only grow or only fall."""
        if self._rows < _FEWEST:
            return False
        if statistics.labels is None:
            return min(self._rises, self._falls) < _SHARE * max(self._rises, self._falls)
        of_classes = np.array(list(statistics.labels.values())) / statistics.n_rows
        expected = self._rows * (1.0 - float(of_classes @ of_classes))
        return len(of_classes) > 1 and self._rises + self._falls < _SHARE * expected


class Target:
    """The store `path`. `record` (JSON types) must be equal in a resumed run and the first.

    resumed_at  position of the first block whose rows are not all stored; None: it begins anew, or is complete
    stored      rows that an earlier run stored; `complete`: all rows
    in_order    whether rows were sorted by label, known once it is complete
    """

    def __init__(self, path: str, record: dict, plan: ConvertPlan, n_features: int | None, settings: ConvertOptions) -> None:
        self.path = path
        self.statistics: Statistics | None = None  # known once it is complete
        self.counters: dict[str, int] = {}
        self.refused: list[str] = []
        manifest = _existing(path, record, settings.force) if settings.resume and is_store(path) else None
        self.complete = manifest is not None
        self.resumed_at: dict | None = None
        self.stored = 0
        self.seen = 0  # rows of this output seen so far, stored before or now
        self.in_order = False
        self._order = LabelOrder()
        self._group = _GroupLimit(plan)
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

    def abandon(self, rows_too: bool = False) -> bool:
        """Remove an unfinished store that holds no rows worth resuming (`rows_too`: even then); returns whether it did."""
        if self.complete or (not rows_too and has_rows(self.path)):
            return False
        self.close()  # no writer uses it any more
        discard(self.path)
        return True

    def stored_bytes(self) -> int:
        """Bytes of the finished store."""
        return sum(files_of(self.path).names().values())

    def give(self, chunk: Chunk, position: dict) -> None:
        """Write the rows of `chunk` that are not stored yet; `position` is where their block began."""
        known = min(max(0, self.stored - self.seen), chunk.n_rows)
        self.seen += chunk.n_rows
        self._order.add(chunk.y)
        if known == chunk.n_rows:
            return
        first_row = self.seen - chunk.n_rows + known
        rows = replace(chunk.rows(known, chunk.n_rows), first_row=first_row)
        self._group.add(rows)
        assert self._writer is not None, "finished or closed"
        # `given` makes the position that of exactly these rows, however a resumed run cuts blocks.
        self._writer.append(rows, {**position, "given": first_row})

    def finish(self, record: dict, counters: dict[str, int], recipe: Recipe | None, refused: list[str]) -> None:
        """Give the store its name, with its source, its counters, its recipe and the first refused lines."""
        if self.complete:
            return
        if self.seen == 0:
            raise BadInputError(f"{self.path}: this output gets no rows; change --split or --split-seed")
        assert self._writer is not None, "closed before it was finished"
        self.counters = counters
        self.refused = refused
        source = {"made_from": lasting(record), "counters": counters, **({"refused": refused} if refused else {})}
        self.statistics = self._writer.finish(source, recipe).statistics
        self.in_order = self.statistics.groups is None and self._order.found(self.statistics)
        self.close()


def lasting(record: dict) -> dict:
    """`record` without what differs between equal conversions of equal data: modification times and memory."""
    kept = {name: value for name, value in record.items() if name != "features"}
    return {**kept, "inputs": [[name, size] for name, size, _ in record["inputs"]]}


class _GroupLimit:
    """Refuses a row, or the rows of one qid, that need more memory in one shard than planned."""

    def __init__(self, plan: ConvertPlan) -> None:
        self._longest = plan.longest
        self._qid: int | None = None
        self._entries = 0

    def add(self, chunk: Chunk) -> None:
        starts = np.arange(chunk.n_rows)
        if chunk.qid is not None:
            starts = np.flatnonzero(np.diff(chunk.qid, prepend=chunk.qid[0] - 1))
        entries = np.diff(chunk.indptr[np.append(starts, chunk.n_rows)])
        if chunk.qid is not None:
            if int(chunk.qid[0]) == self._qid:
                entries[0] += self._entries
            self._qid, self._entries = int(chunk.qid[-1]), int(entries[-1])
        worst = int(entries.argmax())
        if entries[worst] <= self._longest:
            return
        row = chunk.first_row + int(starts[worst])
        what = f"row {row} (0-based)" if chunk.qid is None else f"qid {chunk.qid[starts[worst]]}"
        needed, left = (format_bytes(count * GROUP_ENTRY_BYTES) for count in (int(entries[worst]), self._longest))
        raise MemoryBudgetError(
            f"{what} has {entries[worst]:,} entries or more, which stay together in one shard and need {needed}, "
            f"but --memory leaves {left} for it; raise --memory"
        )


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
