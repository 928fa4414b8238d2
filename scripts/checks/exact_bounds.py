"""Claims of training against exact arithmetic on random problems; tests/inside/solvers/test_exact_bounds.py tries a few.

Prints how many were tried and what was false, by loss and kind of claim; exit code 1 if anything was.
Usage: python scripts/checks/exact_bounds.py [--problems 50000] [--seed 100000] [--processes 2] [--losses hinge,logistic,softmax]
"""

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from reference import exact_bounds, exact_classes
from reference.exact_bounds import Violation

from streamcut.loss_table import ROW_LOSSES

_TOGETHER = 50  # problems that a process is given at a time


def some(loss: str, first: int, count: int) -> tuple[str, int, list[Violation]]:
    found = []
    for seed in range(first, first + count):
        check = exact_classes.check if loss in exact_classes.WAYS else exact_bounds.check
        try:
            found += check(loss, seed)
        except Exception as error:
            found.append(Violation("error", f"{type(error).__name__}: {error}; {loss} {seed}"))
    return loss, count, found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--losses", default=",".join([*ROW_LOSSES, *exact_classes.WAYS]))
    given = parser.parse_args()
    losses = given.losses.split(",")
    tried, false, started = Counter[str](), Counter[tuple[str, str]](), time.monotonic()
    firsts = range(given.seed, given.seed + -(-given.problems // len(losses)), _TOGETHER)
    print(f"{len(firsts) * _TOGETHER * len(losses)} problems of {', '.join(losses)}", flush=True)
    with ProcessPoolExecutor(given.processes) as pool:
        for done in [pool.submit(some, loss, first, _TOGETHER) for first in firsts for loss in losses]:
            loss, count, violations = done.result()
            tried[loss] += count
            for violation in violations:
                false[loss, violation.kind] += 1
                print(f"{violation.kind}: {violation.what}", flush=True)
            if tried.total() % 5000 < _TOGETHER:
                print(f"{tried.total()} tried, {false.total()} false, {time.monotonic() - started:.0f} s", flush=True)
    print(f"tried: {dict(tried)}")
    print(f"false: { {f'{loss}, {kind}': count for (loss, kind), count in false.items()} or 0 }")
    return 1 if false else 0


if __name__ == "__main__":
    sys.exit(main())
