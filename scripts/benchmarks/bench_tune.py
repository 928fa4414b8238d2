"""What `train --folds` reads: 5 folds × 4 values of C next to one training, under the same --memory.

Trains on a store of text-like rows (made once in --folder, by make_data.py) for each C alone, then tunes over all of them, each
run a process of its own, and prints passes, bytes read (decoded), peak memory and seconds. In the end: the bytes that tuning read
over those of one training with the best C, with the largest, and of all that it replaces. Exit code 1: a peak above the budget.

Usage: python scripts/benchmarks/bench_tune.py [--size 4GB] [--memory 1GB] [--folds 5] [--C 0.01,0.1,1,10] [--folder DIR]
           [-- TRAIN OPTIONS]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from bench_memory import STREAMCUT, store

from streamcut.foundation.units import parse_size


def run(*arguments: str) -> tuple[list[dict], float]:
    """(the lines that a command printed, seconds)."""
    started = time.perf_counter()
    done = subprocess.run([*STREAMCUT, *arguments], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.returncode)
    return [json.loads(line) for line in done.stdout.splitlines()], time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"))
    parser.add_argument("--size", default="4GB")
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--folds", default="5")
    parser.add_argument("--C", default="0.01,0.1,1,10")
    parser.add_argument("--alone", help="values of C to train for alone (default: all)")
    parser.add_argument("options", nargs="*")
    given = parser.parse_args()
    path, model = store(given.folder, parse_size(given.size)), given.folder / "bench_tune.npz"
    fixed = [str(path), "--output", str(model), "--force", "--json", "--memory", given.memory, *given.options]
    alone = {}
    for C in (given.alone or given.C).split(","):
        lines, seconds = run("train", *fixed, "--C", C)
        *_, last, result = lines
        alone[float(C)] = last["bytes_read"]
        print(f"C {C:>5}: {last['passes']:4} passes, read {last['bytes_read'] / 1e9:7.2f} GB, {seconds:6.1f} s, peak "
              f"{result['peak'] / 1e6:.0f} MB", flush=True)  # fmt: skip
    lines, seconds = run("train", *fixed, "--C", given.C, "--folds", given.folds)
    models, result = [line for line in lines if line["event"] == "model"], lines[-1]
    read, passes = result["bytes_read"], dict.fromkeys(range(int(given.folds)), 0)
    for line in models:
        passes[line["fold"]] += line["passes"]
    kept = result["peak"] <= parse_size(given.memory)
    missed = sum(not line["result"]["converged"] for line in models)
    print(f"folds: {', '.join(map(str, passes.values()))} passes of the folds, {result['groups']} groups")
    print(f"folds: read {read / 1e9:.2f} GB, {seconds:.1f} s, peak {result['peak'] / 1e6:.0f} MB, best C {result['C']:g}")
    print(f"{missed} of {len(models)} models did not converge")
    for name, C in (("the best C", result["C"]), ("the largest C", max(alone))):
        if C in alone:
            print(f"{read / alone[C]:.2f} times one training with {name}, {C:g}")
    print(f"{read / (int(given.folds) * sum(alone.values())):.2f} times all trainings alone, on all rows")
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
