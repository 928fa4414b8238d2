"""Whether `streamcut train --memory` keeps its promise: peak resident memory for data of 1, 4 and 16 times the budget.

For each budget and solver it trains on stores of text-like rows (made once in --folder, by make_data.py) whose decoded size is
that multiple of the budget, each run a process of its own, and prints the peak (VmHWM), the plan, the bytes read and the time.
Ends with code 1 when a peak is above its budget, or when peaks for the larger stores differ by more than 5 %.

Usage: python scripts/bench_memory.py [--folder DIR] [--budgets 400MB 600MB 1GB] [--times 1 4 16] [--passes 4]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from streamcut.units import parse_size

BYTES_A_ROW = 396  # decoded, with 10,000 features
SOLVERS = {"predicted": ["--cut", "predicted"], "exact": ["--cut", "exact"], "cpa": ["--solver", "cpa"]}
SOLVERS["bundle-dca"] = ["--solver", "bundle-dca", "--max-cuts", "16"]
STREAMCUT = [sys.executable, "-c", "from streamcut.cli import main; main()"]


def store(folder: Path, size: int) -> Path:
    """A store of `size` bytes decoded, made if it is not there."""
    path = folder / f"text-{size // 10**6}MB.zarr"
    if not path.exists():
        rows = ["--rows", str(size // BYTES_A_ROW), "--features", "10000", "--shard-nnz", str(1 << 19)]
        maker = [sys.executable, str(Path(__file__).with_name("make_data.py"))]
        subprocess.run([*maker, str(path), "--kind", "text", *rows], check=True)
    return path


def measure(path: Path, budget: str, solver: str, passes: int, model: Path) -> tuple[int, float]:
    """Train once and print what it took; (peak in bytes, seconds)."""
    options = ["--model", str(model), "--force", "--json", "--memory", budget, "--max-cuts", "200", "--max-passes", str(passes)]
    started = time.perf_counter()
    done = subprocess.run([*STREAMCUT, "train", str(path), *options, *SOLVERS[solver]], capture_output=True, text=True)
    seconds = time.perf_counter() - started
    if done.returncode:
        sys.exit(done.stderr)
    *_, last, result = map(json.loads, done.stdout.splitlines())
    peak, planned = result["peak"] / 1e6, result["planned"] / 1e6
    print(
        f"{budget:>6} {solver:>10} {path.stem:>13}: peak {peak:6.1f} MB, planned {planned:6.1f} MB, "
        f"read {last['bytes_read'] / 1e9:6.2f} GB decoded in {last['seconds']:5.1f} s, {seconds:5.1f} s in all",
        flush=True,
    )
    return result["peak"], seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"))
    parser.add_argument("--budgets", nargs="+", default=["400MB", "600MB", "1GB"])
    parser.add_argument("--times", nargs="+", type=int, default=[1, 4, 16])
    parser.add_argument("--passes", type=int, default=4)
    arguments = parser.parse_args()
    kept = True
    for budget in arguments.budgets:
        size = parse_size(budget)
        for solver in SOLVERS:
            peaks = {
                times: measure(
                    store(arguments.folder, times * size), budget, solver, arguments.passes, arguments.folder / "m.npz"
                )[0]
                for times in arguments.times
            }
            # data as large as the budget may fit with what is around it; beyond, the peak is the same
            larger = [peak for times, peak in peaks.items() if times > 1] or list(peaks.values())
            kept &= max(peaks.values()) <= size and max(larger) <= 1.05 * min(larger)
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
