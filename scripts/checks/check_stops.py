"""Passes and reasons to stop on small random problems: warm starts that must not stall, dense problems that must not take long.

warm   two-class problems of 30–120 rows and 5–39 features, C from 1 to 10⁵, each from the model for C/10: no stall is allowed
dense  50–400 rows, 3–40 features, C from 1 to 10³: percentiles of the passes to the default tolerance

Everything in memory, one lane, one thread, default options. The counts are the same on every machine and under any load.
Usage: python scripts/checks/check_stops.py [--warm 135] [--dense 60] [--max-passes 300] [--solver NAME] [OPTION=VALUE …]
"""

import argparse
import os
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from streamcut.io.memory import MemoryDataset
from streamcut.models.certificate import StopReason
from streamcut.training import train


def problem(seed: int, rows: tuple[int, int], features: tuple[int, int], largest_C: float) -> tuple[MemoryDataset, float]:
    """A random problem: normal features, a planted separator and noise from next to none to as much as signal; and a C."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(rows[0], rows[1] + 1)), int(rng.integers(features[0], features[1] + 1))
    X = rng.standard_normal((n, d))
    score = X @ rng.standard_normal(d) / np.sqrt(d) + 10.0 ** rng.uniform(-2.0, 0.0) * rng.standard_normal(n)
    y = np.where(score > np.median(score), 1.0, -1.0)
    return MemoryDataset(X, y), float(10.0 ** rng.uniform(0.0, np.log10(largest_C)))


@dataclass(frozen=True)
class Line:
    """How one training ended; `gap` as a part of F."""

    seed: int
    C: float
    passes: int
    reason: StopReason
    gap: float

    def __str__(self) -> str:
        return f"seed {self.seed}, C {self.C:.3g}: {self.reason} after {self.passes} passes, gap {100 * self.gap:.2g} % of F"


def warm_start(seed: int, **options: Any) -> Line:
    """A training for C from the model for C/10."""
    data, C = problem(seed, (30, 120), (5, 39), 1e5)
    before = train(data, C=C / 10.0, scheduler="sync", **options)
    return line(seed, train(data, C=C, warm_start=before, scheduler="sync", **options))


def dense_problem(seed: int, **options: Any) -> Line:
    """A training from nothing."""
    data, C = problem(1000 + seed, (50, 400), (3, 40), 1e3)
    return line(seed, train(data, C=C, scheduler="sync", **options))


def line(seed: int, model: Any) -> Line:
    found = model.certificate
    return Line(seed, model.C, model.history[-1]["passes"], found.stop_reason, found.gap / found.primal)


def show(name: str, lines: list[Line], seconds: float) -> None:
    ends = Counter(str(found.reason) for found in lines)
    passes = np.percentile([found.passes for found in lines], [50, 90, 100])
    spread = ", ".join(f"{name} {count:g}" for name, count in zip(("median", "90 %", "most"), passes, strict=True))
    print(f"{name}: {len(lines)} problems, {dict(ends)}, passes: {spread}; {seconds:.0f} processor seconds")
    for found in lines:
        if found.reason is not StopReason.CONVERGED:
            print(f"  {found}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--warm", type=int, default=135)
    parser.add_argument("--dense", type=int, default=60)
    parser.add_argument("--max-passes", type=int, default=300)
    parser.add_argument("--solver", default="bundle-dca")
    parser.add_argument("options", nargs="*", metavar="OPTION=VALUE")
    given = parser.parse_args()
    options: dict[str, Any] = {"solver": given.solver, "max_passes": given.max_passes}
    for name, value in (option.split("=") for option in given.options):
        options[name] = int(value) if value.isdigit() else value
    for name, one, count in (("dense", dense_problem, given.dense), ("warm", warm_start, given.warm)):
        started = time.process_time()
        if lines := [one(seed, **options) for seed in range(count)]:
            show(name, lines, time.process_time() - started)


if __name__ == "__main__":
    main()
