"""Fuzz parsers of text for long.

Usage: python scripts/checks/fuzz.py [NAME …] [--seconds S] [--steps N] [--lines N] [--seed K]

Prints how many inputs each fuzzer of tests/inside/kit showed. A finding ends its fuzzer and is printed with its seed; the others
go on. Ends with 1 after any finding.
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

from inside.kit.text_fuzz import FUZZERS


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
        for name in options.names or FUZZERS:
            failed |= not _run(name, Path(folder), options)
    return int(failed)


def _run(name: str, folder: Path, options: argparse.Namespace) -> bool:
    """Whether nothing was found."""
    steps, end = FUZZERS[name](random.Random(options.seed), folder), time.monotonic() + options.seconds
    steps_done, lines, sound = 0, 0, True
    try:
        while steps_done < options.steps and lines < options.lines and time.monotonic() < end:
            lines += int(next(steps))
            steps_done += 1
    except Exception:
        traceback.print_exc()
        sound = False
    finally:
        steps.close()
    after = "agree with the reference" if sound else f"FOUND at step {steps_done} of seed {options.seed}"
    print(f"{name}: {steps_done:,} inputs ({lines:,} lines): {after}", flush=True)
    return sound


if __name__ == "__main__":
    sys.exit(main())
