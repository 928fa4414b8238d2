"""Claims of training against optima in 500 bits (python-flint), of every task and loss, on random, badly scaled problems.

bound ≤ optimum ≤ F(w) ≤ primal, everything finite, "converged" within what was asked for, "rounding" only of gaps that rounding
made. Prints what is false, and how often; exit code 1 if anything is. tests/solvers/test_truth.py tries a few.
Usage: python scripts/checks/check_truth.py [--problems 2000] [--seed 0] [--processes 2] [--kinds hinge,softmax,ranking]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from reference import truth
from reference.truth import Violation

_TOGETHER = 20  # problems that a process is given at a time


def some(check: Callable[[str, int], list[Violation]], kind: str, seeds: range) -> tuple[str, int, list[Violation]]:
    """What is false of problems `seeds` of a kind; an exception is false, too."""
    violations: list[Violation] = []
    for seed in seeds:
        try:
            violations += check(kind, seed)
        except Exception as error:
            violations.append(Violation("error", f"{type(error).__name__}: {error}; {kind} {seed}"))
    return kind, len(seeds), violations


def search(check: Callable[[str, int], list[Violation]], wanted: dict[str, range], processes: int) -> int:
    """Check problems {kind: seeds}, print what is false and how often; 1 if anything is."""
    tried, false, started = Counter[str](), Counter[tuple[str, str]](), time.monotonic()
    pieces = [
        (kind, seeds[first : first + _TOGETHER]) for kind, seeds in wanted.items() for first in range(0, len(seeds), _TOGETHER)
    ]
    with ProcessPoolExecutor(processes) as pool:
        for done in as_completed([pool.submit(some, check, *piece) for piece in pieces]):
            kind, count, violations = done.result()
            tried[kind] += count
            for violation in violations:
                false[kind, violation.kind] += 1
                print(f"{violation.kind}: {violation.what}", flush=True)
            if tried.total() % 1000 < count:
                print(f"{tried.total()} tried, {false.total()} false, {time.monotonic() - started:.0f} s", flush=True)
    print(f"tried: {dict(tried)}")
    print(f"false: { {f'{kind}, {what}': count for (kind, what), count in false.items()} or 0 }")
    return 1 if false else 0


def shared(kinds: list[str], problems: int, seed: int) -> dict[str, range]:
    """Seeds of each kind, so that all of them have as many problems in all as were asked for."""
    share, more = divmod(problems, len(kinds))
    return {kind: range(seed, seed + share + (number < more)) for number, kind in enumerate(kinds)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--kinds", default=",".join(truth.KINDS))
    args = parser.parse_args()
    kinds = [kind for kind in args.kinds.split(",") if kind]
    return search(truth.check, shared(kinds, args.problems, args.seed), args.processes)


if __name__ == "__main__":
    sys.exit(main())
