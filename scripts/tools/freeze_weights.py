"""Freezes the weights of small trainings for tests/solvers/test_frozen_weights.py: writes tests/reference/frozen_weights.json.

Run it with the Python of the version whose answers are to stay: it needs no more of streamcut than `train` and `rows`, so
a checkout of an older version in an environment of its own will do. Without names all are made anew; with names only those,
because a change was meant to change them (the commit says which, and why).
Usage: python scripts/tools/freeze_weights.py [NAME …]
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from reference.frozen_weights import CASES, FILE, answer, frozen


def main(names: list[str]) -> None:
    weights = frozen()
    for name in names or CASES:
        weights[name] = answer(name)
        print(f"{name}: {len(weights[name])} numbers", flush=True)
    lines = [f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(weights[name])}" for name in CASES]  # one line a training
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    main(parser.parse_args().names)
