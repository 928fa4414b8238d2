"""One class: passes until the gap is 1e-2, 1e-3 and 1e-4 of |F| = ½R², next to LIBLINEAR's -s 21.

R is how far the plane is from the origin. LIBLINEAR's weights, whatever their length, are held against our bound: "above" is how
far its ½r² is below ½R², in parts of that, at most. Seconds are of processor time; ours are those to 1e-3, warm.

    python scripts/benchmarks/bench_one_class.py [DATA] [--most 500] [--nu 0.5,0.1,0.01]

DATA (or STREAMCUT_DATA) has folders usps, letter, mnist with train.svm.xz.
"""

from __future__ import annotations

import argparse
import lzma
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from liblinear.liblinearutil import parameter, problem
from liblinear.liblinearutil import train as liblinear
from sklearn.datasets import load_svmlight_file

from streamcut.io.memory import MemoryDataset
from streamcut.training import train

SETS = {"usps": (1.0, None), "letter": (1.0, None), "mnist": (1.0, 3000)}  # the class, rows of it
LEVELS = (1e-2, 1e-3, 1e-4)


def rows_of(folder: Path, label: float, most: int | None) -> sp.csr_array:
    with lzma.open(folder / "train.svm.xz", "rb") as file:
        X, y = load_svmlight_file(file)
    return sp.csr_array(X[np.flatnonzero(y == label)[:most]])


def square(F: float, c_bar: float) -> float:
    """r² of the F of streamcut.bundle.one_class."""
    return 0.5 / F if c_bar / F >= 2.0 else 2.0 * (c_bar - F) / c_bar**2


def passes(history: list[dict[str, Any]], c_bar: float) -> str:
    found = []
    for level in LEVELS:
        near = (h["passes"] for h in history if square(h["lower_bound"], c_bar) <= (1.0 + level) * square(h["primal"], c_bar))
        found.append(next(near, None))
    return " / ".join("–" if each is None else str(each) for each in found)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("data", nargs="?", default=os.environ.get("STREAMCUT_DATA"))
    asked.add_argument("--most", type=int, default=500)
    asked.add_argument("--nu", default="0.5,0.1,0.01")
    given = asked.parse_args()
    print("| | ν | passes | s | LIBLINEAR above | s |")
    for name, (label, most) in SETS.items():
        X = rows_of(Path(given.data) / name, label, most)
        data, n = MemoryDataset(X, np.ones(X.shape[0])), X.shape[0]
        for nu in map(float, given.nu.split(",")):
            options: dict[str, Any] = {"task": "one-class", "nu": nu, "tol": None, "max_passes": given.most}
            model = train(data, **options, tol_relative=2e-5)
            ours = -time.process_time()
            train(data, **options, tol_relative=1e-3)
            ours += time.process_time()
            furthest = square(model.certificate.lower_bound, model.certificate.c_bar)
            seconds = -time.process_time()
            theirs = liblinear(problem(np.ones(n), sp.csr_matrix(X)), parameter(f"-s 21 -n {nu} -q"))
            seconds += time.process_time()
            w = np.array(theirs.get_decfun()[0])
            scores, k = np.sort(X @ w), nu * n
            r = float(scores @ np.clip(k - np.arange(n), 0.0, 1.0)) / k / float(np.linalg.norm(w))
            until = passes(model.history, model.certificate.c_bar)
            print(f"| {name} | {nu:g} | {until} | {ours:.2f} | {1.0 - r * r / furthest:.1e} | {seconds:.2f} |", flush=True)


if __name__ == "__main__":
    main()
