"""Whether `streamcut train --memory` keeps its promise: peak resident memory for data of 1, 4 and 16 times the budget.

For each budget and solver it trains on stores of text-like rows (made once in --folder, by make_data.py) whose decoded size is
that multiple of the budget, each run a process of its own, and prints the peak (VmHWM), the plan, the bytes read and the time.
Ends with code 1 when a peak is above its budget, or when peaks for the larger stores differ by more than 5 %.

With --shares it shows instead what less memory costs: training to a loose tolerance with --memory so many percent of the decoded
size of one store (--size), for ocas and bundle-dca: passes, bytes read (decoded), minutes.

With --ladder it shows what more memory brings: training on one store (--size) with the defaults and each of these budgets. It
prints passes, bytes read, processor seconds, seconds by the clock and the row cache, and ends with code 1 when a peak is above
its budget, or when a larger budget takes more than 1.05 times the processor time of a smaller one.

Usage: python scripts/benchmarks/bench_memory.py [--folder DIR] [--budgets 400MB 600MB 1GB] [--times 1 4 16] [--passes 4]
           [--solvers …]
       python scripts/benchmarks/bench_memory.py --shares 60 30 10 [--size 4GB] [--folder DIR]
       python scripts/benchmarks/bench_memory.py --ladder 500MB 1GB 2GB 8GB [--size 1188MB] [--folder DIR] [-- TRAIN OPTIONS]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

from streamcut import load_model
from streamcut.foundation.units import parse_size

BYTES_A_ROW = 396  # decoded, with 10,000 features
_RBF = ["--kernel", "rbf", "--gamma", "1"]
_SAMPLED = ["--solver", "sampled-linear", "--set", "samples=100", "--set", "max-cuts=100"]
SOLVERS = {  # name: options
    "predicted": ["--solver", "ocas"],
    "exact": ["--set", "cut=exact"],
    "cpa": ["--solver", "cpa"],
    "bundle-dca": ["--solver", "bundle-dca", "--set", "max-cuts=16"],
    "uncached": ["--solver", "bundle-dca", "--set", "max-cuts=16", "--set", "row-cache=0"],
    "roc-area": ["--task", "roc-area"],
    "f1": ["--loss", "f1"],
    "nystroem": [*_RBF, "--nystroem", "100"],
    "sampled-linear": [*_RBF, *_SAMPLED],
    "bsca": [*_RBF, "--budget", "100", "--max-time", "20s"],
    "ranking": ["--task", "ranking"],
    "multiclass": ["--task", "multiclass", "--set", "max-cuts=16"],
    "crammer-singer": ["--task", "multiclass"],
    "rest": ["--task", "multiclass", "--strategy", "one-vs-rest"],
    "sequence": ["--task", "sequence"],
}
IN_QUERIES = ("ranking", "multiclass", "crammer-singer", "rest", "sequence")  # these take rows in queries, with five labels
LOOSE = ["--C", "0.001", "--tol", "0.01", "--tol-relative", "0.02"]  # for --shares
STREAMCUT = [sys.executable, "-c", "from streamcut.cli import main; main()"]


def store(folder: Path, size: int, kind: str = "text") -> Path:
    """A store of `size` bytes decoded, made if it is not there."""
    path = folder / f"{kind}-{size // 10**6}MB.zarr"
    if not path.exists():
        rows = ["--rows", str(size // BYTES_A_ROW), "--features", "10000", "--shard-nnz", str(1 << 19)]
        maker = [sys.executable, str(Path(__file__).parents[1] / "tools" / "make_data.py")]
        subprocess.run([*maker, str(path), "--kind", kind, *rows], check=True)
    return path


def trained(path: Path, budget: str, model: Path, *options: str) -> tuple[dict, dict]:
    """Train once: (the last iteration, the result with the seconds of the whole command)."""
    fixed = ["--output", str(model), "--force", "--json", "--memory", budget]
    started = time.perf_counter()
    done = subprocess.run([*STREAMCUT, "train", str(path), *fixed, *options], capture_output=True, text=True)
    seconds = time.perf_counter() - started
    if done.returncode:
        sys.exit(done.stderr)
    *_, last, result = map(json.loads, done.stdout.splitlines())
    return last, {**result, "seconds": seconds}


def promise(budgets: list[str], times: list[int], passes: int, solvers: list[str], folder: Path) -> bool:
    """Print the peak for each budget, solver and size; whether all promises are kept."""
    kept = True
    for budget in budgets:
        size = parse_size(budget)
        for solver in solvers:
            peaks = {}
            for factor in times:
                path = store(folder, factor * size, "ranking" if solver in IN_QUERIES else "text")
                limits = ["--set", "max-cuts=200", "--max-passes", str(passes)] if solver != "bsca" else []
                last, result = trained(path, budget, folder / "m.npz", *limits, *SOLVERS[solver])
                peaks[factor] = result["peak"]
                print(
                    f"{budget:>6} {solver:>14} {path.stem:>16}: peak {result['peak'] / 1e6:6.1f} MB, "
                    f"planned {result['planned'] / 1e6:6.1f} MB, read {last.get('bytes_read', 0) / 1e9:6.2f} GB decoded in "
                    f"{last['seconds']:5.1f} s, {result['seconds']:5.1f} s in all",
                    flush=True,
                )
            # data as large as the budget may fit with what is around it; beyond, the peak is the same
            larger = [peak for factor, peak in peaks.items() if factor > 1] or list(peaks.values())
            kept &= max(peaks.values()) <= size and max(larger) <= 1.05 * min(larger)
    return kept


def costs(shares: list[float], size: int, folder: Path) -> bool:
    """Print what training takes with less and less memory; whether every peak was within its budget."""
    path = store(folder, size)
    print(f"{path.stem}: {' '.join(LOOSE)}\n{'memory':>12} {'solver':>10} passes   read GB  minutes   peak MB  gap to optimum")
    kept = True
    for share in shares:
        budget = int(size * share / 100)
        for solver, chosen in (("ocas", ["--solver", "ocas"]), ("bundle-dca", ["--solver", "bundle-dca"])):
            last, result = trained(path, f"{budget}B", folder / "m.npz", *LOOSE, *chosen)
            kept &= result["peak"] <= budget
            print(
                f"{share:4.0f} % {budget / 1e6:6.0f}MB {solver:>9} {last['passes']:6} {last['bytes_read'] / 1e9:9.1f} "
                f"{last['seconds'] / 60:8.2f} {result['peak'] / 1e6:9.0f} {last['gap'] / last['primal']:10.4f}",
                flush=True,
            )
    return kept


def processor_seconds() -> float:
    """Of all commands so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def ladder(budgets: list[str], size: int, folder: Path, options: list[str]) -> bool:
    """Print what training takes with more and more memory; whether peaks were within it, and time did not rise with it."""
    path, kept, least = store(folder, size), True, float("inf")
    print(f"{path.stem}\n  memory  passes   read GB  processor s  seconds   peak MB  row cache")
    for budget in budgets:
        before = processor_seconds()
        last, result = trained(path, budget, folder / "m.npz", *options)
        spent = processor_seconds() - before
        cache = parse_size(load_model(folder / "m.npz").parameters.get("row_cache", "0"))
        kept &= result["peak"] <= parse_size(budget) and spent <= 1.05 * least
        least = min(least, spent)
        print(
            f"{budget:>8} {last['passes']:7} {last['bytes_read'] / 1e9:9.2f} {spent:12.1f} {result['seconds']:8.1f} "
            f"{result['peak'] / 1e6:9.0f} {cache / 1e6:7.0f} MB",
            flush=True,
        )
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"))
    parser.add_argument("--budgets", nargs="+", default=["400MB", "600MB", "1GB"])
    parser.add_argument("--times", nargs="+", type=int, default=[1, 4, 16])
    parser.add_argument("--passes", type=int, default=4)
    parser.add_argument("--solvers", nargs="+", choices=SOLVERS, default=["predicted", "exact", "cpa", "bundle-dca"])
    parser.add_argument("--shares", nargs="+", type=float)
    parser.add_argument("--ladder", nargs="+")
    parser.add_argument("--size", help="of the store of --shares (default: 4GB) or --ladder (3 million rows)")
    parser.add_argument("options", nargs="*", help="of `train`, for --ladder")
    options = parser.parse_args()
    if options.ladder:
        kept = ladder(options.ladder, parse_size(options.size or f"{3 * 10**6 * BYTES_A_ROW}B"), options.folder, options.options)
    elif options.shares:
        kept = costs(options.shares, parse_size(options.size or "4GB"), options.folder)
    else:
        kept = promise(options.budgets, options.times, options.passes, options.solvers, options.folder)
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
