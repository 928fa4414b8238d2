"""`convert` on a Dask cluster: text or tables in many files to one store, by all workers, with the same bytes as on one machine.

The client plans and keeps the journal; workers do what `io/conversion/parts.py` describes, each one part or shard at a time. The
work of a dead worker is reassigned. Inputs, output and NAME.parts have to be where all workers see them: in a shared folder, or
at URLs, which is checked first. The statistics of single features are sums in the order of the rows, so the client reads the
finished shards once for them, unless there are too many features to keep any.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import wait
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import streamcut
from streamcut.errors import BadInputError
from streamcut.execution.dask.cluster import Cluster, connect, lost_if_silent
from streamcut.execution.dask.logs import tell_ours_once
from streamcut.foundation.shown import warn
from streamcut.io.conversion import parts
from streamcut.io.conversion.convert import ConvertReport, features_of, label_words, record_of, unusual
from streamcut.io.conversion.options import BY_RECIPE, spelled
from streamcut.io.conversion.prepared import Prepared, prepared
from streamcut.io.conversion.target import lasting
from streamcut.io.dataset import first_rows
from streamcut.io.manifest import StatisticsBuilder
from streamcut.io.opening import open_dataset
from streamcut.io.places.remote import is_url, objects_below, remove_object, size_of, write_object
from streamcut.io.stores.build import build_of
from streamcut.io.stores.leftovers import PARTS_LAYOUT, PROBE, expect_known_names, remove
from streamcut.io.stores.writer import StoreWriter

_USABLE = 0.7  # of a worker's memory limit: above it Dask spills, then pauses, then kills
_AHEAD = 4  # tasks in flight per worker
DEADLINE = 60.0  # seconds that a cluster may have no workers
_CHECK = 1.0  # seconds between checks of the list of workers


def convert_on_cluster(
    inputs: Any,
    output: str | os.PathLike,
    *,
    scheduler: Any,
    workers: int = 2,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
    **options: Any,
) -> ConvertReport:
    """As `convert`, on the workers of a Dask cluster.

    scheduler  as `train` takes it; a "local-cluster" has `workers` processes
    progress   called with (what is made, number done, total)

    Raises UsageError for what only one machine can do: orders and splits of rows, refused lines, learned dictionaries.
    Bins, means and deviations of hashed tables are computed here, by reading the data once.
    """
    began, options = time.monotonic(), spelled(options)
    given = prepared(inputs, output, options)
    for sentence in given.told:
        warn(sentence)
    parts.expect_parts_possible(given.kind, given.paths, given.settings)
    with ExitStack() as stack:
        cluster = stack.enter_context(connect(scheduler, workers=workers, deadline=DEADLINE))
        work = _Work(cluster, given, options, progress)
        stack.enter_context(closing(work))
        return work.run(began)


class _Work:
    """One conversion on one cluster."""

    def __init__(
        self, cluster: Cluster, given: Prepared, options: dict[str, Any], progress: Callable[[str, int, int], None]
    ) -> None:
        self._cluster, self._given, self._progress = cluster, given, progress
        (self._output,) = given.outputs
        self._folder = _Folder(self._output + parts.PARTS)
        keep = ("resume", "force", "memory", "threads", "format", "shard_nnz")
        kind = "parquet" if given.kind == "lists" else given.kind
        own = {"format": kind, "shard_nnz": given.plan.shard_nnz, "threads": 1}
        self._options = {**{name: value for name, value in _as_learned(given, options).items() if name not in keep}, **own}
        self._paths = [path for path in given.paths if _bytes(path)]  # empty files have no rows
        self._places = [f"{self._folder.name}/{number:06d}.zarr" for number in range(len(self._paths))]
        self._futures: deque[Any] = deque()

    def close(self) -> None:
        for future in self._futures:
            future.cancel()

    def run(self, began: float) -> ConvertReport:
        given, settings = self._given, self._given.settings
        if not self._paths:
            raise BadInputError("no rows in the input")
        record = record_of(given)
        self._folder.begin(settings.resume)
        addresses = self._meet()
        memory = memory_of(settings.memory, addresses.values())
        tasks = ((path, place, self._options, memory) for path, place in zip(self._paths, self._places, strict=True))
        for number, _ in enumerate(self._results(parts.make_part, tasks, len(addresses)), start=1):
            self._progress("parts", number, len(self._paths))
        stores = [open_dataset(place) for place in self._places]
        recipe = parts.common_recipe(self._paths, stores)
        report = self._gathered(record, stores, recipe, memory, len(addresses))
        self._folder.remove()
        sizes = [size for _, size, _ in record["inputs"]]
        return ConvertReport(
            outputs={self._output: report[0]},
            counters=unusual(report[1]),
            rows=report[0].n_rows,
            resumed_rows=report[2],
            bytes_in=None if None in sizes else sum(sizes),
            bytes_out=build_of(self._output).stored_bytes(),
            seconds=time.monotonic() - began,
            plan=given.plan,
            label_words=label_words(recipe),
        )

    def _gathered(
        self, record: dict, stores: Sequence[Any], recipe: Any, memory: int | None, workers: int
    ) -> tuple[Any, dict, int]:
        """(statistics, counters, rows that an earlier run had gathered) of the finished store."""
        given, shard_nnz = self._given, self._given.plan.shard_nnz
        writer = StoreWriter(
            self._output,
            shard_nnz=shard_nnz,
            n_features=features_of(given),
            options={**record, "by": "cluster"},
            resume=given.settings.resume,
            force=given.settings.force,
            features=given.plan.features,
            threads=1,
        )
        total = sum(first_rows(store.manifest)[-1] for store in stores)
        with writer:
            begun = 0 if writer.resume_from is None else writer.resume_from["position"]["shard"]
            shards = list(parts.cut(stores, shard_nnz))
            resumed = sum(rows.stop - rows.first for shard in shards[:begun] for rows in shard)
            tasks = (
                (writer.shard_root, number, shards[number], self._places, shard_nnz, memory)
                for number in range(begun, len(shards))
            )
            for number, (info, counted) in enumerate(self._results(parts.gather, tasks, workers), start=begun + 1):
                writer.adopt(info, StatisticsBuilder.from_state(counted))
                self._progress("shards", number, len(shards))
            counters = parts.counters_of(stores)
            if given.kind == "svmlight":
                counters["files"] = len(given.paths)
            statistics = writer.finish({"made_from": lasting(record), "counters": counters}, recipe).statistics
        assert statistics.n_rows == total, "rows were lost between parts and shards"
        return statistics, counters, resumed

    def _meet(self) -> dict[str, int]:
        """{address: memory limit, 0 for none} of the workers, which must see all files. Raises UsageError."""
        client = self._cluster.client
        with lost_if_silent(self._cluster.address):
            client.wait_for_workers(1, timeout=self._cluster.deadline)
            client.run(tell_ours_once)
            client.run(parts.expect_reachable, f"{self._folder.name}/{PROBE}", self._paths, streamcut.__version__)
            client.run(parts.forget)
            found = client.scheduler_info(n_workers=-1)["workers"]
        return {address: worker["memory_limit"] or 0 for address, worker in found.items()}

    def _results(self, function: Callable[..., Any], tasks: Iterable[tuple], workers: int) -> Iterator[Any]:
        """What `function` returns for each of `tasks`, in order; some run ahead."""
        for task in tasks:
            with lost_if_silent(self._cluster.address):
                self._futures.append(self._cluster.client.submit(function, *task, pure=False))
            if len(self._futures) >= _AHEAD * workers:
                yield self._oldest()
        while self._futures:
            yield self._oldest()

    def _oldest(self) -> Any:
        """What the oldest task returns. Raises ClusterLostError, also after DEADLINE without a worker."""
        answer, seen = self._cluster.gather([self._futures[0]]), time.monotonic()
        try:
            while not wait([answer], timeout=_CHECK).done:
                seen = self._cluster.watch(seen)
            with lost_if_silent(self._cluster.address):
                (result,) = answer.result()
        finally:
            answer.cancel()
        self._futures.popleft()
        return result


def memory_of(asked: int | None, limits: Iterable[int]) -> int | None:
    """Bytes that each worker may take, from the bytes `asked` and the workers' limits (0: none); None: what it needs."""
    return min([*([] if asked is None else [asked]), *(int(_USABLE * limit) for limit in limits if limit)], default=None)


def _bytes(path: str) -> int | None:
    return size_of(path) if is_url(path) else os.path.getsize(path)


def _as_learned(given: Prepared, options: dict[str, Any]) -> dict[str, Any]:
    """`options` for workers: features of a hashed table use the bins and means computed here."""
    recipe = given.source.recipe()
    if recipe is None or recipe.table is None or recipe.hash_bits is None or given.settings.recipe is not None:
        return options
    if recipe.labels.learned and not recipe.labels.words:
        return options  # to be refused
    return {"recipe": recipe, **{name: value for name, value in options.items() if name not in BY_RECIPE}}


class _Folder:
    """NAME.parts, on a shared disk or at a URL."""

    def __init__(self, name: str) -> None:
        self.name = name

    def begin(self, resume: bool) -> None:
        """Create it, with a probe; an earlier run's files stay if it is resumed. Raises UsageError for foreign files."""
        if is_url(self.name):
            expect_known_names(self.name, objects_below(self.name), PARTS_LAYOUT)
            if not resume:
                self._remove_objects()
            write_object(f"{self.name}/{PROBE}", b"seen\n")
            return
        if os.path.lexists(self.name) and not resume:
            self.remove()
        os.makedirs(self.name, exist_ok=True)
        Path(self.name, PROBE).write_bytes(b"seen\n")

    def remove(self) -> None:
        if is_url(self.name):
            self._remove_objects()
        else:
            remove(Path(self.name), PARTS_LAYOUT)

    def _remove_objects(self) -> None:
        there = objects_below(self.name)
        expect_known_names(self.name, there, PARTS_LAYOUT)
        for name in there:
            remove_object(f"{self.name}/{name}")
