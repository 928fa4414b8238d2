"""Claims of training against optima in 500 bits (python-flint), of every task and loss, on random, badly scaled problems.

bound ≤ optimum ≤ F(w) ≤ primal, everything finite, "converged" within what was asked for, "rounding" only of gaps that rounding
made. Prints what is false, and how often; exit code 1 if anything is. tests/solvers/test_truth.py does the same with fewer.
Usage: python scripts/checks/check_truth.py [--problems 2000] [--seed 0] [--processes 2] [--kinds hinge,softmax,ranking]
           [--kernels 0]
"""

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from reference import truth
from reference.exact_bounds import Violation

_OFFSETS = (0.0, 1e3, 1e6, 1e9)


def one(kind: str, seed: int) -> tuple[str, list[Violation]]:
    try:
        return kind, truth.check_kernel(seed, _OFFSETS[seed % 4]) if kind == truth.KERNEL else truth.check(kind, seed)
    except Exception as error:
        return kind, [Violation("error", f"{type(error).__name__}: {error}; {kind} {seed}")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--kinds", default=",".join(truth.KINDS))
    parser.add_argument("--kernels", type=int, default=0, help="problems with a kernel, beside the others")
    given = parser.parse_args()
    kinds = [kind for kind in given.kinds.split(",") if kind]
    wanted = [(kinds[i % len(kinds)], given.seed + i // len(kinds)) for i in range(given.problems)] if kinds else []
    wanted += [(truth.KERNEL, given.seed + i) for i in range(given.kernels)]
    tried, false, started = Counter[str](), Counter[tuple[str, str]](), time.monotonic()
    with ProcessPoolExecutor(given.processes) as pool:
        for done in as_completed([pool.submit(one, *each) for each in wanted]):
            kind, violations = done.result()
            tried[kind] += 1
            for violation in violations:
                false[kind, violation.kind] += 1
                print(f"{violation.kind}: {violation.what}", flush=True)
            if tried.total() % 100 == 0:
                print(f"{tried.total()} tried, {false.total()} false, {time.monotonic() - started:.0f} s", flush=True)
    print(f"tried: {dict(tried)}")
    print(f"false: { {f'{kind}, {what}': count for (kind, what), count in false.items()} or 0 }")
    return 1 if false else 0


if __name__ == "__main__":
    sys.exit(main())
