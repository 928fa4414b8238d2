"""Passes with 2, 4 and 8 worker processes on this machine next to the model of their cost, and the rates that it is made of.

STORE: scripts/make_data.py makes one. Every pass reads, verifies and decodes all shards. Rates are measured in this process
before: rows verified, decoded and computed by one thread, vectors added up, an empty task of a lane, and bytes through one
of Dask's connections on this machine. Threads of more workers than processors share them, and so does the model. With --rates
they are written as JSON, for scripts/simulate_cluster.py. Then the bytes between client and workers of a training with row
caches, by kind of pass: what is pickled, a pass for each worker and the answers of all lanes. With --wide the merging of sums
of 10⁷ features is timed, at the client and by workers.

Usage: python scripts/bench_cluster.py STORE [--workers 2,4,8] [--lanes 16] [--repeats 5] [--rates FILE] [--wide]
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from bench_dask import median

import streamcut
from streamcut.compiled import vectors
from streamcut.execution.cost import Assumed, Work, pass_cost
from streamcut.execution.dask import runner as dask_runner
from streamcut.execution.dask.flights import Flights
from streamcut.execution.dask.plan import ClusterNeeds
from streamcut.execution.dask.runner import DaskRunner, connect
from streamcut.execution.feed import Feed
from streamcut.execution.lanes import Lanes, plan_lanes
from streamcut.execution.passes import Pass
from streamcut.execution.plan import Needs
from streamcut.execution.runner import Runner
from streamcut.io.dataset import Dataset, shard_bytes
from streamcut.io.manifest import Manifest
from streamcut.io.opening import open_dataset
from streamcut.losses.hinge import Hinge
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.oracles.decomposable import LinearOracle

WIDE = 10**7
LINE_BYTES = 1 << 26


@dataclass(slots=True)
class Sum:
    """One dense vector."""

    a: np.ndarray


@dataclass(frozen=True)
class Dense(Pass):
    """A partial sum of `size` numbers a lane, and nothing computed."""

    size: int
    needs_data = False
    summed = ("a",)
    row_arrays = ()

    def begin(self) -> Sum:
        return Sum(np.ones(self.size))

    def visit_rows(self, partial, rows) -> None:
        """Nothing is done."""

    def merge(self, total: Sum, part: Sum) -> Sum:
        vectors.add(total.a, part.a)
        return total


def no_warm_up(manifest: Manifest) -> None:
    """The first pass is not counted."""


def echo(block: bytes) -> bytes:
    return block


def scored(runner: Runner | DaskRunner) -> Callable[[], object]:
    """A pass of OCAS through the data: scores, loss and a cut."""
    oracle = LinearOracle(runner, PointwiseRisk(Hinge(1.0)), C=1.0, bias=1.0, keep_margins=True)
    oracle.start()
    w = np.random.default_rng(0).standard_normal(oracle.dimension)
    return lambda: oracle.score_and_cut(w, 0.5)


def rates(data: Dataset, repeats: int) -> Assumed:
    """What one core of this machine does, and Dask's scheduler."""
    decoded = sum(shard_bytes(data.manifest, shard) for shard in data.manifest.shards)
    with Runner(Feed(data), plan_lanes(data.manifest.statistics, 1)) as alone:
        rows = decoded / median(scored(alone), repeats)
    a, b = np.ones(WIDE), np.ones(WIDE)
    adding = 8 * WIDE / median(lambda: vectors.add(a, b), repeats)
    with connect("local-cluster", workers=1, deadline=60.0) as cluster:
        block = os.urandom(LINE_BYTES)
        [worker] = cluster.client.scheduler_info()["workers"]

        def there() -> None:
            futures = cluster.client.scatter([block], direct=True, hash=False, workers=[worker])
            cluster.client.gather(futures, direct=True)

        line = 2 * LINE_BYTES / median(there, repeats)
        lanes = Lanes(tuple(range(65)))
        with on(cluster, data, lanes) as runner:
            task = median(lambda: runner.run(Dense(1)), repeats)  # all lanes of a worker are one task
            client = cluster.client
            task = max(task, median(lambda: [client.submit(echo, b"", pure=False) for _ in range(64)][-1].result(), repeats))
    return Assumed(line=line, store=1e12, rows=rows, adding=adding, task=task / 64)  # the page cache is the store


def on(cluster, data: Dataset, lanes: Lanes) -> DaskRunner:
    scratch = Path(tempfile.gettempdir())
    cluster.prepare(data, scratch, no_warm_up)
    needs = ClusterNeeds(Needs(data.manifest.statistics.n_features + 1, 10, row_bytes=16), data.manifest, lanes)
    cluster.plan(needs, budget=1 << 33)
    for address, worker in cluster.workers.items():  # nothing is kept in memory
        cluster.workers[address] = replace(worker, usable=0)
    return DaskRunner(cluster, data, lanes, scratch=scratch)


@contextmanager
def counted() -> Iterator[dict[str, list[int]]]:
    """By the kind of pass: [passes, bytes that go out, to one worker, bytes that come back from all]."""
    found: dict[str, list[int]] = {}
    submitter, following = dask_runner._Submitter.__init__, Flights.next
    current = [""]

    def watched_submitter(self, runner, name, written, addresses):
        current[0] = name
        count = found.setdefault(name, [0, 0, 0])
        count[0] += 1
        count[1] += len(written)
        submitter(self, runner, name, written, addresses)

    def watched_next(self, lane, given_up):
        results = following(self, lane, given_up)
        found[current[0]][2] += len(pickle.dumps(results, protocol=5))
        return results

    dask_runner._Submitter.__init__, Flights.next = watched_submitter, watched_next  # type: ignore[method-assign]
    try:
        yield found
    finally:
        dask_runner._Submitter.__init__, Flights.next = submitter, following  # type: ignore[method-assign]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store")
    parser.add_argument("--workers", default="2,4,8")
    parser.add_argument("--lanes", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rates", metavar="FILE")
    parser.add_argument("--wide", action="store_true")
    options = parser.parse_args()
    data = open_dataset(options.store)
    lanes = plan_lanes(data.manifest.statistics, options.lanes)
    assumed = rates(data, options.repeats)
    if options.rates:
        Path(options.rates).write_text(json.dumps(asdict(assumed), indent=1))
    print(", ".join(f"{name} {value:.3g}" for name, value in asdict(assumed).items()))
    work = Work.of(data.manifest, Needs(data.manifest.statistics.n_features + 1, 10, row_bytes=0), len(lanes), 0)
    cores = os.cpu_count() or 1
    print(f"{'workers':>7} {'measured s':>10} {'model s':>8} {'ratio':>6}")
    for count in map(int, options.workers.split(",")):
        model = pass_cost(work, replace(assumed, workers=count, rows=assumed.rows * min(1.0, cores / count))).seconds
        with connect("local-cluster", workers=count, deadline=60.0) as cluster, on(cluster, data, lanes) as runner:
            call = scored(runner)
            seconds = median(call, options.repeats)
        print(f"{count:7} {seconds:10.3f} {model:8.3f} {seconds / model:6.2f}")
    with counted() as found:
        streamcut.train(data, scheduler="local-cluster", workers=2, lanes=4, solver="bundle-dca", max_passes=4, memory="4GB")
    print(f"bundle-dca, 4 passes, 2 workers: {'':12} {'number':>8} {'out to each, bytes':>18} {'back from all, bytes':>20}")
    for name, (number, out, back) in found.items():
        print(f"{name:45} {number:8} {out // number:18,} {back // number:20,}")
    if options.wide:
        few = plan_lanes(data.manifest.statistics, 4)
        with connect("local-cluster", workers=2, deadline=60.0) as cluster, on(cluster, data, few) as runner:
            for what, least in (("the client", 1 << 60), ("the workers", 1)):
                dask_runner.BLOCKS_FROM, dask_runner.BLOCKS_WORKERS, cluster.local = least, 1, False
                seconds = median(lambda: runner.run(Dense(WIDE)), options.repeats)
                print(f"4 sums of {WIDE:,} numbers added up by {what}: {seconds:.2f} s")


if __name__ == "__main__":
    main()
