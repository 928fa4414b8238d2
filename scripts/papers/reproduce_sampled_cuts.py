"""Experiments of "Training Structural SVMs with Kernels Using Sampled Cuts" (Yu & Joachims, KDD 2008), section 6.

rows      Figures 1 to 3: training time and test error against the number of rows N (Checkers, Covertype); where LIBSVM is
          not run its time is extrapolated, and called so
samples   Figures 4 to 7: time, iterations, training and test error against the sample size r, for several C (Adult)
table     Table 1: both algorithms, Nyström features (the paper's Cholesky) and LIBSVM on all three
cost      kernel evaluations of both algorithms: m(r + r/m)-fold in linear time, O(T² r²) whatever m in constant time
chains    conll2000 (linear: token accuracy and chunk F1) and ocr_letters (with and without a kernel for the emissions)

Checkers is made here at any size: points of the unit square, the class of their field of a 4 × 4 board, moved by Gaussian noise
of a fiftieth of a field's side. Adult is a9a's training set, 22,697 rows of it to train on and the rest to test, as in the paper.
Covertype is the 20,000-row sample, shuffled, class 2 against the rest, columns scaled to 1 at most.

The paper has Ψ(x, y) = yφ(x), hence loss max(0, 1 − 2yf): its C is 4 of ours. The C told here are the paper's; LIBSVM gets 4C
too. Times are processor time, of two threads where linear time pays for them, and so is --limit: what else the machine does
changes no result. --quick takes a tenth of the rows and r = 100, in the table 400.
Writes PART.json, after each training, PART.md and, with --plot (needs matplotlib), PART.svg to --out; with --resume what it holds
is not done again. Data from STREAMCUT_DATA (../shared/data).
"""

import argparse
import json
import lzma
import math
import os
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # peers, too: LIBSVM spins on OpenMP threads

import numpy as np
import scipy.sparse as sp
from reproduce_tools import legible, pyplot_in_style
from sklearn.datasets import load_svmlight_file
from sklearn.svm import SVC

from streamcut.io.memory import MemoryDataset
from streamcut.measures.sequence import SequenceMeasures
from streamcut.prediction import predict, scored_chunks
from streamcut.training import train

DATA = Path(os.environ.get("STREAMCUT_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
OURS = 4.0  # times the paper's C
ASKED = ("data", "N", "method", "r", "C", "seed")  # what a training was asked
SIGMA2 = {"checkers": 0.05, "adult": 20.0, "covertype": 1.7}
TABLE_C = {"checkers": 1.0, "adult": 100.0, "covertype": 1.0}
NAMES = {"sampled-constant": "Const", "sampled-linear": "Linear"}


def checkers(n: int, seed: int) -> tuple[sp.csr_array, np.ndarray]:
    """n points of the board, float32, and their classes ±1."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    y = np.where(np.floor(4 * X).sum(axis=1) % 2 == 0, 1.0, -1.0)
    return sp.csr_array((X + 0.005 * rng.standard_normal((n, 2))).astype(np.float32)), y


def read(name: str, split: str, columns: int | None = None):
    """(X, y, qid) of a stored set."""
    with lzma.open(DATA / name / f"{split}.svm.xz") as file:
        X, y, qid = load_svmlight_file(file, n_features=columns, zero_based=False, query_id=True, dtype=np.float32)
    return sp.csr_array(X), y.astype(np.float64), qid


def problem(name: str, n: int):
    """(X, y, X_test, y_test) with n training rows at most."""
    if name == "checkers":
        return (*checkers(n, 0), *checkers(50_000, 1))
    if name == "adult":
        X, y, _ = read("a9a", "train")
        order = np.random.default_rng(0).permutation(len(y))
        first, rest = order[:22_697], order[22_697:]
        return X[first][:n], y[first][:n], X[rest], y[rest]
    X, y, _ = read("covtype_20k", "train")
    more, labels, _ = read("covtype_20k", "test", X.shape[1])
    X, y = sp.csr_array(sp.vstack([X, more])), np.where(np.append(y, labels) == 2, 1.0, -1.0)
    X = sp.csr_array(X @ sp.diags_array(1.0 / np.maximum(abs(X).max(axis=0).toarray().ravel(), 1e-9)).astype(np.float32))
    order = np.random.default_rng(0).permutation(len(y))  # the sets that are stored differ in kind
    first, rest = order[:15_120][:n], order[15_120:]
    return X[first], y[first], X[rest], y[rest]


def after(limit: float):
    """A `stop` that says yes when so many seconds of processor time are spent."""
    end = time.process_time() + limit
    return lambda: time.process_time() > end


def run(name: str, data, method: str, r: int, C: float, seed: int, limit: float) -> dict:
    """One training: what was asked, what it cost, the errors in percent."""
    X, y, Xt, yt = data
    gamma = 1.0 / (2.0 * SIGMA2[name])
    started = time.process_time()
    line = {"data": name, "N": len(y), "method": method, "r": r, "C": C, "seed": seed}
    if method == "LIBSVM":
        X, Xt = (sp.csr_matrix((M.data, M.indices.astype(np.int32), M.indptr.astype(np.int32)), M.shape) for M in (X, Xt))
        machine = SVC(C=OURS * C, gamma=gamma, cache_size=1000).fit(X, y)
        line |= {"seconds": time.process_time() - started, "support": len(machine.support_)}
        found, own = machine.predict(Xt), machine.predict(X[:20_000])
    else:
        common = {"kernel": "rbf", "gamma": gamma, "C": OURS * C, "bias": 0, "seed": seed, "stop": after(limit)}
        rows = MemoryDataset(X, y)
        if method == "Nyström":
            model = train(rows, solver="ocas", nystroem=r, **common)
        else:
            model = train(rows, solver=method, samples=r, **common)
            line |= {key: model.facts[key] for key in ("iterations", "kernel_evaluations", "cuts")}
            if model.certificate is not None:  # not interrupted by the limit
                line |= {"objective": model.certificate.primal, "bound": model.certificate.lower_bound}
            line["support"] = model.n_support
        line |= {"seconds": time.process_time() - started, "stop": str(model.stop_reason)}
        found, own = predict(model, MemoryDataset(Xt, yt)), predict(model, MemoryDataset(X[:20_000], y[:20_000]))
    line |= {"test_error": 100 * float(np.mean(found != yt)), "train_error": 100 * float(np.mean(own != y[:20_000]))}
    return line


class Lines:
    """The trainings of a part. Each is written as soon as it is done; those that an earlier run has left are not done again."""

    def __init__(self, path: Path, resume: bool) -> None:
        self.all: list[dict] = []
        self._path = path
        known = json.loads(path.read_text()) if resume and path.is_file() else []
        self._known = {tuple(line[key] for key in ASKED): line for line in known if "seed" in line}

    def run(self, name: str, data, method: str, r: int, C: float, seed: int, limit: float) -> None:
        asked = name, len(data[1]), method, r, C, seed
        line = self._known.pop(asked, None)
        self.add(run(name, data, method, r, C, seed, limit) if line is None else line)

    def add(self, line: dict) -> None:
        print(json.dumps(line), flush=True)
        self.all.append(line)
        self._path.write_text(json.dumps([*self.all, *self._known.values()], indent=1) + "\n")


def by_rows(lines: Lines, options) -> None:
    sizes = {"checkers": options.rows, "covertype": [2_000, 5_000, 15_120]}
    for name, counts in sizes.items():
        for n in counts:
            if name not in options.data:
                continue
            data = problem(name, n)
            for method in (*NAMES, "LIBSVM"):
                if n <= options.rows_of[method]:
                    for seed in options.seeds[:1] if method == "LIBSVM" else options.seeds:
                        lines.run(name, data, method, options.r[0], 1.0, seed, options.limit)
        done = [line for line in lines.all if (line["data"], line["method"]) == (name, "LIBSVM")]
        for line in extrapolated(name, done, counts):
            lines.add(line)


def extrapolated(name: str, lines: list[dict], counts: list[int]) -> list[dict]:
    """LIBSVM's seconds at sizes that it was not run at: a power of N through its two largest ones."""
    known = sorted({line["N"]: line["seconds"] for line in lines}.items())[-2:]
    if len(known) < 2:
        return []
    (small, quick), (large, slow) = known
    power = math.log(slow / quick) / math.log(large / small)
    return [
        {"data": name, "N": n, "method": "LIBSVM, extrapolated", "seconds": slow * (n / large) ** power, "power": power}
        for n in counts
        if n > large
    ]


def by_samples(lines: Lines, options) -> None:
    data = problem("adult", options.adult)
    costs = options.costs or ((1.0,) if options.quick else (0.01, 0.1, 1.0, 10.0, 100.0))
    sizes = (50, 100, 200, 400) if options.quick else (100, 400, 1000, 4000)
    for method in NAMES:
        for C in costs:
            for r in sizes:
                lines.run("adult", data, method, r, C, 0, options.limit)


def table(lines: Lines, options) -> None:
    sizes_of = {"adult": options.adult, "covertype": 15_120, "checkers": max(options.rows)}
    for name in options.data:
        n = sizes_of[name]
        data, C = problem(name, n), 1.0 if options.quick else TABLE_C[name]
        for method in options.methods or (*NAMES, "Nyström", "LIBSVM"):
            if n <= options.rows_of[method]:
                sizes = options.r_of_table[:1] if method == "LIBSVM" else options.r_of_table
                for r in sizes:
                    for seed in options.seeds[:1] if method == "LIBSVM" else options.seeds:
                        lines.run(name, data, method, r, C, seed, options.limit)


def cost(lines: Lines, options) -> None:
    for method in NAMES:
        for n in (1_000, 4_000, 16_000):
            for r in (50, 100, 200):
                lines.run("checkers", problem("checkers", n), method, r, 1.0, 0, options.limit)


def chains(lines: Lines, options) -> None:
    kernel = {"kernel": "rbf", "gamma": 0.02, "solver": "sampled-linear", "samples": 150, "tol": 0.01, "max_cuts": 100}
    for name, C, how in (
        ("conll2000", 0.03, {"solver": "bundle-dca", "max_cuts": 40}),
        ("ocr_letters", 0.1, {}),
        ("ocr_letters", 1.0, kernel),
    ):
        if options.quick and name == "conll2000":
            continue
        X, y, qid = read(name, "train")
        Xt, yt, qt = read(name, "test", X.shape[1])
        tags = DATA / name / "tags.txt"
        named = {float(n): tag for n, tag in map(str.split, tags.read_text().splitlines())} if tags.exists() else None
        started = time.process_time()
        model = train(MemoryDataset(X, y, qid=qid), task="sequence", C=C, stop=after(options.limit), **how)
        seconds = time.process_time() - started
        measures = SequenceMeasures(model, named)
        for chunk, scores in scored_chunks(model, MemoryDataset(Xt, yt, qid=qt)):
            measures.add(chunk, scores)
        line = {"data": name, "kernel": how.get("kernel", "linear"), "C": C, "seconds": seconds, "stop": str(model.stop_reason)}
        line |= measures.measures()
        line.pop("chunk_types", None)
        lines.add(line)


PARTS = {"rows": by_rows, "samples": by_samples, "table": table, "cost": cost, "chains": chains}
AXES = {  # part: (x, lines by, [(y, log scale)])
    "rows": ("N", ("data", "method"), [("seconds", True), ("train_error", False), ("test_error", False)]),
    "samples": ("r", ("method", "C"), [("seconds", True), ("iterations", False), ("train_error", False), ("test_error", False)]),
}
SLOPES = {("rows", "seconds"): (1.0, 2.0)}  # of the theory: linear time, and what decomposition takes


def markdown(lines: list[dict]) -> str:
    """A table of all columns that any line has."""
    columns = list(dict.fromkeys(key for line in lines for key in line))
    shown = [
        [f"{line.get(c, ''):.4g}" if isinstance(line.get(c), float) else str(line.get(c, "")) for c in columns] for line in lines
    ]
    return "\n".join("| " + " | ".join(row) + " |" for row in [columns, ["---"] * len(columns), *shown]) + "\n"


def plot(part: str, lines: list[dict], path: Path) -> None:
    """One panel a figure; runs that the limit ended are crosses."""
    pyplot = pyplot_in_style()
    x, by, what = AXES[part]
    keys = list(dict.fromkeys(tuple(line[b] for b in by) for line in lines))
    figure, axes = pyplot.subplots(1, len(what), figsize=(4.2 * len(what), 3.8), layout="constrained")
    for axis, (y, logarithmic) in zip(axes, what, strict=True):
        for number, key in enumerate(keys):
            own = sorted((line for line in lines if tuple(line[b] for b in by) == key and y in line), key=lambda line: line[x])
            style = {"color": f"C{number % 7}", "linestyle": "--" if "constant" in " ".join(map(str, key)) else "-"}
            at = sorted({line[x] for line in own})
            values = [[line[y] for line in own if line[x] == place] for place in at]  # of several seeds: their mean, and ± bands
            mean, deviation = np.array([np.mean(each) for each in values]), np.array([np.std(each) for each in values])
            axis.plot(at, mean, label=" ".join(map(str, key)), **style)
            if max(map(len, values), default=1) > 1:
                axis.fill_between(at, mean - deviation, mean + deviation, color=style["color"], alpha=0.2)
            for line in own:
                axis.plot(line[x], line[y], "x" if line.get("stop") == "interrupted" else ".", color=style["color"])
        axis.set(xlabel=x, ylabel=y.replace("_", " "), xscale="log", yscale="log" if logarithmic else "linear")
        for slope in SLOPES.get((part, y), ()):
            ends = np.array([min(line[x] for line in lines), max(line[x] for line in lines)])
            low = min(line[y] for line in lines if y in line)
            axis.plot(ends, low * (ends / ends[0]) ** slope, linestyle=":", color="#999999", label=f"{x}^{slope:g}")
        legible(axis)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--plot", action="store_true", help="figures as SVG (needs matplotlib)")
    parser.add_argument("--out", type=Path, default=Path("sampled_cuts"))
    parser.add_argument("--resume", action="store_true", help="keep the trainings that --out already holds")
    parser.add_argument("--data", type=lambda text: text.split(","), metavar="NAME,…", default=list(TABLE_C))
    parser.add_argument("--sizes", type=lambda text: [int(r) for r in text.split(",")], metavar="R,…", help="in the table")
    parser.add_argument("--costs", type=lambda text: [float(C) for C in text.split(",")], metavar="C,…", help="in `samples`")
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds of processor time for one training")
    parser.add_argument("--methods", type=lambda text: text.split(","), metavar="NAME,…", help="of the table; default: all")
    parser.add_argument("--seeds", type=int, default=1, help="runs with different seeds (the paper: 3)")
    parser.add_argument("--seed", type=int, help="this one alone")
    parser.add_argument("--max-rows", type=float, default=1e6, help="of Checkers")
    parser.add_argument("--max-rows-linear", type=float, default=1e6, help="for the linear-time algorithm")
    parser.add_argument("--max-rows-libsvm", type=float, default=3e4)
    parser.add_argument("--max-rows-nystroem", type=float, default=np.inf)
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if unknown := set(options.methods or ()) - {*NAMES, "Nyström", "LIBSVM"}:
        parser.error(f"no method {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}, Nyström, LIBSVM")
    if unknown := set(options.data) - set(TABLE_C):
        parser.error(f"no experiment on {', '.join(sorted(unknown))}; there are some on {', '.join(TABLE_C)}")
    most = min(options.max_rows, 1e4) if options.quick else options.max_rows
    options.rows = [n for n in (1_000, 10_000, 100_000, 1_000_000) if n <= most]
    options.r = [100] if options.quick else [400, 1000]
    options.r_of_table = options.sizes or ([400] if options.quick else options.r)
    options.adult = 2_000 if options.quick else 22_697
    options.seeds = range(options.seeds) if options.seed is None else [options.seed]
    options.rows_of = {"sampled-constant": np.inf, "sampled-linear": options.max_rows_linear}
    options.rows_of |= {"LIBSVM": options.max_rows_libsvm, "Nyström": options.max_rows_nystroem}
    options.out.mkdir(parents=True, exist_ok=True)
    for part in options.parts:
        lines = Lines(options.out / f"{part}.json", options.resume)
        PARTS[part](lines, options)
        (options.out / f"{part}.md").write_text(markdown(lines.all))
        if options.plot and part in AXES:
            plot(part, lines.all, options.out / f"{part}.svg")


if __name__ == "__main__":
    main()
