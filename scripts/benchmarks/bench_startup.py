"""What starting costs: commands on a few hundred rows, the first time with an empty cache of kernels and once more.

  python scripts/benchmarks/bench_startup.py [--rows 300] [--only NAME …] [--imports]

One command after the other shares the cache, as on a fresh machine, so a first run compiles only what those above it did not.
Prints seconds of processor time (user + system, of the command and of all processes it starts), seconds by the clock, and the
kernels that were added to the cache; in the first line, what importing Numba alone takes. Our bytecode is there, as an
installation leaves it. `--imports` adds the modules a warm command spends most on.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import streamcut
import streamcut.io

MAIN = "from streamcut.cli import main; main()"
COMMANDS = {
    "help": ["--help"],
    "convert": ["convert", "two.svm", "two.zarr"],
    "train": ["train", "two.zarr", "--output", "two.npz", "--force"],
    "predict": ["predict", "two.npz", "two.svm", "-o", "two.txt", "--force"],
    "evaluate": ["evaluate", "two.npz", "two.zarr"],
    "ocas": ["train", "two.zarr", "--output", "ocas.npz", "--solver", "ocas", "--force"],
    "logistic": ["train", "two.zarr", "--output", "log.npz", "--loss", "logistic", "--force"],
    "multiclass": ["train", "three.zarr", "--task", "multiclass", "--output", "three.npz", "--force"],
    "one-vs-rest": ["train", "three.zarr", "--strategy", "one-vs-rest", "--output", "ovr.npz", "--force"],
    "ranking": ["train", "ranks.zarr", "--task", "ranking", "--output", "ranks.npz", "--force"],
    "kernel": ["train", "two.zarr", "--kernel", "rbf", "--output", "rbf.npz", "--force"],
    "smo": ["train", "two.zarr", "--kernel", "rbf", "--solver", "smo", "--output", "smo.npz", "--force"],
}
PREPARED = {"three.zarr": "three.svm", "ranks.zarr": "ranks.svm"}  # converted after `convert` has been measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--only", nargs="+", choices=COMMANDS, metavar="NAME", help=f"of {', '.join(COMMANDS)}")
    parser.add_argument("--imports", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as cache:
        _write(Path(folder), chosen.rows)
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # compiling our sources takes as long as all else of `train`
        places = [*streamcut.__path__, *streamcut.io.__path__]
        subprocess.run([sys.executable, "-m", "compileall", "-q", *places], env=environment, check=True)
        print(f"{'command':14}{'first: processor':>18}{'clock':>8}{'kernels':>9}{'second: processor':>20}{'clock':>8}")
        spent, took = min(_measured(["import numba"], folder, environment) for _ in range(3))
        print(f"{'import numba':14}{'':18}{'':8}{'':9}{spent:20.2f}{took:8.2f}")
        for name in chosen.only or COMMANDS:
            command = COMMANDS[name]
            for store, text in PREPARED.items():
                if store in command and not (Path(folder) / store).exists():
                    _run(["convert", text, store], folder, environment)
            if "two.zarr" in command[1:2] and not (Path(folder) / "two.zarr").exists():
                _run(COMMANDS["convert"], folder, environment)
            if "two.npz" in command[1:2] and not (Path(folder) / "two.npz").exists():
                _run(COMMANDS["train"], folder, environment)
            before = _kernels(cache)
            first = _run(command, folder, environment)
            added = _kernels(cache) - before
            again = [*command, "--force"] if name == "convert" else command
            second = min(_run(again, folder, environment) for _ in range(3))
            print(f"{name:14}{first[0]:18.2f}{first[1]:8.2f}{added:9}{second[0]:20.2f}{second[1]:8.2f}", flush=True)
        if chosen.imports:
            _imports(folder, environment)


def _run(command: list[str], folder: str, environment: dict[str, str]) -> tuple[float, float]:
    """(seconds of processor time, seconds) of a command and all it starts."""
    return _measured([MAIN, *command], folder, environment)


def _measured(program: list[str], folder: str, environment: dict[str, str]) -> tuple[float, float]:
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([sys.executable, "-c", *program], cwd=folder, env=environment, capture_output=True, text=True)
    took, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{' '.join(program)}: {done.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, took


def _kernels(cache: str) -> int:
    return sum(1 for _ in Path(cache).rglob("*.nbc"))


def _imports(folder: str, environment: dict[str, str]) -> None:
    """The outermost modules that `train` spends most on, by `-X importtime`, in milliseconds of the clock."""
    command = [sys.executable, "-X", "importtime", "-c", MAIN, *COMMANDS["train"]]
    least: dict[str, tuple[float, float]] = {}  # of several runs, for others slow some of them down
    for _ in range(7):
        text = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True).stderr
        found = [line[len("import time:") :].split("|") for line in text.splitlines() if line.startswith("import time:")]
        for alone, total, name in found:
            if total.strip().isdigit():
                before = least.get(name.strip(), (np.inf, np.inf))
                least[name.strip()] = min(before[0], int(alone) / 1000), min(before[1], int(total) / 1000)
    own = sum(alone for name, (alone, _) in least.items() if name.startswith("streamcut"))
    every = sum(alone for alone, _ in least.values())
    print(f"\nimports of train, ms with all that they import; all {every:.0f}, ours by themselves {own:.0f}")
    for name, (_, milliseconds) in sorted(least.items(), key=lambda item: -item[1][1])[:25]:
        print(f"{milliseconds:8.1f}  {name}")


def _write(folder: Path, n: int) -> None:
    rng = np.random.default_rng(0)
    X, w = rng.random((n, 9)).round(3), rng.standard_normal((9, 3))
    scores = (X - 0.5) @ w
    kinds = {
        "two.svm": (np.where(scores[:, 0] > 0, 1, -1), None),
        "three.svm": (scores.argmax(axis=1), None),
        "ranks.svm": (np.clip(scores[:, 0].round(), -1, 1).astype(int), np.arange(n) // 10),
    }
    for name, (y, qid) in kinds.items():
        with (folder / name).open("w") as file:
            for row in range(n):
                query = "" if qid is None else f" qid:{qid[row]}"
                file.write(f"{y[row]}{query} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(X[row])) + "\n")


if __name__ == "__main__":
    main()
