"""Random work with random accidents for as long as you like: `python scripts/checks/soak.py --minutes 60 --seed 1`.

A world is a folder with sources (svmlight text, CSV tables, matrices), stores, models and checkpoints. Each step does something
to it with the command line, in a process of its own, and mostly something happens to that process: `kill -9` or a signal at a
random moment, a failpoint (killed, EIO or ENOSPC at one step of a write), a limit on file sizes, a source that changes while it
is read, a flipped bit or a missing byte in a file before, a budget that may be too small, a second process with the same target.

After every step:
    the exit code is one that is documented, and none but 1 … for a bug; no traceback, no crash, no hang;
    what bears a final name is whole: a store has the bytes of a conversion that nothing disturbed, a model the weights and the
    certificate of a training that nothing disturbed, or the bytes that it had before;
    damage was found, or changed nothing;
    every lower bound of a problem is at most every objective that was ever reached for it;
    the peak of memory is within the budget;
    files that are not ours are as they were; nothing temporary is left behind by work that ended well.

Prints a line a minute, at the end counts of steps, accidents and exit codes, and ends with 1 at the first violation, with the
commands of its world; `--seed` gives the same steps again (signals come at the same moments by the clock, not by the work done).
Its clock stands still while it is stopped (SIGSTOP to it and its children), which makes room for others on the machine. After
SIGTERM it ends with its step, and its counts.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path

from soak_process import ViolationError, clock
from soak_world import World

STEPS_OF_A_WORLD = 60


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--steps", type=int, default=10**9, help="at most so many")
    parser.add_argument("--seed", type=int, default=1, help="the worlds are SEED, SEED + 1, …")
    parser.add_argument("--folder", type=Path, help="where worlds are made; the one with a violation stays")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    end, seed, steps, said = clock() + 60.0 * options.minutes, options.seed, 0, clock()
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    done = lambda: stopped.is_set() or clock() >= end or steps >= options.steps  # noqa: E731
    while not done():
        folder = Path(tempfile.mkdtemp(dir=options.folder, prefix=f"streamcut-soak-{seed}-"))
        world = World(folder, seed, counts)
        try:
            for _ in range(STEPS_OF_A_WORLD):
                if done():
                    break
                world.step()
                steps += 1
                if clock() - said > 60.0:
                    said = clock()
                    print(f"{steps:,} steps, {(end - said) / 60.0:.0f} minutes to go", flush=True)
        except ViolationError as violation:
            print("\n".join(world.log))
            print(f"VIOLATION in step {world.number} of seed {seed}: {violation}\nThe world is {folder}", flush=True)
            return 1
        shutil.rmtree(folder)
        seed += 1
    for kind in ("step", "accident", "exit"):
        sorted_counts = sorted((name.split(" ", 1)[1], n) for name, n in counts.items() if name.startswith(kind))
        print(f"{kind}s: " + ", ".join(f"{name} {n:,}" for name, n in sorted_counts))
    minutes = options.minutes - (end - clock()) / 60.0
    print(f"{steps:,} steps in {minutes:.1f} minutes in the worlds {options.seed} to {seed - 1}, no violation", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
