"""Training with 2, 4 and 8 worker processes on this machine next to the model of its cost, and the rates that it is made of.

Without STORE it makes two of text (scripts/tools/make_data.py), of many features and of few. No shard stays in memory: every pass
reads, verifies and decodes all of them. Rates are measured in this process before: rows verified, decoded and computed by one
thread in a pass of the solver, vectors added up, an empty task of a lane, and bytes through one of Dask's connections on this
machine. Threads of more workers than processors share them, in the model too. Sweeps over cached rows are as many as the training
did. With --rates the rates are written as JSON, for scripts/benchmarks/simulate_cluster.py.

Then the bytes between client and workers of a training with row caches, by kind of pass: what is pickled, a pass for each worker
and the answers of all lanes. With --wide the merging of sums of 10⁷ features is timed, at the client and by workers.

Usage: python scripts/benchmarks/bench_cluster.py [STORE] [--workers 2,4,8] [--lanes 16] [--passes 6] [--rates FILE] [--wide]
                                       [--only times|bytes|merging]
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from bench_dask import median

import streamcut
from streamcut.compiled import vectors
from streamcut.config import TrainOptions
from streamcut.execution.cost import Assumed, pass_cost
from streamcut.execution.dask import runner as dask_runner
from streamcut.execution.dask.flights import Flights
from streamcut.execution.dask.plan import ClusterNeeds
from streamcut.execution.dask.runner import DaskRunner, connect
from streamcut.execution.feed import Feed
from streamcut.execution.lanes import Lanes, plan_lanes
from streamcut.execution.passes import Pass
from streamcut.execution.plan import Needs
from streamcut.execution.runner import Runner
from streamcut.foundation.units import parse_size
from streamcut.io.dataset import Dataset, shard_bytes
from streamcut.io.opening import open_dataset
from streamcut.losses.hinge import Hinge
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.models.linear import LinearModel
from streamcut.oracles.linear import LinearOracle
from streamcut.reports.costs import cluster_work
from streamcut.training import Session

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from make_data import main as make_data

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
    needs_data: bool = False  # type: ignore[misc]  # lanes go out one by one, then
    summed = ("a",)
    row_arrays = ()

    def begin(self) -> Sum:
        return Sum(np.ones(self.size))

    def visit_rows(self, partial, rows) -> None:
        """Nothing is done."""

    def merge(self, total: Sum, part: Sum) -> Sum:
        vectors.add(total.a, part.a)
        return total


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
        with on(cluster, data, Lanes((0,) * 65)) as runner:
            task = median(lambda: runner.run(Dense(1, needs_data=True)), repeats) / 64
    return Assumed(line=line, store=1e12, rows=rows, adding=adding, task=task)  # the page cache is the store


def on(cluster, data: Dataset, lanes: Lanes) -> DaskRunner:
    scratch = Path(tempfile.gettempdir())
    cluster.prepare(data, scratch)
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


def trained(data: Dataset, passes: int, **options: Any) -> tuple[float, LinearModel]:
    """(seconds of an iteration, the median but for the first two, the model)."""
    at: list[float] = []
    given: dict[str, Any] = {"C": 1.0, "tol": 1e-9, "tol_relative": None, "max_passes": passes, "memory": "6GB", **options}
    with warnings.catch_warnings(action="ignore"):
        model = streamcut.train(data, on_iteration=lambda record: at.append(record.seconds), **given)
    assert isinstance(model, LinearModel)
    return float(np.median(np.diff(at[1:]))), model


def compare(data: Dataset, solver: str, assumed: Assumed, workers: list[int], lanes: int, passes: int) -> None:
    """predicted | measured | ratio of an iteration."""
    decoded = sum(shard_bytes(data.manifest, shard) for shard in data.manifest.shards)
    options: dict[str, Any] = {"solver": solver, "lanes": lanes}
    caches = {"row_cache": "0"} if solver == "bundle-dca" else {}
    alone, _ = trained(data, passes, scheduler="sync", **options, **caches)
    assumed, cores = replace(assumed, rows=decoded / alone), os.cpu_count() or 1
    for count in workers:
        with counted() as found:
            seconds, model = trained(data, passes, scheduler="local-cluster", workers=count, **options)
        asked = TrainOptions(scheduler="local-cluster", workers=count, **options)
        work = cluster_work(Session(data, asked, scheduler=None))
        if solver == "bundle-dca":
            size = parse_size(str(model.parameters["row_cache"]), option="row_cache")
            work = replace(work, cached=size)
        cost = pass_cost(work, replace(assumed, workers=count, rows=assumed.rows * min(1.0, cores / count)))
        turns = found.get("SweepPass", (0,))[0] / passes
        sweeps = turns * cost.sweep
        predicted = cost.seconds - cost.copying + sweeps  # the processes share a folder
        parts = {**cost.parts, "sweeps": sweeps, "copying": 0.0}
        largest = ", ".join(f"{name} {parts[name]:.3f}" for name in sorted(parts, key=lambda name: -parts[name])[:4])
        print(f"{solver:24} {count:7} {predicted:11.3f} {seconds:10.3f} {predicted / seconds:6.2f}   {largest}", flush=True)


def traffic(data: Dataset, lanes: int, passes: int) -> None:
    """Bytes between client and workers."""
    with counted() as found:
        _, model = trained(data, passes, scheduler="local-cluster", workers=2, lanes=lanes, solver="bundle-dca")
    features = data.manifest.statistics.n_features
    print(f"\nbundle-dca, {features:,} features, {lanes} lanes, row caches of {model.parameters['row_cache']}")
    print(f"{'kind of pass':24} {'a data pass':>12} {'out to each, bytes':>18} {'back from all, bytes':>20}")
    for name, (number, out, back) in found.items():
        print(f"{name:24} {number / passes:12.1f} {out // number:18,} {back // number:20,}")
    out, back = (sum(each[k] for each in found.values()) / passes for k in (1, 2))
    print(f"{'all, a data pass':24} {'':12} {out:18,.0f} {back:20,.0f}", flush=True)


def merging(data: Dataset, assumed: Assumed, repeats: int) -> None:
    """Sums of WIDE features."""
    print(f"\nsums of {WIDE:,} numbers: seconds, and by the model")
    print(f"{'workers':>7} {'lanes':>5} {'at the client':>20} {'by workers':>20}")
    for workers, lanes in ((2, 4), (4, 8)):
        few, cells = plan_lanes(data.manifest.statistics, lanes), []
        with connect("local-cluster", workers=workers, deadline=60.0) as cluster, on(cluster, data, few) as runner:
            for least in (1 << 60, 1):
                dask_runner.RANGES_FROM, dask_runner.RANGES_WORKERS, cluster.local = least, 1, False
                seconds = median(lambda: runner.run(Dense(WIDE)), repeats)
                one = 8.0 * WIDE * (1 / assumed.line + 1 / assumed.adding)
                model = lanes * one if least > 1 else lanes / workers * one + 8.0 * WIDE / assumed.line
                cells.append(f"{seconds:9.2f} ({model:.2f})")
        print(f"{workers:7} {lanes:5} {cells[0]:>20} {cells[1]:>20}", flush=True)


def stores(given: str | None, folder: Path, rows: int) -> list[Dataset]:
    """The store that was given, or two made here."""
    if given is not None:
        return [open_dataset(given)]
    for features in (50_000, 4_000):
        make_data([str(folder / f"{features}.zarr"), "--rows", str(rows), "--features", str(features), "--shard-nnz", "1000000"])
    return [open_dataset(str(path)) for path in sorted(folder.glob("*.zarr"), reverse=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", nargs="?")
    parser.add_argument("--rows", type=int, default=300_000, help="of the stores that are made here")
    parser.add_argument("--workers", default="2,4,8")
    parser.add_argument("--lanes", type=int, default=16)
    parser.add_argument("--passes", type=int, default=6)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rates", metavar="FILE")
    parser.add_argument("--wide", action="store_true")
    parser.add_argument("--only", choices=("times", "bytes", "merging"))
    options = parser.parse_args()
    ClusterNeeds.pins = lambda *_: (frozenset(), 0)  # type: ignore[method-assign]  # nothing is kept in memory
    with tempfile.TemporaryDirectory() as folder:
        found = stores(options.store, Path(folder), options.rows)
        assumed = Assumed() if options.only == "bytes" else rates(found[0], options.repeats)
        if options.rates:
            Path(options.rates).write_text(json.dumps(asdict(assumed), indent=1))
        if options.only != "bytes":
            print(", ".join(f"{name} {value:.3g}" for name, value in asdict(assumed).items()))
        if options.only in (None, "times"):
            print(f"{'an iteration':24} {'workers':>7} {'predicted s':>11} {'measured s':>10} {'ratio':>6}   largest parts")
            for data in found:
                for solver in ("ocas", "bundle-dca"):
                    compare(data, solver, assumed, [*map(int, options.workers.split(","))], options.lanes, options.passes)
        for data in found if options.only in (None, "bytes") else ():
            traffic(data, options.lanes, options.passes)
        if options.wide or options.only == "merging":
            merging(found[0], assumed, options.repeats)


if __name__ == "__main__":
    main()
