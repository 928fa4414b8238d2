"""The cost of a pass on a cluster: arithmetic on the manifest and on assumed machine rates.

With W workers of t threads, L lanes, D numbers in a vector, T cuts, rates in bytes per second:

    reading    stored bytes / (W · store)                          every worker reads its shards over its own line
    computing  decoded bytes / (min(W t, L) · rows)                verifying, decoding, scores, cuts: the threads that have a lane
    sending    8 D (1 + ⌈log₂ W⌉) / line                           the weights, from worker to worker
    merging    8 D p (1 / line + 1 / adding) at the client, or     partial sums in lane order
               8 D (p / (W line) + p / (W adding) + s / line)      each worker a range of the features, the client their ends
    tasks      (L + n W) · task                                    the scheduler, one after the other
    rows       n · (rows · row bytes / (min(W t, L) · rows))       n passes over the row state alone: line searches, shares
    copying    row bytes · rows / (W line)                         row state to the neighbour, unless all see one folder
    master     8 D (T + 6) / adding                                the client: products of new cuts with all cuts, steps

Where workers score the rows of one lane and the client climbs (streamcut.execution.dask.climbing), a part q of the rows is sent:

    computing  decoded bytes / (W t · rows)                        reading and scoring on all threads
    receiving  (row bytes · rows + q · decoded bytes) / line       the client: row state out, rows not at rest in
    climbing   q · decoded bytes / (1.5 rows)                      the client: steps, one after the other

and there is no merging; passes over the row state and sweeps are the client's alone.

The p = L s vectors of partial sums are merged into s: 1, or 3 for dual ascent (the running w and two cuts).

Reading, computing, receiving and climbing overlap. Dual ascent adds sweeps over cached rows: each processes its part of the rows,
and sends and merges one vector per lane.

`scripts/benchmarks/bench_cluster.py` compares it with measurements, and measures the rates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Self

from streamcut.errors import UsageError
from streamcut.execution.plan import Needs
from streamcut.foundation.units import parse_size
from streamcut.io.dataset import shard_bytes
from streamcut.io.manifest import Manifest

RANGES_FROM = 64 << 20  # bytes of all partial sums of a pass; above, workers add them up, each a range of features
RANGES_WORKERS = 4  # at least this many workers: fewer relieve the client's line too little
_STEPS = 6  # dense vectors that the client reads or writes between two passes
_GAIN = 1.25  # speed-up that doubling the workers must give to count as scaling
_MOST = 1 << 16  # workers that are tried
# Part of the entries that workers send to a client that climbs: 0.81 and 0.96 of text and flights in the second pass, 0.24 and
# 0.36 in the last.
SENT = 0.4
_LOOKED = 16  # bytes of a row that a look reads where nothing is sent: two margins
_CLIMB = 1.5  # times the rate of `rows`: steps on rows that are decoded and scored, 635 MB/s of text
LOOKS = 8  # passes over the row state alone after each data pass: line search, steps, shares


@dataclass(frozen=True, slots=True)
class Assumed:
    """A cluster: rates in bytes a second. The defaults of `rows`, `adding` and `task` were measured on one laptop core.

    workers, threads  processes, and threads of each
    line    between any two machines, client included
    store   read rate of a worker
    rows    decoded row bytes that a thread verifies, decodes and processes
    adding  vector bytes that a core adds up
    task    scheduler seconds per lane
    """

    workers: int = 1
    threads: int = 1
    line: float = 1.25e9
    store: float = 2e8
    rows: float = 4e8
    adding: float = 2e9
    task: float = 2e-3

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse text such as "workers=64,line=10Gbit". Raises UsageError."""
        known = {field.name: field for field in fields(cls)}
        found: dict[str, float] = {}
        for part in text.split(","):
            name, _, value = (word.strip() for word in part.partition("="))
            if name not in known or not value:
                raise UsageError(f"--assume: {part!r} is not one of {', '.join(known)}; write for example workers=64,line=10Gbit")
            found[name] = _whole(name, value) if name in ("workers", "threads") else _rate(name, value)
        return cls(**found)  # type: ignore[arg-type]


def _whole(name: str, value: str) -> int:
    if not value.isdecimal() or not 1 <= int(value) <= _MOST:
        raise UsageError(f"--assume: {name}={value} is not a whole number from 1 to {_MOST:,}")
    return int(value)


def _rate(name: str, value: str) -> float:
    try:
        if name == "task":
            seconds = float(value)
        elif value.endswith("bit"):
            seconds = parse_size(f"{value.removesuffix('bit')}B", option=name) / 8
        else:
            seconds = parse_size(value.removesuffix("/s"), option=name)
    except (UsageError, ValueError):
        seconds = -1.0
    if not 0.0 < seconds < math.inf:
        example = "0.002 (seconds)" if name == "task" else "500MB or 10Gbit (a second)"
        raise UsageError(f"--assume: {name}={value} is not valid; write for example {name}={example}")
    return seconds


@dataclass(frozen=True, slots=True)
class Work:
    """The work of a pass: bytes of the data as stored and as decoded, rows, lanes, and what the solver needs.

    sums    vectors that a lane sums in a pass
    shards  each is a task where a client climbs
    sent    part of the entries that workers send to a client that climbs; None: lanes climb
    looks   passes over the row state alone after each pass through the data
    cached  bytes of rows that a sweep visits; sweeps: the most after each pass
    """

    stored: int
    decoded: int
    rows: int
    lanes: int
    dimension: int
    sums: int
    cuts: int
    row_bytes: int
    cached: int = 0
    sweeps: int = 0
    looks: int = LOOKS
    sent: float | None = None
    shards: int = 1

    @classmethod
    def of(cls, manifest: Manifest, needs: Needs, lanes: int, *, sums: int = 1, sweeps: int = 0, rests: bool = True) -> Self:
        """The work of a run with these `needs` and memory for all that it prefers. `rests`: rows can be at rest."""
        statistics = manifest.statistics
        stored = sum(array.stored_bytes for shard in manifest.shards for array in shard.arrays.values())
        decoded = sum(shard_bytes(manifest, shard) for shard in manifest.shards)
        cached = needs.row_cache[1] if sweeps else 0
        return cls(
            stored,
            decoded,
            rows=statistics.n_rows,
            lanes=lanes,
            dimension=needs.dimension,
            sums=sums,
            cuts=max(needs.max_cuts, 1),
            row_bytes=needs.row_bytes,
            cached=cached,
            sweeps=sweeps if cached else 0,
            shards=len(manifest.shards),
            sent=(SENT if rests else 1.0) if needs.climbing else None,
        )


@dataclass(frozen=True, slots=True)
class PassCost:
    """Seconds of the parts of a pass through the data, and of one sweep after it."""

    reading: float
    computing: float
    receiving: float
    climbing: float
    sending: float
    merging: float
    tasks: float
    rows: float
    copying: float
    master: float
    sweep: float
    sweeps: int

    @property
    def seconds(self) -> float:
        """Seconds of a pass, without sweeps."""
        alone = self.sending + self.merging + self.tasks + self.rows + self.copying + self.master
        return max(self.reading, self.computing, self.receiving, self.climbing) + alone

    @property
    def iteration(self) -> float:
        """Seconds of a pass with all its sweeps."""
        return self.seconds + self.sweeps * self.sweep

    @property
    def parts(self) -> dict[str, float]:
        """Seconds of the parts of the pass itself, by name."""
        return {name: getattr(self, name) for name in self.__slots__ if name not in ("sweep", "sweeps")}


def by_ranges(size: int, workers: int) -> bool:
    """Whether workers, each for a range of features, add up all partial sums (`size` bytes in total), or the client does."""
    return workers >= RANGES_WORKERS and size >= RANGES_FROM


def pass_cost(work: Work, assumed: Assumed) -> PassCost:
    """The cost of a pass on the `assumed` cluster."""
    if work.sent is not None:
        return _climbing(work, work.sent, assumed)
    workers = min(assumed.workers, work.lanes)  # more have no lane
    threads = min(workers * assumed.threads, work.lanes)
    vector = 8.0 * work.dimension
    sending = vector * (1 + math.ceil(math.log2(workers))) / assumed.line
    share = _uneven(work.lanes, threads) / threads
    turn = sending + _merging(vector, work.lanes, 1, workers, assumed) + work.lanes * assumed.task
    return PassCost(
        reading=work.stored / (workers * assumed.store),
        computing=work.decoded * share / assumed.rows,
        receiving=0.0,
        climbing=0.0,
        sending=sending,
        merging=_merging(vector, work.lanes * work.sums, work.sums, workers, assumed),
        tasks=(work.lanes + work.looks * workers) * assumed.task,
        rows=work.looks * work.rows * work.row_bytes / (threads * assumed.rows),
        copying=work.row_bytes * work.rows / (workers * assumed.line) if workers > 1 else 0.0,
        master=vector * (work.cuts + _STEPS) / assumed.adding,
        sweep=work.cached * share / assumed.rows + turn,
        sweeps=work.sweeps,
    )


def _climbing(work: Work, sent: float, assumed: Assumed) -> PassCost:
    """The same where workers score the rows of one lane, and the client takes all steps."""
    workers, vector = assumed.workers, 8.0 * work.dimension
    return PassCost(
        reading=work.stored / (workers * assumed.store),
        computing=work.decoded / (workers * assumed.threads * assumed.rows),
        receiving=(work.row_bytes * work.rows + sent * work.decoded) / assumed.line,
        climbing=sent * work.decoded / (_CLIMB * assumed.rows),
        sending=vector * (1 + math.ceil(math.log2(workers))) / assumed.line,
        merging=0.0,
        tasks=work.shards * assumed.task,
        rows=work.looks * work.rows * _LOOKED / assumed.adding,
        copying=0.0,
        master=vector * (work.cuts + _STEPS) / assumed.adding,
        sweep=work.cached / (_CLIMB * assumed.rows),
        sweeps=work.sweeps,
    )


def _uneven(lanes: int, threads: int) -> float:
    """How much longer the thread with the most lanes takes than it would with its share."""
    return math.ceil(lanes / threads) * threads / lanes


def _merging(vector: float, parts: float, sums: int, workers: int, assumed: Assumed) -> float:
    """Seconds to merge `parts` vectors of `vector` bytes into `sums`."""
    if by_ranges(int(vector * parts), workers):
        return vector * (parts / workers * (1 / assumed.line + 1 / assumed.adding) + sums / assumed.line)
    return vector * parts * (1 / assumed.line + 1 / assumed.adding)


def scales_to(work: Work, assumed: Assumed) -> tuple[int, str]:
    """(the number of workers up to which doubling pays, the most expensive part at twice that number)."""
    workers = 1
    while workers < _MOST:
        now, doubled = (pass_cost(work, replace(assumed, workers=count)) for count in (workers, 2 * workers))
        if now.iteration < _GAIN * doubled.iteration:
            break
        workers *= 2
    if work.sent is None and 2 * workers > work.lanes:
        return workers, f"there are {work.lanes} lanes; --lanes gives more"
    parts = {**doubled.parts, "sweeps": doubled.sweeps * doubled.sweep}
    return workers, max(parts, key=lambda name: parts[name])


def describe(work: Work, assumed: Assumed) -> list[tuple[str, str]]:
    """The cost of a pass as (what, seconds) rows for people."""
    cost = pass_cost(work, assumed)
    alone = pass_cost(work, replace(assumed, workers=1)).iteration
    most, why = scales_to(work, assumed)
    rows = [(name, f"{seconds:.3g} s") for name, seconds in cost.parts.items()]
    rows.append((f"a pass, {assumed.workers:,} workers", f"{cost.seconds:.3g} s"))
    if cost.sweeps:
        rows.append((f"a sweep (at most {cost.sweeps} a pass)", f"{cost.sweep:.3g} s"))
    rows.append(("efficiency", f"{alone / (assumed.workers * cost.iteration):.0%}"))
    rows.append(("scales to", f"{most:,} workers: {why}"))
    if work.sent is not None and (lanes := assumed.workers * assumed.threads) > 1:
        apart = pass_cost(replace(work, sent=None, lanes=lanes), assumed)
        rows.append(
            (f"a pass with --lanes={lanes}, 1.3 to 6 times as many", f"{apart.seconds:.3g} s, a sweep {apart.sweep:.3g} s")
        )
    return rows
