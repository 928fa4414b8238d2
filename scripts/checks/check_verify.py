"""What `verify` says of models with forged records: every kind of certified model, one change after another.

A line is for a kind of model, a letter for each change, the first for none: `r` reached, `f` refuted, `u` undecided, `-` refused
by name.

    python scripts/checks/check_verify.py [--kinds hinge,softmax] [--passes 100]

Ends with status 1 if an honest model is refuted, or a bound above the objective of another model reached.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from reference.forged_models import KINDS, certificates, changes, dataset, trained

from streamcut.errors import BadInputError, UsageError
from streamcut.verification import Outcome, verify

LETTERS = {Outcome.REACHED: "r", Outcome.REFUTED: "f", Outcome.UNDECIDED: "u"}


def answer(model: Any, rows: dict[str, Any], passes: int) -> str:
    """The letter for a model that is said to be trained on these rows."""
    try:
        return LETTERS[verify(model, dataset(rows), max_passes=passes).outcome]
    except (BadInputError, UsageError):
        return "-"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--passes", type=int, default=100)
    asked = parser.parse_args()
    counts: dict[str, Counter[str]] = {}
    wrong = 0
    for name in asked.kinds.split(","):
        began = time.process_time()
        model, rows = trained(name)
        best = model if name.startswith(("smo", "sampled")) else trained(name, tol=None, tol_relative=1e-6)[0]
        honest = answer(model, rows, asked.passes)
        wrong += honest == "f"
        counts.setdefault("honest", Counter())[honest] += 1
        line = []
        for change, other, given in changes(model, rows):
            letter = answer(other, given, asked.passes)
            pairs = zip(certificates(other), certificates(best), strict=True)
            false = given is rows and change != "C" and any(a.lower_bound > b.primal * (1.0 + 1e-6) for a, b in pairs)
            wrong += false and letter == "r"
            counts.setdefault(change, Counter())[letter] += 1
            line.append(letter)
        print(f"{name:28} {honest}  {' '.join(line)}   {time.process_time() - began:.1f} s", flush=True)
    print()
    for change, found in counts.items():
        print(f"{change:24} {'  '.join(f'{letter} {count}' for letter, count in sorted(found.items()))}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
