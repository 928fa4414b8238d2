"""Training on up to 1,024 workers, simulated with measured rates: a table, a plot, and how far the model of cost is off.

The simulation gives out lanes as streamcut does (streamcut.execution.dask: each worker its own, then those of the longest queue),
one task after the other by the scheduler; workers differ in speed, and so do their lanes, by a log-normal part of --spread. One
pass in --failures loses a worker halfway, whose lanes are done again by the others. Sending, adding up sums and the client's work
are as in streamcut.execution.cost, which is the model that the results are put next to.

The other table is of one lane (streamcut.execution.dask.climbing): workers score readings, two for each of their threads at a
time, and the client receives them in order and climbs, in --lanes-passes times fewer passes: with 2 lanes 1.3 to 6 were measured,
with 16 up to 3.2 and more; on celegans_splice, lanes do not converge.

What is assumed and not measured: the data (--bytes, --features, 8 bytes an entry, 100 entries a row), a line of 10 Gbit/s and a
store of 200 MB/s for each worker (--assume), passes and sweeps to a gap of 1 % (--passes, --sweeps; no data of that size was
trained on). Two threads compute more than such a store sends. Lanes are one for each thread, 16 at least; sweeps go over 30 % of
the rows. scripts/benchmarks/bench_cluster.py --rates FILE
measures the rest.

Usage: python scripts/benchmarks/simulate_cluster.py [--rates FILE] [--assume line=10Gbit,store=200MB,threads=2]
           [--plot cluster.png]
"""

from __future__ import annotations

import argparse
import heapq
import json
from collections import deque
from dataclasses import replace
from pathlib import Path

import numpy as np

from streamcut.execution.cost import SENT, Assumed, Work, pass_cost
from streamcut.execution.dask.plan import WorkerProcess, place_lanes
from streamcut.reports.drawing import new_figure

TABLE = (1, 8, 64, 512)
PLOTTED = tuple(2**k for k in range(11))
CACHED = 0.3  # of the rows
SHARD, HELD = 48e6, 20e9  # bytes of a shard, and of rows cached at a client


def lanes_done(work: Work, assumed: Assumed, seconds: float, rng: np.random.Generator, spread: float, fails: bool) -> float:
    """Seconds until all lanes are done that take `seconds` of a thread together."""
    workers = [WorkerProcess(f"w{k:04}", assumed.threads, 0, 0) for k in range(min(assumed.workers, work.lanes))]
    _, lanes_of = place_lanes(work.lanes, workers)
    queues = {address: deque(lanes) for address, lanes in lanes_of.items()}
    slow = {worker.address: rng.lognormal(0.0, spread) for worker in workers}
    lost = workers[0].address if fails and len(workers) > 1 else None
    ends_at = 0.5 * seconds / (assumed.threads * len(workers))
    threads = [(0.0, number, worker.address) for number, worker in enumerate(w for w in workers for _ in range(w.threads))]
    heapq.heapify(threads)
    given = done = 0
    last = 0.0
    while done < work.lanes and threads:
        now, number, address = heapq.heappop(threads)
        if address == lost and now >= ends_at:
            continue
        queue = queues[address] or max(queues.values(), key=len)
        if not queue:
            continue
        queue.popleft()
        given += 1
        end = max(now, given * assumed.task) + seconds / work.lanes * slow[address] * rng.lognormal(0.0, spread)
        if address == lost and end > ends_at:  # it dies at it
            queues[workers[1].address].append(0)
            heapq.heappush(threads, (ends_at + 1.0, number, workers[1].address))
            continue
        done, last = done + 1, max(last, end)
        heapq.heappush(threads, (end, number, address))
    return last


def simulated(work: Work, assumed: Assumed, passes: int, spread: float, failures: int, seed: int) -> float:
    """Seconds of a training with so many passes, each with its sweeps."""
    rng = np.random.default_rng((seed, assumed.workers))
    cost = pass_cost(work, assumed)
    fixed = cost.sending + cost.merging
    reading = work.stored / assumed.store * assumed.threads  # of all threads, which share their worker's line
    total = 0.0
    for number in range(passes):
        seconds = max(work.decoded / assumed.rows, reading)
        fails = failures > 0 and number % failures == failures - 1
        looks = cost.rows + cost.tasks - work.lanes * assumed.task  # over the row state alone
        total += lanes_done(work, assumed, seconds, rng, spread, fails) + fixed + looks + cost.copying + cost.master
        sweep = lanes_done(work, assumed, work.cached / assumed.rows, rng, spread, False)
        by_model = work.lanes * assumed.task + work.cached / (assumed.rows * busy(work, assumed))
        total += work.sweeps * (sweep + cost.sweep - by_model)
    return total


def climbed(work: Work, assumed: Assumed, spread: float, rng: np.random.Generator) -> float:
    """Seconds until the client has climbed on all readings, which workers take in order, each two for a thread at a time."""
    workers, readings = assumed.workers, work.shards
    slow, cost = rng.lognormal(0.0, spread, workers), pass_cost(work, assumed)
    scoring = max(work.decoded / assumed.rows, work.stored / assumed.store * assumed.threads) / readings
    threads = [(0.0, worker) for worker in range(workers) for _ in range(assumed.threads)]
    heapq.heapify(threads)
    room = [deque([0.0] * 2 * assumed.threads) for _ in range(workers)]
    received = stepped = 0.0
    for _ in range(readings):
        now, worker = heapq.heappop(threads)
        end = max(now, room[worker].popleft()) + scoring * slow[worker] * rng.lognormal(0.0, spread)
        heapq.heappush(threads, (end, worker))
        received = max(received, end) + cost.receiving / readings
        stepped = max(stepped, received) + cost.climbing / readings
        room[worker].append(received)
    return stepped + cost.sending + cost.rows + cost.master + work.sweeps * cost.sweep


def busy(work: Work, assumed: Assumed) -> float:
    """Threads that the model has at work in a sweep."""
    threads = min(min(assumed.workers, work.lanes) * assumed.threads, work.lanes)
    return work.lanes / np.ceil(work.lanes / threads)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", metavar="FILE", help="of scripts/benchmarks/bench_cluster.py; rows, adding and task count")
    parser.add_argument("--assume", default="line=10Gbit,store=200MB,threads=2")
    parser.add_argument("--bytes", type=float, default=1e12, help="of the store, decoded too")
    parser.add_argument("--features", type=int, default=10**7)
    parser.add_argument("--passes", type=int, default=10, help="where workers take the steps")
    parser.add_argument("--lanes-passes", type=float, default=4.0, help="times the passes of a client that takes them")
    parser.add_argument("--sweeps", type=int, default=5)
    parser.add_argument("--spread", type=float, default=0.1)
    parser.add_argument("--failures", type=int, default=10, help="one pass in so many loses a worker; 0: none does")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", metavar="FILE")
    options = parser.parse_args()
    assumed = Assumed.parse(options.assume)
    if options.rates:
        measured = json.loads(Path(options.rates).read_text())
        assumed = replace(assumed, **{name: measured[name] for name in ("rows", "adding", "task")})
    rows = int(options.bytes / 8 / 100)

    def work_of(workers: int) -> Work:
        lanes = max(16, workers * assumed.threads)
        size, cached = int(options.bytes), int(CACHED * options.bytes)
        each = {"sums": 3, "cuts": 20, "row_bytes": 48}
        return Work(size, size, rows, lanes, options.features, **each, cached=cached, sweeps=options.sweeps)

    def seconds(workers: int) -> tuple[float, float]:
        """(simulated, by the model)"""
        work, cluster = work_of(workers), replace(assumed, workers=workers)
        by_model = options.passes * pass_cost(work, cluster).iteration
        return simulated(work, cluster, options.passes, options.spread, options.failures, options.seed), by_model

    print(assumed)
    found = {workers: seconds(workers) for workers in sorted({*TABLE, *PLOTTED})}
    alone = found[1][0]
    print(f"{'workers':>7} {'minutes to 1 %':>14} {'efficiency':>10} {'model, minutes':>14}   a pass: largest parts")
    for workers in (*TABLE, PLOTTED[-1]):
        took, by_model = found[workers]
        cost = pass_cost(work_of(workers), replace(assumed, workers=workers))
        parts = {"reading": cost.reading, "computing": cost.computing, "merging": cost.merging, "sending": cost.sending}
        parts |= {"tasks": cost.tasks, "rows": cost.rows, "copying": cost.copying, "master": cost.master}
        parts |= {"sweeps": cost.sweeps * cost.sweep}
        largest = ", ".join(f"{name} {parts[name]:.3g} s" for name in sorted(parts, key=lambda name: -parts[name])[:3])
        print(f"{workers:7,} {took / 60:14.1f} {alone / (workers * took):10.0%} {by_model / 60:14.1f}   {largest}")
    print(f"\none lane, scored by all workers, {HELD / 1e9:.0f} GB cached at the client")
    for workers in (4, 16, 64):
        one = replace(
            work_of(workers), lanes=1, sent=SENT, shards=int(options.bytes / SHARD), cached=int(min(HELD, CACHED * options.bytes))
        )
        cluster, passes = replace(assumed, workers=workers), options.passes / options.lanes_passes
        took = passes * climbed(one, cluster, options.spread, np.random.default_rng(options.seed))
        cost = pass_cost(one, cluster)
        parts = {
            "reading": cost.reading,
            "receiving": cost.receiving,
            "climbing": cost.climbing,
            "rows": cost.rows,
            "a sweep": cost.sweep,
        }
        told = ", ".join(f"{name} {seconds:.3g} s" for name, seconds in parts.items())
        print(f"{workers:7,} {took / 60:14.1f} {'':10} {passes * cost.iteration / 60:14.1f}   {told}")
    if options.plot:
        figure, axes = new_figure("workers", "minutes to 1 %")
        for name, values in (
            ("simulated", [found[workers][0] / 60 for workers in PLOTTED]),
            ("model", [found[workers][1] / 60 for workers in PLOTTED]),
            ("without loss", [alone / workers / 60 for workers in PLOTTED]),
        ):
            axes.plot(PLOTTED, values, label=name, linestyle="--" if name == "without loss" else "-")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.legend()
        figure.savefig(options.plot)


if __name__ == "__main__":
    main()
