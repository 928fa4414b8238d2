"""Linear SVMs in memory: streamcut's solvers next to LIBLINEAR, scikit-learn's SGDClassifier and Vowpal Wabbit, same objective.

All minimise ½‖w‖² + C Σ max(0, 1 − y⟨w, x⟩) with a regularised bias; F is evaluated here in float64, in nobody's time. Seconds
are processor time of one thread, by the clock where streamcut has two. LIBLINEAR is run at several -e, SGD and Vowpal Wabbit are
looked at after 1, 2, 4, … passes. Suboptimality is that against the highest lower bound that streamcut proved, so the true one
is at most that.

Writes results.json, results.md and results.png (two panels a problem: by passes, by seconds) into --out, after every problem.
LIBLINEAR and scikit-learn come with `pip install -e .[dev]`; also needed: vowpalwabbit and matplotlib, unless --tools and
--no-plot do without. The data from disk instead: bench_linear_disk.py.

A tool that takes minutes need not run again: --known takes the points of tools that are not in --tools from a results.json.

Usage: python scripts/benchmarks/bench_linear.py --out FOLDER [--sets a9a,ijcnn1] [--C 1,10] [--seconds 20] [--repeat 3]
           [--epsilon 0.1]
       [--known OTHER/results.json --tools "bundle-dca 0 %,bundle-dca 30 %"]
       (data from STREAMCUT_DATA, default ../shared/data; text-like: 1,000,000 × 1,000,000 by make_data.py's recipe)
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # peers, too: LIBSVM spins on OpenMP threads

import numpy as np
import scipy.sparse as sp
from bench_linear_tools import EPSILONS, SOLVERS, VW_KINDS, Liblinear, Point, Problem, VowpalWabbit, sgd, streamcut, vw_lines
from sklearn.datasets import load_svmlight_file

from streamcut.foundation.chunk import Chunk
from streamcut.io.memory import MemoryDataset

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from make_data import Recipe, Source

DATA = Path(os.environ.get("STREAMCUT_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
SETS = ("a9a", "ijcnn1", "celegans_splice", "flights3m", "news20_bydate", "text-like")
IN_ORDER = {"celegans_splice", "flights3m"}  # of time or place: shuffled first
ONE_AGAINST_REST = {"news20_bydate": 1.0}
TEXT_LIKE = Recipe("text", 1_000_000, 1_000_000, 60, 0.1, 0)
OTHERS = ("liblinear", "sgd", *VW_KINDS)
LEVELS = (1e-1, 1e-2, 1e-3)  # of suboptimality, in the table
_BLOCK = 1 << 14  # rows


def load(name: str) -> tuple[sp.csr_array, np.ndarray]:
    """The training set as CSR float32, labels ±1."""
    if name == "text-like":
        source = Source(TEXT_LIKE)
        blocks = [source.block(number) for number in range(-(-TEXT_LIKE.rows // TEXT_LIKE.block_rows))]
        parts = [sp.csr_array((b.data, b.indices, b.indptr), (b.n_rows, TEXT_LIKE.features)) for b in blocks]
        return sp.csr_array(sp.vstack(parts)), np.concatenate([b.y for b in blocks])
    with lzma.open(DATA / name / "train.svm.xz") as file:
        X, y = load_svmlight_file(file, zero_based=False, dtype=np.float32)
    order = np.random.default_rng(0).permutation(len(y)) if name in IN_ORDER else slice(None)
    return sp.csr_array(X)[order], np.where(y == ONE_AGAINST_REST.get(name, y.max()), 1.0, -1.0)[order]


def chunks(X: sp.csr_array, y: np.ndarray) -> Iterator[Chunk]:
    whole = Chunk(X.indptr.astype(np.int64), X.indices, X.data, y)
    for start in range(0, len(y), _BLOCK):
        part = whole.rows(start, min(start + _BLOCK, len(y)))
        cut = slice(part.indptr[0], part.indptr[-1])
        yield replace(part, indptr=part.indptr - part.indptr[0], indices=part.indices[cut], data=X.data[cut])


Known = dict[tuple[str, float], dict[str, list[Point]]]


def read_known(path: Path) -> Known:
    """What an earlier results.json says of (set, C): the points of every tool."""
    listed = [(result.pop("set"), result.pop("C"), result) for result in json.loads(path.read_text())]
    return {
        (name, C): {tool: [Point(**point) for point in points] for tool, points in result.items()} for name, C, result in listed
    }


def curves(
    name: str, Cs: list[float], tools: list[str], seconds: float, repeat: int, epsilons: list[float]
) -> Iterator[tuple[float, dict]]:
    """(C, points of every tool) of one data set; seconds are medians of all runs, which take turns."""
    X, y = load(name)
    data = MemoryDataset(X, y)
    first = Problem(name, X, y, 1.0)
    wide = first.with_bias() if "sgd" in tools else None
    liblinear = Liblinear(first) if "liblinear" in tools else None
    with tempfile.TemporaryDirectory() as folder:
        wabbit = VowpalWabbit(Path(folder), *X.shape) if set(tools) & set(VW_KINDS) else None
        if wabbit is not None:
            wabbit.convert(vw_lines(chunks(X, y), X.shape[1]))
        for C in Cs:
            problem, runs = replace(first, C=C), {tool: [] for tool in tools}
            for _ in range(repeat):
                for tool in tools:
                    if tool in SOLVERS:
                        found = streamcut(problem, data, tool, seconds)
                    elif liblinear is not None and tool == "liblinear":
                        found = liblinear.points(problem, seconds, epsilons)
                    elif wabbit is not None and tool in VW_KINDS:
                        found = wabbit.points(tool, problem, seconds)
                    else:
                        found = sgd(problem, wide, seconds)
                    runs[tool].append(found)
                    print(f"{name} C={C:g} {tool}: {len(found)} points, {found[-1].seconds:.1f} s", file=sys.stderr, flush=True)
            yield C, {tool: medians(found) for tool, found in runs.items()}


def medians(runs: list[list[Point]]) -> list[Point]:
    """The points of the first run with the median of seconds; a run that ended by time may have fewer than others."""
    together = zip(*runs, strict=False)
    return [replace(points[0], seconds=float(np.median([point.seconds for point in points]))) for points in together]


def seconds_until(points: list[Point], primal: float) -> float | None:
    """When F first was at most this."""
    return next((point.seconds for point in points if point.primal <= primal), None)


def table(name: str, C: float, found: dict[str, list[Point]]) -> list[str]:
    """Markdown lines: passes and seconds to some suboptimalities, and to what LIBLINEAR reaches at the first -e."""
    best = max((point.bound for points in found.values() for point in points if point.bound is not None), default=0.0)
    primal = min(point.primal for points in found.values() for point in points)
    lines = [f"## {name}, C = {C:g}", "", f"The optimum lies between {best:.8g} and {primal:.8g}.", ""]
    goal = found["liblinear"][0] if "liblinear" in found else None
    head = [*(f"{100 * level:g} % above" for level in LEVELS), "best F", "its gap"]
    if goal is not None:
        lines += [
            f"LIBLINEAR: F = {goal.primal:.8g}, {100 * (goal.primal / best - 1):.2g} % above, {goal.seconds:.3f} s.",
            "",
        ]
        head.append("time to LIBLINEAR's F / LIBLINEAR's")
    lines += ["| tool | " + " | ".join(head) + " |", "|---" * (len(head) + 1) + "|"]
    for tool, listed in found.items():
        points, cells = sorted(listed, key=lambda point: point.passes), []
        for level in LEVELS:
            point = next((point for point in points if point.primal <= (1.0 + level) * best), None)
            cells.append("—" if point is None else f"{point.passes:g} passes, {point.seconds:.3f} s")
        last = min(points, key=lambda point: point.primal)
        cells.append(f"{last.primal:.7g}")
        bound = max((point.bound for point in points if point.bound is not None), default=None)
        cells.append("" if bound is None else f"{100 * (last.primal / bound - 1):.2g} %")
        if goal is not None:
            taken = seconds_until(points, goal.primal * (1.0 + 1e-9))
            cells.append("—" if taken is None else f"{taken / goal.seconds:.2f}")
        lines.append(f"| {tool} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def plot(results: list[tuple[str, float, dict[str, list[Point]]]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(len(results), 2, figsize=(13, 4.2 * len(results)), squeeze=False)
    for (name, C, found), row in zip(results, axes, strict=True):
        best = max((point.bound for points in found.values() for point in points if point.bound is not None), default=0.0)
        for tool, listed in found.items():
            points = sorted(listed, key=lambda point: point.passes)
            above = [point.primal / best - 1.0 for point in points]
            marker = "" if tool in SOLVERS else "o"
            for axis, what in zip(row, ("passes", "seconds"), strict=True):
                axis.plot([getattr(point, what) for point in points], above, marker=marker, markersize=4, label=tool)
        for axis, what in zip(row, ("passes over the data", "processor seconds"), strict=True):
            axis.set(xscale="log", yscale="log", xlabel=what, ylabel="F above the lower bound", title=f"{name}, C = {C:g}")
            axis.set_ylim(5e-5, 3.0)
            axis.grid(alpha=0.3)
        row[0].legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(path, dpi=90)
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--C", default="1,10")
    parser.add_argument("--tools", default=",".join([*SOLVERS, *OTHERS]))
    parser.add_argument("--seconds", type=float, default=20.0, help="for one run of one tool")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--epsilon", default=",".join(map(str, EPSILONS)), help="LIBLINEAR's -e; ratios are to the first of them")
    parser.add_argument("--known", type=Path, help="results.json of an earlier run")
    parser.add_argument("--no-plot", action="store_true")
    options = parser.parse_args()
    names, tools = options.sets.split(","), options.tools.split(",")
    for given, allowed in ((names, SETS), (tools, (*SOLVERS, *OTHERS))):
        if unknown := [one for one in given if one not in allowed]:
            parser.error(f"{', '.join(unknown)} is not known; there are {', '.join(allowed)}")
    if not options.no_plot:
        import matplotlib  # noqa: F401  (missing? then before the first run)
    if set(tools) & set(VW_KINDS):
        import vowpalwabbit  # noqa: F401
    options.out.mkdir(parents=True, exist_ok=True)
    results = []
    Cs, epsilons = ([float(number) for number in text.split(",")] for text in (options.C, options.epsilon))
    known = {} if options.known is None else read_known(options.known)
    for name in names:
        for C, measured in curves(name, Cs, tools, options.seconds, options.repeat, epsilons):
            found = known.get((name, C), {}) | measured
            results.append((name, C, found))
            listed = [{"set": n, "C": c, **{t: [asdict(p) for p in points] for t, points in f.items()}} for n, c, f in results]
            (options.out / "results.json").write_text(json.dumps(listed, indent=1) + "\n")
            (options.out / "results.md").write_text("\n".join(line for result in results for line in table(*result)))
            print("\n".join(table(name, C, found)), flush=True)
    if not options.no_plot:
        plot(results, options.out / "results.png")


if __name__ == "__main__":
    main()
