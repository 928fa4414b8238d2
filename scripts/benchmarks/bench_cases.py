"""Passes and processor time to the default stop, for many sets, losses, C and row caches; two versions compared.

One thread, one lane; seconds are that thread's processor time, of the second run where the first took less than a second. Rows
are in memory, with a row cache of the given size; with the cache "disk" they are read from a store, with what a budget of 300 MB
leaves to `train`. The solver is bundle-dca, or that of `--solver`. NAME:K is class K against the rest; large sets are thinned.
Sets with two labels or classes have losses of labels and, their labels taken as numbers, those of residuals; sets of numbers have
the latter alone. `run` adds to what FILE has, so that two versions can take turns, set by set: their ratio then says something on
a busy machine, too.
`--options` are given to every training: lanes=4,max_cuts=8.
Usage: python scripts/benchmarks/bench_cases.py run FILE [NAME …] [--max-passes N] [--losses a,b] [--Cs 1,10]
       [--caches 0,auto,disk] [--solver NAME] [--options a=1,b=2]
       python scripts/benchmarks/bench_cases.py compare BEFORE AFTER [--worst N]
"""

import argparse
import json
import lzma
import math
import os
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

DATA = Path(os.environ.get("STREAMCUT_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
ROWS = {"mnist": 4000, "skin_nonskin": 20_000, "celegans_splice": 6000, "flights3m": 200_000, "conll2000": 40_000}
ROWS["kdd99_10pct"] = 50_000
SETS = ["a9a", "ijcnn1", "spambase", "reuters_moneyfx", "reuters21578", "news20_bydate:1", "mnist:8", "svmguide1", "skin_nonskin"]
SETS += ["agaricus", "dna:2", "celegans_splice", "flights3m", "conll2000:3", "mq2007_part"]
LABELS, NUMBERS = ("hinge", "squared-hinge", "logistic"), ("squared", "epsilon-insensitive")
OF_NUMBERS = {"mq2007_part", "ord_abalone", "ord_bank32nh", "ord_california", "ord_computer"}
DISK, FREE = "disk", 155_000_000  # what 300 MB leave to a process that has only loaded what it needs
SHORT = 1.0  # seconds: runs below it are timed again, their kernels loaded


def load(problem: str) -> tuple[sp.csr_array, np.ndarray]:
    """The training set, thinned where it is large; the file is parsed once."""
    name, _, label = problem.partition(":")
    kept = Path(tempfile.gettempdir()) / "streamcut-bench" / f"{name}.npz"
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        with lzma.open(DATA / name / "train.svm.xz") as file:
            X, y = load_svmlight_file(file, zero_based=False, dtype=np.float32)
        chosen = np.random.default_rng(0).permutation(len(y))[: ROWS.get(name)]
        X = X[chosen]
        part = kept.with_suffix(f".{os.getpid()}.npz")
        np.savez(part, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=y[chosen])
        part.replace(kept)
    with np.load(kept) as found:
        X = sp.csr_array((found["data"], found["indices"], found["indptr"]), shape=tuple(found["shape"]))
        y = found["y"]
    if name == "mnist":
        X = X / np.float32(255.0)
    if label:
        y = np.where(y == float(label), 1.0, -1.0)
    elif name not in OF_NUMBERS:
        y = np.where(y == y.max(), 1.0, -1.0)
    return sp.csr_array(X), y


def stored(X: sp.csr_array, y: np.ndarray, folder: str) -> str:
    """A store of the rows, in the format of the version that runs."""
    import streamcut

    text, store = Path(folder) / "rows.svm", Path(folder) / "rows.zarr"
    if not store.exists():
        dump_svmlight_file(X, y, str(text), zero_based=False)
        streamcut.convert(str(text), str(store), n_features=X.shape[1])
    return str(store)


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def run(options: argparse.Namespace) -> None:
    from streamcut.io.memory import MemoryDataset
    from streamcut.training import train

    file = Path(options.file)
    found = json.loads(file.read_text()) if file.exists() else {}
    more = dict(pair.split("=") for pair in options.options.split(",")) if options.options else {}
    common = {"lanes": 1, **{name: int(value) for name, value in more.items()}}
    for problem in options.problems:
        X, y = load(problem)
        data = MemoryDataset(X, y)
        folder = tempfile.TemporaryDirectory(prefix="streamcut-bench-")
        losses = NUMBERS if problem.partition(":")[0] in OF_NUMBERS else LABELS + NUMBERS
        chosen = [loss for loss in losses if options.losses is None or loss in options.losses.split(",")]
        for loss, C, cache in product(chosen, options.Cs.split(","), options.caches.split(",")):
            task = "regression" if loss in NUMBERS else "binary"
            given = {"task": task, "loss": loss, "C": float(C), "solver": options.solver, **common}
            given |= {"memory": f"{resident() + FREE}B"} if cache == DISK else {"row_cache": cache}
            rows = stored(X, y, folder.name) if cache == DISK else data
            for _ in range(2):
                started = time.thread_time()
                model = train(rows, scheduler="sync", max_passes=options.max_passes, **given)
                seconds = time.thread_time() - started
                if seconds > SHORT:
                    break
            certificate = model.certificate
            found[f"{problem} {loss} {C} {cache}"] = {
                "passes": model.history[-1]["passes"],
                "seconds": round(seconds, 4),
                "converged": certificate.converged,
                "gap": certificate.gap / certificate.c_bar,
            }
        folder.cleanup()
        file.write_text(json.dumps(found, indent=0))
        print(
            f"{problem}: {sum(each['seconds'] for name, each in found.items() if name.startswith(f'{problem} ')):.1f} s",
            flush=True,
        )


def compare(options: argparse.Namespace) -> None:
    before, after = (json.loads(Path(file).read_text()) for file in (options.before, options.after))
    names = [name for name in before if name in after]
    groups = {"all": names}
    for place, what in ((0, "set"), (1, "loss"), (2, "C"), (3, "cache")):
        for name in names:
            groups.setdefault(f"{what} {name.split()[place]}", []).append(name)
    head = f"{'':28} {'cases':>6} {'passes':>15} {'ratio':>6} {'seconds':>17} {'ratio':>6} {'median':>7} {'not ended':>10}"
    print(head)
    for group, chosen in groups.items():
        old, new = ([table[name] for name in chosen] for table in (before, after))
        passes, seconds = ([sum(each[what] for each in table) for table in (old, new)] for what in ("passes", "seconds"))
        ratios = [b["seconds"] / a["seconds"] for a, b in zip(old, new, strict=True)]
        left = [sum(not each["converged"] for each in table) for table in (old, new)]
        shown = f"{passes[0]:7} {passes[1]:7} {passes[1] / passes[0]:6.2f} {seconds[0]:8.2f} {seconds[1]:8.2f}"
        shown += f" {seconds[1] / seconds[0]:6.2f} {math.exp(np.mean(np.log(ratios))):7.2f} {left[0]:4} {left[1]:5}"
        print(f"{group:28} {len(chosen):6} {shown}")
    for what in ("passes", "seconds"):
        ratio = {name: after[name][what] / before[name][what] for name in names}
        print(f"\nworst by {what}")
        for name in sorted(names, key=ratio.__getitem__, reverse=True)[: options.worst]:
            a, b = before[name], after[name]
            ends = ["" if each["converged"] else f" (gap {each['gap']:.0e})" for each in (a, b)]
            print(f"  {name:44} {a[what]:>8}{ends[0]} -> {b[what]:>8}{ends[1]}  {ratio[name]:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("run")
    command.add_argument("file")
    command.add_argument("problems", nargs="*", default=SETS, metavar="NAME")
    command.add_argument("--max-passes", type=int, default=100)
    command.add_argument("--losses")
    command.add_argument("--Cs", default="0.1,1,10,100")
    command.add_argument("--caches", default="0,auto")
    command.add_argument("--solver", default="bundle-dca")
    command.add_argument("--options")
    command.set_defaults(does=run)
    command = commands.add_parser("compare")
    command.add_argument("before")
    command.add_argument("after")
    command.add_argument("--worst", type=int, default=15)
    command.set_defaults(does=compare)
    options = parser.parse_args()
    options.does(options)


if __name__ == "__main__":
    sys.exit(main())
