"""Whether the least memory that `train` names is enough, and what it names instead fits: a line for each kind of training.

Each runs with 1MB, which is refused, then with the ceiling that the refusal names, and with the least and the option that it
names beside it. Printed are that ceiling, the peak over it, and the same with the option. Ends with code 1 when a peak is above
its ceiling, when a run fails that was said to fit, or when a refusal names no figure; and at the end with the trainings whose
least is more than 1.3 times what they took. With --cold nothing is compiled before a run. --resume keeps each line in a file, and
goes on from it.

Usage: python scripts/checks/check_least.py [--only NAME …] [--features 12 17 22] [--classes 5 50 200] [--rows 20000 80000 320000]
           [--occurring 0.05] [--passes 3] [--most 16GB] [--cold] [--resume FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
from check_ceilings import FIRST, figure, run

import streamcut
from streamcut.foundation.units import format_bytes, parse_size

RBF = "--kernel rbf --gamma 0.1"
LINEAR = {  # name: labels, options of `train`
    "hinge": (2, ""),
    "logistic": (2, "--loss logistic"),
    "squared-hinge": (2, "--loss squared-hinge"),
    "l1": (2, "--l1 1"),
    "std-scale": (2, "--scale std"),
    "newton": (2, "--solver newton --loss logistic"),
    "working-set": (2, "--loss logistic --l1-only 1%"),
    "ocas": (2, "--solver ocas"),
    "ocas-exact": (2, "--solver ocas --set cut=exact"),
    "cpa": (2, "--solver cpa"),
    "f1": (2, "--loss f1"),
    "prec@k": (2, "--loss prec@k --set k=10%"),
    "roc-area": (2, "--task roc-area"),
    "one-class": (1, "--task one-class"),
    "squared": (0, "--task regression"),
    "huber": (0, "--task regression --loss huber"),
    "quantile": (0, "--task regression --loss quantile"),
    "epsilon": (0, "--task regression --loss epsilon-insensitive"),
    "poisson": (5, "--task regression --loss poisson"),
    "crammer-singer": (5, "--task multiclass"),
    "softmax": (5, "--task multiclass --loss softmax"),
    "one-vs-rest": (5, "--task multiclass --strategy one-vs-rest"),
    "nystroem": (2, f"{RBF} --nystroem 50"),
    "fourier": (2, f"{RBF} --fourier 100"),
    "sampled-constant": (2, "--solver sampled-constant --set samples=50"),
    "sampled-linear": (2, f"--solver sampled-linear {RBF} --set samples=50"),
}
KERNEL = {
    "bsca": (2, f"--solver bsca {RBF} --budget 20 --set epochs=0.5"),
    "bsca-project": (2, "--solver bsca --kernel poly --gamma 0.1 --budget 20 --set epochs=0.5"),
    "bsca-classes": (5, f"--task multiclass --solver bsca {RBF} --budget 20 --set epochs=0.5"),
    "bsca-numbers": (0, f"--task regression --solver bsca {RBF} --budget 20 --set epochs=0.5"),
    "bsgd": (2, f"--solver bsgd {RBF} --budget 20 --set epochs=0.5"),
    "smo": (2, f"--solver smo {RBF} --max-time 3s"),
    "sbp": (2, f"--solver sbp {RBF} --max-time 3s --bias 0"),
    "sdca": (2, f"--solver sdca {RBF} --max-time 3s --bias 0"),
}


def store_of(path: Path, rows: int, labels: int, width: int, used: int) -> None:
    """Rows of 30 features of `width`, of which `used` occur; labels are numbers of their own where there are 0."""
    rng, block = np.random.default_rng(0), 5000
    places = np.sort(rng.choice(width, used, replace=False))
    with streamcut.create(path, width, shard_nnz=1 << 17, force=True) as out:
        for start in range(0, rows, block):
            n = min(block, rows - start)
            y = rng.standard_normal(n) if labels == 0 else rng.integers(0, labels, n).astype(float)
            columns = rng.integers(0, used, (n, 30))
            columns[:, :5] = np.minimum(np.clip(y, 0, 9)[:, None] * 50 + rng.integers(0, 50, (n, 5)), used - 1)
            X = sp.csr_array((np.ones(n * 30, np.float32), places[columns.ravel()], np.arange(0, n * 30 + 1, 30)), (n, width))
            X.sum_duplicates()
            out.append(X, y)


class Found(NamedTuple):
    """Of a training: whether what was said of it is so, the least over the peak, and what to print."""

    kept: bool
    ratio: float
    shown: str


def check(store: Path, model: Path, name: str, options: list[str], most: int) -> Found:
    """What becomes of this training. What takes more than `most` bytes at least is not run."""
    line = ["train", str(store), "--output", str(model), "--force", "--quiet", *options]
    refused = run(*line, "--memory", FIRST)
    ceiling = figure(refused.said)
    if refused.code != 7 or ceiling is None:
        return Found(False, 0.0, f"{name:>44} WRONG {refused.said}")
    asked, ratio = [(ceiling, [])], 0.0
    if other := re.search(r"The least is ([\d.]+ [kMG]B), with (--.*)$", refused.said):
        asked.append((int(1.01 * parse_size(other[1].replace(" ", ""))), other[2].split()))  # the figure is rounded
    shown, kept = [], True
    for size, more in asked:
        if size > most:
            shown.append(f"{' '.join(more)} {format_bytes(size):>7} not run")
            continue
        ran = run(*line, *more, "--memory", f"{size}B")
        good = ran.code == 0 and ran.peak <= size
        kept &= good
        ratio = ratio or size / max(ran.peak, 1)
        said = f" WRONG code {ran.code} {ran.said[-300:]}" * (not good)
        shown.append(f"{' '.join(more)} {format_bytes(size):>7} peak {ran.peak / size:5.2f}{said}")
    return Found(kept, ratio, f"{name:>44} {' | '.join(shown)}")


@contextmanager
def nothing_compiled(cold: bool) -> Iterator[None]:
    """Within, programs that are started find no machine code if it is to be `cold`."""
    with ExitStack() as stack:
        if cold:
            place = stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp"))
            stack.enter_context(patch.dict(os.environ, NUMBA_CACHE_DIR=place))
        yield


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=[*LINEAR, *KERNEL], default=[*LINEAR, *KERNEL])
    parser.add_argument("--features", nargs="+", type=int, default=[12, 17, 22], help="powers of 2")
    parser.add_argument("--classes", nargs="+", type=int, default=[5], help="of those that have several")
    parser.add_argument("--occurring", type=float, default=0.05, help="part of them that rows have")
    parser.add_argument("--rows", nargs="+", type=int, default=[20_000])
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--most", default="16GB", help="that a training may take")
    parser.add_argument("--cold", action="store_true", help="compile everything anew for each training")
    parser.add_argument("--resume", type=Path, help="a file of what was found, which is not run again")
    given, kept, high = parser.parse_args(), True, []
    most = parse_size(given.most, option="--most")
    known: dict[str, Found] = {}
    if given.resume and given.resume.exists():
        known = {name: Found(*found) for name, *found in map(json.loads, given.resume.read_text().splitlines())}
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        for power, rows, name in product(given.features, given.rows, given.only):
            labels, options = (LINEAR | KERNEL)[name]
            for classes in given.classes if "multiclass" in options else [labels]:
                width, store = 1 << power, Path(folder) / f"{power}-{rows}-{classes}.zarr"
                passes = ["--max-passes", str(given.passes)] * (name in LINEAR)
                what = f"2^{power} × {rows}, {classes} classes, {name}{', cold' * given.cold}"
                if what not in known:
                    if not store.exists():
                        store_of(store, rows, classes, width, max(30, int(given.occurring * width)))
                    with nothing_compiled(given.cold):
                        known[what] = check(store, Path(folder) / "m.npz", what, [*options.split(), *passes], most)
                    if given.resume:
                        with open(given.resume, "a") as file:
                            file.write(json.dumps([what, *known[what]]) + "\n")
                found = known[what]
                print(found.shown, flush=True)
                kept &= found.kept
                high += [f"{what}: {found.ratio:.2f}"] * (found.ratio > 1.3)
    print("least over peak above 1.3:", "; ".join(high) or "none")
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
