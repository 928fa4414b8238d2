"""A pass on a local Dask cluster next to the same pass on as many threads: all rows in memory, and with no work at all.

Interleaved runs in one go, medians by the clock. STORE must fit in memory twice; scripts/tools/make_data.py makes one. With
--read no rows are kept in memory: every pass reads, verifies and decodes all shards (from the page cache, if they fit there), and
the pass without work is left out.

Usage: python scripts/benchmarks/bench_dask.py STORE [--workers N] [--lanes N] [--repeats N] [--read]
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from streamcut.execution.cluster import ClusterRunner
from streamcut.execution.cluster_connection import connect
from streamcut.execution.feed import Feed
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.passes import Pass
from streamcut.execution.plan import Needs
from streamcut.execution.row_state import RowState
from streamcut.execution.runner import Runner
from streamcut.io.opening import open_dataset
from streamcut.losses.hinge import Hinge
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.oracles.linear import LinearOracle


@dataclass(frozen=True)
class Nothing(Pass):
    """A pass that does nothing with the rows of its lanes: what is left is scheduling."""

    def begin(self, first_row: int) -> int:
        return 0

    def visit_chunk(self, partial, rows, chunk) -> None:
        """Rows come by."""

    def merge(self, total: int, part: int) -> int:
        return total + part


def median(call: Callable[[], object], repeats: int) -> float:
    call()
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
    return float(np.median(seconds))


def measure(runner: Runner, repeats: int, *, empty: bool) -> dict[str, float]:
    """Seconds of a pass of OCAS, of its line search with the step, of a pass without work if wanted."""
    oracle = LinearOracle(runner, PointwiseRisk(Hinge(1.0)), C=1.0, bias=1.0, keep_margins=True)
    oracle.start()
    w = np.random.default_rng(0).standard_normal(oracle.dimension)

    def line_search() -> None:
        oracle.line_search(1.0, 0.0)
        oracle.step(0.5, w)

    found = {"pass": median(lambda: oracle.score_and_cut(w, 0.5), repeats), "line search": median(line_search, repeats)}
    return {**found, "empty pass": median(lambda: runner.run(Nothing()), repeats)} if empty else found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--lanes", type=int)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--read", action="store_true")
    options = parser.parse_args()
    data = open_dataset(options.store)
    statistics = data.manifest.statistics
    lanes = plan_lanes(statistics, options.lanes)
    kept = frozenset(() if options.read else range(len(data.manifest.shards)))
    with connect("local-cluster", workers=options.workers) as cluster:
        cluster.prepare(data, Needs(statistics.n_features + 1, 10, row_bytes=16), lanes, room=1 if options.read else 1 << 40)
        with (
            Runner(Feed(data, kept), lanes, options.workers) as threads,
            ClusterRunner(cluster, data, lanes, options.workers, row_state=RowState(statistics.n_rows)) as dask,
        ):
            runners = threads, dask
            for _ in range(1 if options.read else 2):  # of short passes the second time counts
                rounds = [measure(runner, options.repeats, empty=not options.read) for runner in runners]
    print(f"{statistics.nnz:,} entries, {statistics.n_features:,} features, {len(lanes)} lanes, {options.workers} workers")
    print(f"{'':12} threads ms   Dask ms   difference ms   ratio")
    for name, ours in rounds[0].items():
        theirs = rounds[1][name]
        print(f"{name:12} {1e3 * ours:10.1f} {1e3 * theirs:9.1f} {1e3 * (theirs - ours):15.1f} {theirs / ours:7.2f}")


if __name__ == "__main__":
    main()
