#!/usr/bin/env python
"""Tables 1, 2 and Figures 1 to 8 of "Dual SVM Training on a Budget" (Qaadan, Schüler & Glasmachers, ICPRAM 2019).

seeds      Table 2: test accuracy and time of one epoch at a budget of 500: BSCA, BSCA as in the paper (without damping), BSGD;
           Figure 1: primal (estimated on training rows drawn once) and dual objective over training time, both methods;
           Figures 2, 3, 5, 7: test accuracy over time and epochs at budgets of 200 and 500; Figure 6: objectives of BSCA there
unlimited  Figure 4: test accuracy over epochs without a budget, SCA and SGD; the least eigenvalue of Theorem 1
merging    Figure 8: share of steps followed by merging, by epoch, at budgets of 200, 500 and 1,000
full       Table 1: accuracy, support vectors and time of the model without a budget, by LIBSVM

Curves are without damping, which is for the end of training, and of 100 epochs, Figure 8 of 300: a dual variable comes to C = 32
in steps of about 1, one an epoch, and after 30 epochs hardly any is there. C and γ are those of the paper's Table 1. Of SUSY and
COVTYPE there are 24,000 and 15,120 rows here, these dealt anew into training and test; COD-RNA is not here, and skin_nonskin not
in the paper. Times are processor time of one thread.
Writes results.json and results.md to --out; reproduce.py draws the figures, of all runs that it finds.
Data from STREAMCUT_DATA, default ../shared/data.
"""

from __future__ import annotations

import argparse
import itertools
import json
import lzma
import os
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # peers, too: LIBSVM spins on OpenMP threads

import numpy as np
import scipy.sparse as sp
from reproduce_tools import legible, pyplot_in_style
from sklearn.datasets import load_svmlight_file
from sklearn.svm import SVC

from streamcut.compiled import budget as passes
from streamcut.compiled.kernel_rows import kernel_rows
from streamcut.foundation.chunk import concatenate
from streamcut.io.memory import MemoryDataset
from streamcut.kernels.kernel import Kernel
from streamcut.papers.bsgd import BSGD
from streamcut.solvers.bsca import BSCA
from streamcut.solvers.budget import MODES, exported, new_slots, squared_norm
from streamcut.solvers.budget_problem import Problem

DATA = Path(os.environ.get("STREAMCUT_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
SETS = {  # C, γ, positive label, columns divided by their largest value, the paper's BSCA and BSGD of Table 2
    "a9a": (2.0**5, 2.0**-7, 1, False, (83.18, 80.74)),
    "ijcnn1": (2.0**5, 2.0, 1, False, (97.27, 96.68)),
    "susy_30k": (2.0**5, 2.0**-7, 1, False, None),
    "covtype_20k": (2.0**7, 2.0**3, 2, True, None),
    "skin_nonskin": (2.0**5, 2.0**3, 1, True, None),
}
METHODS = {"bsca": BSCA, "bsgd": BSGD}
POOLED = "covtype_20k"  # its training rows were not drawn like its test rows
TEST_ROWS, SAMPLE = 10_000, 4_000


class Data:
    """A data set in memory: training rows, test rows, and the training rows that the primal is estimated on."""

    def __init__(self, name: str, most: int | None) -> None:
        self.C, gamma, positive, scaled, self.published = SETS[name]
        parts = []
        for split in ("train", "test"):
            with lzma.open(DATA / name / f"{split}.svm.xz") as file:
                parts.append(load_svmlight_file(file, zero_based=False))
        d = max(X.shape[1] for X, _ in parts)
        for X, _ in parts:
            X.resize(X.shape[0], d)
        random = np.random.default_rng(0)
        (X, y), (T, t) = _split(parts, random) if name == POOLED else parts
        if scaled:
            scale = sp.diags_array(1.0 / np.maximum(abs(X).max(axis=0).toarray()[0], 1e-300))
            X, T = X @ scale, T @ scale
        n, n_test = min(len(y), most or len(y)), min(len(t), TEST_ROWS)
        taken, tested = random.permutation(len(y))[:n], random.permutation(len(t))[:n_test]
        if not 0 < np.count_nonzero(y[taken] == positive) < n:
            sys.exit(f"{name}: the label {positive} is none of its rows, or all")
        self.rows = sp.csr_array(X[taken]), np.where(y[taken] == positive, 1.0, -1.0)
        self.test = sp.csr_array(T[tested]), np.where(t[tested] == positive, 1.0, -1.0)
        sample = np.sort(random.choice(n, min(n, SAMPLE), replace=False))
        self.sample = self.rows[0][sample], self.rows[1][sample]
        self.n = n
        self.problem = Problem(Kernel("rbf", gamma=gamma), self.C, (1.0,), n, d)
        shards = MemoryDataset(*self.rows)
        self.sparse = self.problem.rows(concatenate([shards.read(each) for each in range(len(shards.manifest.shards))]), 1.0)

    def least_eigenvalue(self, most: int = 1000) -> float:
        """Of the kernel matrix: 0 where a row is there twice, else an upper bound, that of some rows. Rounding is taken for 0."""
        X = self.rows[0]
        seen = {X.data[a:b].tobytes() + X.indices[a:b].tobytes() for a, b in itertools.pairwise(X.indptr.tolist())}
        if len(seen) < X.shape[0]:
            return 0.0
        part = X[:most].toarray()
        squares = np.square(part).sum(axis=1)
        K = self.problem.kernel.values(part @ part.T, squares[:, None], squares)
        least = float(np.linalg.eigvalsh(K)[0])
        return least if least > len(part) * np.finfo(float).eps else 0.0

    def scores(self, X: sp.csr_array, coefficients: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """Σ_j coefficients_j k(x_i, vectors_j)."""
        values, V = np.empty((X.shape[0], len(vectors))), np.ascontiguousarray(vectors.T)
        squares, scratch = np.square(vectors).sum(axis=1), np.empty(len(vectors))
        kernel_rows(X.indptr, X.indices, X.data, V, squares, self.problem.kernel.compiled, scratch, values)
        return values @ coefficients

    def look(self, method: str, model: passes.Slots, objectives: bool) -> dict[str, float]:
        """Test accuracy of the model and, if wanted, its primal and dual objective."""
        scale = METHODS[method].scale(model)
        found = exported(model, scale)
        (T, t), (X, y) = self.test, self.sample
        record = {"accuracy": float(np.mean((self.scores(T, *found) > 0) == (t > 0)))}
        if objectives:
            square = squared_norm(model, scale, self.problem.kernel)
            hinge = float(np.maximum(0.0, 1.0 - y * self.scores(X, *found)).mean())
            record["primal"] = 0.5 * square + self.C * self.n * hinge
            record["dual"] = float(model.sums[passes.ALPHA]) - 0.5 * square
        return record


def _split(parts: list, random: np.random.Generator) -> list:
    """All rows, dealt anew to as many training and test rows as there were."""
    X, y = sp.vstack([X for X, _ in parts], format="csr"), np.concatenate([y for _, y in parts])
    order, n = random.permutation(len(y)), len(parts[0][1])
    return [(X[some], y[some]) for some in (order[:n], order[n:])]


def run(
    data: Data, method: str, seed: int, *, budget: int | None = 500, epochs: int = 1, damped: float = 0.0, accuracy: bool = True,
    objectives: bool = False,
) -> list[dict]:  # fmt: skip
    """What is known after each epoch. `seconds` are without looking."""
    mode = MODES["none" if budget is None else "merge"]
    model, learner = new_slots(data.problem, budget, mode), METHODS[method]
    alpha, n, goal, seconds, found = np.zeros(data.n), data.n, data.n * epochs, 0.0, []
    damping = (goal - round(damped * n), goal + (damped == 0.0))
    for epoch in range(epochs):
        order = np.random.default_rng((seed, epoch)).permutation(n)
        before, started = int(model.counts[passes.MAINTAINED]), time.thread_time()
        learner.steps(order, data.sparse, alpha, damping, data.problem, mode, model)
        seconds += time.thread_time() - started
        merged = (int(model.counts[passes.MAINTAINED]) - before) / n
        seen = data.look(method, model, objectives) if accuracy else {}
        found.append({"epoch": epoch + 1, "seconds": seconds, "merged": merged, **seen})
    return found


def about(data: Data) -> dict[str, Any]:
    return {"rows": data.n, "C": data.C, "gamma": data.problem.kernel.gamma}


def of_seeds(data: Data, seeds: Sequence[int], epochs: int) -> dict[str, Any]:
    """Table 2 and the curves of Figures 1 to 3 and 5 to 7; objectives along those of seed 0."""
    run(data, "bsca", 0), run(data, "bsgd", 0)  # compiled, and rows in the caches
    table = {}
    for name, method, damped in (("bsca", "bsca", 0.5), ("bsca, paper", "bsca", 0.0), ("bsgd", "bsgd", 0.0)):
        last = [run(data, method, seed, damped=damped)[-1] for seed in seeds]
        table[name] = {key: [line[key] for line in last] for key in ("accuracy", "seconds")}
    curves = {
        f"{method} {budget}": [run(data, method, seed, budget=budget, epochs=epochs, objectives=seed == 0) for seed in seeds]
        for method in METHODS
        for budget in (200, 500)
    }
    return {**about(data), "table 2": table, "curves": curves}


def unlimited(data: Data, seeds: Sequence[int], epochs: int) -> dict[str, Any]:
    """Figure 4, and the least eigenvalue of Theorem 1."""
    found = {method: run(data, method, 0, budget=None, epochs=epochs) for method in METHODS}
    return {**about(data), "unlimited": found, "least eigenvalue": data.least_eigenvalue()}


def merging(data: Data, seeds: Sequence[int], epochs: int) -> dict[str, Any]:
    """Figure 8: three times as many epochs."""
    found = {
        f"{method} {budget}": [e["merged"] for e in run(data, method, 0, budget=budget, epochs=3 * epochs, accuracy=False)]
        for method in METHODS
        for budget in (200, 500, 1000)
    }
    return {**about(data), "merging": found}


def full(data: Data, seeds: Sequence[int], epochs: int) -> dict[str, Any]:
    """Table 1: the model without a budget, by LIBSVM (with its bias, which theirs has, too)."""
    X, T = (sp.csr_matrix((M.data, M.indices.astype(np.int32), M.indptr.astype(np.int32)), M.shape)
            for M in (data.rows[0], data.test[0]))  # fmt: skip
    machine = SVC(C=data.C, gamma=data.problem.kernel.gamma, cache_size=1000)
    started = time.process_time()
    machine.fit(X, data.rows[1])
    found = {"seconds": time.process_time() - started, "support": len(machine.support_)}
    return {**about(data), "full": {**found, "accuracy": float(machine.score(T, data.test[1]))}}


PARTS = {"seeds": of_seeds, "unlimited": unlimited, "merging": merging, "full": full}


def merged(found: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """By data set, from several files: of the most rows that there are, lists of seeds one after another."""
    by_name: dict[str, Any] = {}
    for results in found:
        for name, result in results.items():
            entry = by_name.setdefault(name, {"rows": 0})
            if result["rows"] < entry["rows"]:
                continue
            if result["rows"] > entry["rows"]:
                entry = by_name[name] = {}
            for key, value in result.items():
                if key == "curves":
                    for label, runs in value.items():
                        entry.setdefault(key, {}).setdefault(label, []).extend(runs)
                elif key == "table 2":
                    for method, cell in value.items():
                        own = entry.setdefault(key, {}).setdefault(method, {})
                        for column, values in cell.items():
                            own.setdefault(column, []).extend(values)
                else:
                    entry[key] = value
    for entry in by_name.values():  # the run with objectives first
        for runs in entry.get("curves", {}).values():
            runs.sort(key=lambda one: "primal" not in one[0])
    return {name: by_name[name] for name in SETS if name in by_name}


def in_words(results: dict) -> str:
    lines = ["# Dual SVM training on a budget: reproduction", "", "## Table 2: one epoch, B = 500", ""]
    lines += ["| data | method | test accuracy | lowest | seconds | paper |", "|---|---|---|---|---|---|"]
    for name, result in results.items():
        published = SETS[name][4]
        for method, cell in result.get("table 2", {}).items():
            percent = 100 * np.array(cell["accuracy"])
            theirs = "" if published is None else f"{published[method == 'bsgd']:.2f} %"
            lines.append(
                f"| {name} ({result['rows']:,}) | {method} | {percent.mean():.2f} ± {percent.std():.2f} % | "
                f"{percent.min():.2f} % | {np.mean(cell['seconds']):.3f} | {theirs} |"
            )
    lines += ["", "## Figures 2, 3, 5, 7: test accuracy in % at the end, and its deviation averaged over the second half", ""]
    lines += [
        "| data | method, budget | accuracy | deviation over runs | over time, one run | seconds |",
        "|---|---|---|---|---|---|",
    ]
    for name, result in results.items():
        for label, runs in result.get("curves", {}).items():
            percent = 100 * np.array([[line["accuracy"] for line in one] for one in runs])
            half = percent[:, percent.shape[1] // 2 :]
            lines.append(
                f"| {name} | {label} | {percent[:, -1].mean():.2f} | {half.std(axis=0).mean():.2f} | "
                f"{half.std(axis=1).mean():.2f} | {np.mean([one[-1]['seconds'] for one in runs]):.2f} |"
            )
    lines += ["", "## Figure 4: test accuracy in % without a budget", ""]
    lines += ["| data | method | at the end | deviation over time, second half | seconds |", "|---|---|---|---|---|"]
    for name, result in results.items():
        for method, points in result.get("unlimited", {}).items():
            percent = 100 * np.array([line["accuracy"] for line in points])
            swings = percent[len(percent) // 2 :].std()
            lines.append(f"| {name} | {method} | {percent[-1]:.2f} | {swings:.2f} | {points[-1]['seconds']:.2f} |")
    lines += ["", "## Figures 1, 6: objectives at the end (in thousands)", "", "| data | method, budget | primal | dual |"]
    lines += ["|---|---|---|---|"]
    for name, result in results.items():
        for label, runs in result.get("curves", {}).items():
            last = runs[0][-1]
            if "primal" not in last:
                continue
            dual = f"{last['dual'] / 1e3:.4g}" if label.startswith("bsca") else ""
            lines.append(f"| {name} | {label} | {last['primal'] / 1e3:.4g} | {dual} |")
    lines += ["", "## Figure 8: share of steps with merging, in the first and the last epoch", ""]
    lines += ["| data | method, budget | first | last |", "|---|---|---|---|"]
    for name, result in results.items():
        for label, shares in result.get("merging", {}).items():
            lines.append(f"| {name} | {label} | {100 * shares[0]:.1f} % | {100 * shares[-1]:.1f} % |")
    lines += ["", "## Table 1: LIBSVM", "", "| data | test accuracy | support vectors | seconds |", "|---|---|---|---|"]
    lines += [
        f"| {name} | {100 * e['accuracy']:.2f} % | {e['support']:,} | {e['seconds']:.1f} |"
        for name, e in ((name, result["full"]) for name, result in results.items() if "full" in result)
    ]
    return "\n".join([*lines, ""])


def plots(results: dict, out: Path) -> None:
    """One file a figure, one panel a data set that it was run on; bands are ± a deviation over seeds."""
    plt = pyplot_in_style()

    def draw(name: str, y_label: str, key: str, panel, x_label: str = "training time [s]") -> None:
        known = {data: result for data, result in results.items() if key in result}
        if not known:
            return
        figure, axes = plt.subplots(1, len(known), figsize=(4.2 * len(known), 3.4), layout="constrained", squeeze=False)
        for axis, (data, result) in zip(axes[0], known.items(), strict=True):
            panel(axis, result[key])
            axis.set(title=data, xlabel=x_label)
            legible(axis)
        axes[0, 0].set_ylabel(y_label)
        axes[0, -1].legend()
        figure.savefig(out / f"{name}.svg", metadata={"Date": None})
        plt.close(figure)

    def accuracy(labels: tuple[str, ...], over: str = "seconds"):
        def panel(axis, curves) -> None:
            for label in labels:
                runs = curves[label]
                percent = 100 * np.array([[p["accuracy"] for p in one] for one in runs])
                x, mean, deviation = np.mean([[p[over] for p in one] for one in runs], 0), percent.mean(0), percent.std(0)
                axis.plot(x, mean, label=f"{label}, {len(runs)} seeds")
                axis.fill_between(x, mean - deviation, mean + deviation, alpha=0.25)

        return panel

    def objectives(labels: tuple[str, ...]):
        def panel(axis, curves) -> None:
            for color, label in enumerate(labels):
                points = curves[label][0]
                if "primal" not in points[0]:
                    continue
                seconds = [p["seconds"] for p in points]
                axis.plot(seconds, [p["primal"] for p in points], f"C{color}", label=f"{label}: primal")
                if label.startswith("bsca"):
                    axis.plot(seconds, [p["dual"] for p in points], f"C{color}--", label=f"{label}: dual")
            axis.set_yscale("log")

        return panel

    def without(axis, found) -> None:
        for method, points in found.items():
            axis.plot([p["epoch"] for p in points], [100 * p["accuracy"] for p in points], label=f"{method}, no budget")

    def merging_steps(axis, found) -> None:
        for label, shares in found.items():
            color, dash = ("200", "500", "1000").index(label.split()[1]), "-" if label.startswith("bsca") else ":"
            axis.plot(np.arange(1, len(shares) + 1), [100 * share for share in shares], f"C{color}{dash}", label=label)

    draw("figure1", "objective", "curves", objectives(("bsca 500", "bsgd 500")))
    draw("figure2", "test accuracy [%]", "curves", accuracy(("bsca 500", "bsgd 500")))
    draw("figure3", "test accuracy [%]", "curves", accuracy(("bsca 500", "bsgd 500"), "epoch"), "epochs")
    draw("figure4", "test accuracy [%]", "unlimited", without, "epochs")
    draw("figure5", "test accuracy [%]", "curves", accuracy(("bsca 200", "bsgd 200")))
    draw("figure6", "objective", "curves", objectives(("bsca 200", "bsca 500")))
    draw("figure7", "test accuracy [%]", "curves", accuracy(("bsca 200", "bsca 500")))
    draw("figure8", "steps with merging [%]", "merging", merging_steps, "epoch")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--out", type=Path, default=Path("reproduce_bsca"))
    parser.add_argument("--data", type=lambda text: text.split(","), metavar="NAME,…", default=list(SETS))
    parser.add_argument("--rows", type=int, help="only so many training rows")
    parser.add_argument("--seed", type=int, help="this one alone, instead of those from 0 to 9")
    parser.add_argument("--quick", action="store_true", help="10,000 rows of each set, 3 seeds, 3 epochs")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if unknown := set(options.data) - set(SETS):
        parser.error(f"no experiment on {', '.join(sorted(unknown))}; there are some on {', '.join(SETS)}")
    missing = [name for name in options.data if not (DATA / name).is_dir()]
    if missing:
        sys.exit(f"{', '.join(missing)}: not in {DATA}; set STREAMCUT_DATA to the folder of the data sets")
    options.out.mkdir(parents=True, exist_ok=True)
    seeds = [options.seed] if options.seed is not None else range(3 if options.quick else 10)
    found = []
    for name in options.data:
        data = Data(name, options.rows or (10_000 if options.quick else None))
        for part in options.parts or PARTS:
            started = time.monotonic()
            found.append({name: PARTS[part](data, seeds, 3 if options.quick else 100)})
            (options.out / "results.json").write_text(json.dumps(merged(found)))
            (options.out / "results.md").write_text(in_words(merged(found)))
            print(f"{name}, {part}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    print(in_words(merged(found)))


if __name__ == "__main__":
    main()
