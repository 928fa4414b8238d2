"""Fuzz the parser of svmlight text for long.

Usage: python scripts/checks/fuzz.py [--seconds S] [--steps N] [--seed K]

Prints how many files tests/inside/kit/svmlight_fuzz.py showed; a finding with its seed. Ends with 1 after a finding.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from inside.kit.svmlight_fuzz import fuzz


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--steps", type=int, default=sys.maxsize)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    done, lines, end = 0, 0, time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory(prefix="streamcut-fuzz-") as folder:
        steps = fuzz(random.Random(options.seed), Path(folder))
        try:
            while done < options.steps and time.monotonic() < end:
                lines += int(next(steps))
                done += 1
        except Exception:
            traceback.print_exc()
            print(f"FOUND at step {done} of seed {options.seed}")
            return 1
    print(f"{done:,} files ({lines:,} lines) agree with the reference")
    return 0


if __name__ == "__main__":
    sys.exit(main())
