"""Claims of training against exact arithmetic on random problems; tests/solvers/test_truth.py tries a few.

Prints how many were tried and what was false, by loss and kind of claim; exit code 1 if anything was.
Usage: python scripts/checks/exact_bounds.py [--problems 50000] [--seed 100000] [--processes 2] [--losses hinge,logistic]
"""

from __future__ import annotations

import argparse
import sys

from check_truth import search, shared
from reference.exact_bounds import check

from streamcut.loss_table import ROW_LOSSES


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--losses", default=",".join(ROW_LOSSES))
    given = parser.parse_args()
    return search(check, shared(given.losses.split(","), given.problems, given.seed), given.processes)


if __name__ == "__main__":
    sys.exit(main())
