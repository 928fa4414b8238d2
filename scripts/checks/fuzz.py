"""Fuzz parsers and readers of files for long.

Usage: python scripts/checks/fuzz.py [NAME …] [--seconds S] [--steps N] [--lines N] [--seed K]

Prints how many inputs each fuzzer of tests/inside/kit showed and what became of them; ends with 1 at the first finding, with the
seed that gives it again.
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
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from inside.kit.fuzzing import FUZZERS, make
from inside.kit.fuzzing_text import TEXTS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(FUZZERS)}; default: all")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each")
    parser.add_argument("--steps", type=int, default=sys.maxsize, help="of each at most")
    parser.add_argument("--lines", type=int, default=sys.maxsize, help="of each kind of text at most")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    failed = False
    with tempfile.TemporaryDirectory(prefix="streamcut-fuzz-") as folder:
        made = make(Path(folder))
        for name in options.names or FUZZERS:
            failed |= not _run(name, made, options)
    return int(failed)


def _run(name: str, made: Path, options: argparse.Namespace) -> bool:
    """Whether nothing was found."""
    steps, end = FUZZERS[name](random.Random(options.seed), made), time.monotonic() + options.seconds
    outcomes: Counter[str] = Counter()
    lines, sound = 0, True
    try:
        while sum(outcomes.values()) < options.steps and lines < options.lines and time.monotonic() < end:
            found = next(steps)
            lines += int(found) if name in TEXTS else 0
            outcomes["agrees with the reference" if name in TEXTS else found] += 1
    except Exception:
        traceback.print_exc()
        sound = False
    finally:
        steps.close()
    shown = ", ".join(f"{what} {count:,}" for what, count in sorted(outcomes.items()))
    more = f" ({lines:,} lines or rows)" if lines else ""
    after = "" if sound else f"; FOUND at step {sum(outcomes.values())} of seed {options.seed}"
    print(f"{name}: {sum(outcomes.values()):,} inputs{more}: {shown}{after}", flush=True)
    return sound


if __name__ == "__main__":
    sys.exit(main())
