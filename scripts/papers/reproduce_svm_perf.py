#!/usr/bin/env python
"""Table 1 and Figures 1 to 9 of "Training Linear SVMs in Linear Time" (Joachims, KDD 2006).

table1  processor time on all rows: classification by cutting planes (`cpa`, the paper's Algorithm 1), by our default, and by
        LIBSVM with a linear kernel (for SVM-light); ordinal regression of two labels, the area under the ROC curve (Algorithm 2)
rows    Figures 1 and 2: time and iterations against the number of rows n, of classification, ordinal regression and LIBSVM
epsilon Figures 4 to 7: test accuracy, iterations, time and distance of the objective from the optimum against ε
ordinal Algorithm 2 with more than two ranks, next to all pairs one by one
C       Figures 3, 8 and 9: test accuracy (next to LIBLINEAR at -e 1e-4, 5,000 epochs at most), iterations and time against C

The paper's C is n times ours. Of its five sets none is here: acq of Reuters-21578 and money-fx stand for the texts, covtype_20k
(class 1) for Covertype, a9a (its Adult) and ijcnn1 for the dense ones; flights3m, in `rows`, for many rows. ε is in units of mean
loss, as there; no relative rule.
Times are processor time of one thread. LIBSVM is stopped at --limit seconds, and is missing from there on.
--quick: 3,000 rows of three sets. Writes PART.json, PART.md and PART.svg (with matplotlib) to --out.
Data from STREAMCUT_DATA, default ../shared/data.
"""

from __future__ import annotations

import argparse
import lzma
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from reproduce_bounds import cutting_planes, greatest_square
from reproduce_tools import DATA, Rows, fact, markdown, panels, seconds_of, slope, write
from sklearn.datasets import load_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, LinearSVC

from streamcut.io.memory import MemoryDataset
from streamcut.training import train

PAPER = "Joachims 2006"
BEST_C = {  # n·C, the paper's C
    "reuters21578": 1e4, "reuters_moneyfx": 1e4, "covtype_20k": 1e5, "a9a": 1600.0, "ijcnn1": 5e4, "flights3m": 2.7e4,
}  # fmt: skip
ONLY = {"flights3m": ("rows",)}  # 2.7 million rows, for growth alone
RANKED = ("ord_abalone", "ord_computer", "ord_california")  # for five ranks
EPSILONS = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
MOST_PASSES = 4000


class Experiments:
    """All trainings; each is done once."""

    def __init__(self, names: list[str], most: int | None, limit: float) -> None:
        self.names, self.limit = names, limit
        self.rows = {name: Rows(name, most) for name in names}
        for name in names[:1]:  # compiles
            for options in ({}, {"task": "roc-area"}, {"solver": "bundle-dca"}):
                self.trained(name, 1.0, n=200, **options)

    def trained(self, name: str, C: float, *, n: int | None = None, epsilon: float = 1e-3, **options: Any) -> dict[str, Any]:
        """Iterations, seconds, weights, objective and bound of a training with the paper's C on n rows."""
        X, y = self.rows[name].first(n or len(self.rows[name].y))
        settings = {"solver": "cpa", "C": C / len(y), "bias": 0.0, "tol": epsilon, "tol_relative": None, "workers": 1, **options}
        if options.get("task") == "roc-area":
            del settings["bias"]
        model, seconds = seconds_of(lambda: train(MemoryDataset(X, y), max_passes=MOST_PASSES, **settings))
        return {
            "n": len(y), "iterations": model.history[-1]["passes"], "seconds": seconds, "weights": model.weights,
            "primal": model.certificate.primal, "bound": model.certificate.lower_bound, "converged": model.converged,
        }  # fmt: skip

    def libsvm(self, name: str, C: float, n: int) -> float | None:
        """Seconds of LIBSVM with a linear kernel; None when the limit has been passed with fewer rows."""
        X, y = self.rows[name].first(n)
        solver = SVC(kernel="linear", C=C / len(y), cache_size=400)
        return seconds_of(lambda: solver.fit(X, y))[1]


def table1(all_of: Experiments, out: Path, plot: bool) -> None:
    rows, facts = [], []
    for name in all_of.names:
        n, C = len(all_of.rows[name].y), BEST_C[name]
        ours, own = all_of.trained(name, C), all_of.trained(name, C, solver="bundle-dca")
        ordinal = all_of.trained(name, C, task="roc-area")
        light = all_of.libsvm(name, C, n) if _fits(all_of, name, C, n) else float("nan")
        rows.append((name, n, C, ours["seconds"], ours["iterations"], own["seconds"], light, ordinal["seconds"]))
        square = greatest_square(all_of.rows[name].first(n)[0])
        facts += cutting_planes(PAPER, "Lemma 2", name, ours["iterations"], C, square, 1e-3)
        facts.append(fact(PAPER, f"Table 1: time of ordinal regression / classification, {name}", "1.5 to 6.5",
                          ordinal["seconds"] / ours["seconds"], "their five sets"))  # fmt: skip
        if light == light:
            facts.append(fact(PAPER, f"Table 1: time of decomposition / cutting planes, {name}", "4.7 to 149",
                              light / ours["seconds"], "SVM-light there, LIBSVM here; fewer rows here"))  # fmt: skip
    names = ("data", "n", "C", "cpa, s", "iterations", "bundle-dca, s", "LIBSVM, s", "ordinal regression, s")
    write(out, "table1", [list(row) for row in rows], markdown(names, rows), facts)


def _fits(all_of: Experiments, name: str, C: float, n: int) -> bool:
    """Whether LIBSVM on n rows is likely to keep the limit: its time grows like n^1.7 or worse."""
    part = min(n, 3000)
    seconds = all_of.libsvm(name, C, part)
    return seconds is not None and seconds * (n / part) ** 2 < all_of.limit


def rows(all_of: Experiments, out: Path, plot: bool) -> None:
    found: dict[str, Any] = {}
    for name in all_of.names:
        whole, C = len(all_of.rows[name].y), BEST_C[name]
        sizes = [n for n in (500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 256_000, 1_024_000) if n < whole] + [whole]
        entry: dict[str, Any] = {"n": sizes}
        runs = [all_of.trained(name, C, n=n) for n in sizes]
        ordinal = [all_of.trained(name, C, n=n, task="roc-area") for n in sizes]
        entry |= {"seconds": [run["seconds"] for run in runs], "iterations": [run["iterations"] for run in runs]}
        entry |= {
            "ordinal seconds": [run["seconds"] for run in ordinal],
            "ordinal iterations": [r["iterations"] for r in ordinal],
        }
        light: list[float] = []
        for n in sizes:
            if light and light[-1] * 4 > all_of.limit:
                break
            light.append(all_of.libsvm(name, C, n) or 0.0)
        entry["LIBSVM seconds"] = light
        found[name] = entry
    lines, facts = [], []
    for name, entry in found.items():
        n, light = entry["n"], entry["LIBSVM seconds"]
        grown = [slope(n, entry[key]) for key in ("seconds", "iterations", "ordinal seconds")]
        slopes = (*grown, slope(n[: len(light)], light))
        lines.append((name, n[-1], *slopes, entry["iterations"][0], entry["iterations"][-1]))
        facts += [
            fact(PAPER, f"Figure 1: time ~ n^d, classification, {name}", 0.8, slopes[0]),
            fact(PAPER, f"Figure 1: time ~ n^d, decomposition, {name}", 1.7, slopes[3], "SVM-light there, LIBSVM here"),
            fact(PAPER, f"Figure 2: iterations ~ n^d, {name}", "≤ 0", slopes[1], _late(n, entry["iterations"])),
            fact(
                PAPER,
                f"Figure 1: time ~ n^d, ordinal regression less classification, {name}",
                "> 0",
                slopes[2] - slopes[0],
                f"{slopes[2]:.2f} itself",
            ),
            fact(
                PAPER,
                f"Figure 1: iterations of ordinal regression / classification on all rows, {name}",
                "≈ 1",
                entry["ordinal iterations"][-1] / entry["iterations"][-1],
            ),
        ]
    names = ("data", "n", "d of time", "d of iterations", "d of ordinal time", "d of LIBSVM", "iterations, least n", "all n")
    write(out, "rows", found, markdown(names, lines), facts)
    if plot:
        size = lambda key: {name: (each["n"][: len(each[key])], each[key]) for name, each in found.items()}  # noqa: E731
        drawn = [("classification", "seconds"), ("LIBSVM", "LIBSVM seconds"), ("ordinal regression", "ordinal seconds")]
        times = [(title, "rows", "processor s", size(key)) for title, key in drawn]
        panels(out / "rows.svg", [*times, ("iterations", "rows", "", size("iterations"))], xscale="log", yscale="log")


def _late(n: list[int], iterations: list[int]) -> str:
    """The exponent of the larger half of the sizes."""
    half = len(n) // 2
    return f"from {n[half]:,} rows on {slope(n[half:], iterations[half:]):.2f}"


def ordinal(all_of: Experiments, out: Path, plot: bool) -> None:
    """Algorithm 2 with five ranks: task `ranking` without queries, next to LIBLINEAR on the differences of all pairs."""
    lines, facts = [], []
    for name in RANKED:
        with lzma.open(DATA / name / "train.svm.xz") as file:
            X, y = load_svmlight_file(file, zero_based=False, dtype=np.float32)
        taken = np.random.default_rng(0).permutation(len(y))[:600]
        X = sp.csr_array(X[taken] @ sp.diags_array(1.0 / np.maximum(abs(X).max(axis=0).toarray()[0], 1e-9)))
        ranks = np.searchsorted(np.quantile(y[taken], (0.2, 0.4, 0.6, 0.8)), y[taken]).astype(np.float64)
        settings = {"task": "ranking", "C": 1.0, "tol": 1e-3, "tol_relative": None, "max_passes": MOST_PASSES, "workers": 1}
        model, seconds = seconds_of(lambda: train(MemoryDataset(X, ranks), **settings))  # noqa: B023
        high, low = np.nonzero(ranks[:, None] > ranks)
        differences = X[high] - X[low]
        sign = np.where(np.arange(len(high)) % 2, 1.0, -1.0)  # LIBLINEAR wants two classes
        flipped = sp.csr_matrix(sp.diags_array(sign) @ differences)
        flipped.indices, flipped.indptr = flipped.indices.astype(np.int32), flipped.indptr.astype(np.int32)
        c = len(ranks) / len(high)
        peer = LinearSVC(loss="hinge", C=c, fit_intercept=False, tol=1e-6, max_iter=20_000)
        w = peer.fit(flipped, sign).coef_[0]
        theirs = 0.5 * w @ w + c * np.maximum(0.0, 1.0 - differences @ w).sum()
        above = (model.certificate.primal - theirs) / len(ranks)  # in mean loss
        lines.append((name, len(ranks), len(high), model.history[-1]["passes"], seconds, model.certificate.primal, theirs))
        facts.append(fact(PAPER, f"Algorithm 2, five ranks: above the objective of all pairs by (mean loss), {name}", "≤ 0.001",
                          float(above), f"600 rows, {len(high):,} pairs; Theorem 5"))  # fmt: skip
    names = ("data", "rows", "pairs", "iterations", "s", "objective", "of all pairs by LIBLINEAR")
    write(out, "ordinal", [list(line) for line in lines], markdown(names, lines), facts)


def epsilon(all_of: Experiments, out: Path, plot: bool) -> None:
    found: dict[str, Any] = {}
    for name in all_of.names:
        data, C = all_of.rows[name], BEST_C[name]
        best = all_of.trained(name, C, epsilon=1e-5, solver="bundle-dca")
        runs = [all_of.trained(name, C, epsilon=each) for each in EPSILONS]
        optimum = best["primal"]
        found[name] = {
            "iterations": [run["iterations"] for run in runs], "seconds": [run["seconds"] for run in runs],
            "accuracy": [100 * data.accuracy(run["weights"]) for run in runs],
            "distance": [(optimum - run["bound"]) / optimum for run in runs], "optimum": optimum,
        }  # fmt: skip
    inverse = [1.0 / each for each in EPSILONS]
    lines, facts = [], []
    for name, entry in found.items():
        accuracy, rows_of = entry["accuracy"], len(all_of.rows[name].t)
        near = max(abs(each - accuracy[-1]) for each, eps in zip(accuracy, EPSILONS, strict=True) if eps <= 0.01)
        lines.append((name, *entry["iterations"], slope(inverse, entry["iterations"]), slope(inverse, entry["seconds"]), near,
                      100 * entry["distance"][-1]))  # fmt: skip
        facts += [
            fact(
                PAPER,
                f"Figure 5: iterations ~ (1/ε)^d, {name}",
                0.3,
                slope(inverse, entry["iterations"]),
                f"from ε = 0.1 on {slope(inverse[1:], entry['iterations'][1:]):.2f}",
            ),
            fact(PAPER, f"Figure 6: time ~ (1/ε)^d, {name}", 0.4, slope(inverse, entry["seconds"])),
            fact(
                PAPER,
                f"Figure 4: accuracy at ε ≤ 0.01 differs by (points), {name}",
                "≤ 0.5",
                near,
                f"a deviation of its {rows_of:,} test rows is {(accuracy[-1] * (100 - accuracy[-1]) / rows_of) ** 0.5:.1f}",
            ),
            fact(PAPER, f"Figure 7: bound below the optimum at ε = 0.001 (%), {name}", "0.1 to 1", 100 * entry["distance"][-1]),
        ]
    names = (
        "data",
        *(f"iterations at {each:g}" for each in EPSILONS),
        "d of iterations",
        "d of time",
        "points at ε ≤ 0.01",
        "% below",
    )
    write(out, "epsilon", found, markdown(names, lines), facts)
    if plot:
        some = lambda key: {name: (EPSILONS, each[key]) for name, each in found.items()}  # noqa: E731
        power = {"~ε^−0.3": (EPSILONS, [20 * each**-0.3 for each in EPSILONS])}
        drawn = [
            ("test accuracy", "ε", "%", some("accuracy")), ("iterations", "ε", "", some("iterations") | power),
            ("time", "ε", "processor s", some("seconds")), ("bound below the optimum", "ε", "part", some("distance")),
        ]  # fmt: skip
        panels(out / "epsilon.svg", drawn[1:], xscale="log", yscale="log")
        panels(out / "epsilon_accuracy.svg", drawn[:1], xscale="log")


def against_c(all_of: Experiments, out: Path, plot: bool) -> None:
    found: dict[str, Any] = {}
    for name in all_of.names:
        data = all_of.rows[name]
        grid = [BEST_C[name] * each for each in (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)]
        runs = [all_of.trained(name, C) for C in grid]
        exact = []
        for C in grid:
            peer = LinearSVC(loss="hinge", C=C / len(data.y), fit_intercept=False, tol=1e-4, max_iter=5000)
            exact.append(100 * data.accuracy(peer.fit(data.X, data.y).coef_))
        found[name] = {
            "C": grid, "iterations": [run["iterations"] for run in runs], "seconds": [run["seconds"] for run in runs],
            "accuracy": [100 * data.accuracy(run["weights"]) for run in runs], "LIBLINEAR accuracy": exact,
        }  # fmt: skip
    lines, facts = [], []
    for name, entry in found.items():
        apart = float(np.max(np.abs(np.subtract(entry["accuracy"], entry["LIBLINEAR accuracy"]))))
        steep = slope(entry["C"], entry["iterations"])
        lines.append((name, *entry["iterations"], steep, slope(entry["C"], entry["seconds"]), apart))
        facts += [
            fact(PAPER, f"Figure 8: iterations ~ C^d, {name}", 0.5, steep),
            fact(PAPER, f"Figure 9: time ~ C^d, {name}", "< 1", slope(entry["C"], entry["seconds"])),
            fact(PAPER, f"Figure 3: accuracy next to another solver's, most (points), {name}", "≈ 0", apart),
        ]
    names = (
        "data",
        *(f"{each:g}·C" for each in (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)),
        "d of iterations",
        "d of time",
        "points apart",
    )
    write(out, "C", found, markdown(names, lines), facts)
    if plot:
        some = lambda key: {name: (each["C"], each[key]) for name, each in found.items()}  # noqa: E731
        first = found[all_of.names[0]]["C"]
        drawn = [
            ("iterations", "C", "", some("iterations") | {"~C^0.5": (first, [0.3 * each**0.5 for each in first])}),
            ("time", "C", "processor s", some("seconds")),
        ]  # fmt: skip
        panels(out / "C.svg", drawn, xscale="log", yscale="log")
        apart = {
            name: (each["C"], np.subtract(each["accuracy"], each["LIBLINEAR accuracy"]).tolist()) for name, each in found.items()
        }
        panels(out / "C_accuracy.svg", [("accuracy less LIBLINEAR's", "C", "points", apart)], xscale="log")


PARTS = {"table1": table1, "rows": rows, "epsilon": epsilon, "C": against_c, "ordinal": ordinal}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--data", type=lambda text: text.split(","), metavar="NAME,…", default=list(BEST_C))
    parser.add_argument("--rows", type=int, help="only so many training rows")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for one run of LIBSVM")
    parser.add_argument("--out", type=Path, default=Path("svm-perf"))
    parser.add_argument("--plot", action="store_true", help="figures, too (needs matplotlib)")
    parser.add_argument("--quick", action="store_true", help="3,000 rows of three sets: a minute or two")
    given = parser.parse_args()
    if unknown := [name for name in (*given.parts,) if name not in PARTS]:
        parser.error(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    if unknown := [name for name in given.data if name not in BEST_C]:
        parser.error(f"no experiment on {', '.join(unknown)}; there are some on {', '.join(BEST_C)}")
    if given.quick:
        given.data, given.rows, given.limit = [*given.data[:1], "covtype_20k", "a9a"], given.rows or 3000, min(given.limit, 5.0)
    warnings.simplefilter("ignore", ConvergenceWarning)  # of LIBLINEAR at a large C
    all_of = Experiments(given.data, given.rows, given.limit)
    for part in given.parts or PARTS:
        all_of.names = [name for name in given.data if part in ONLY.get(name, PARTS)]
        if all_of.names:
            PARTS[part](all_of, given.out, given.plot)


if __name__ == "__main__":
    main()
