"""draw_figures.py [--data DIR]: the pictures in docs/images, from real runs. Needs matplotlib (`pip install '.[plots]'`).

gap.svg   objective and lower bound by pass: a9a from DIR or STREAMCUT_DATA, hinge, C = 1, no row cache
cuts.svg  a loss of one weight, two of its cuts, and the bound that they give
parts.svg the packages, from the command line down to kernels and files, and what each asks of the next
"""

from __future__ import annotations

import argparse
import lzma
import os
import tempfile
from pathlib import Path

import matplotlib as mpl
import numpy as np

import streamcut

mpl.use("Agg")
from matplotlib import pyplot as plt

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "images"
GREY, TEAL, RED = "#808a8a", "#009485", "#d1495b"  # legible on white and on black
plt.rcParams.update({
    "svg.hashsalt": "streamcut", "svg.fonttype": "path", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False,
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), GREY),
})  # fmt: skip


def gap(data: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "a9a.svm")
        text.write_bytes(lzma.decompress((data / "a9a" / "train.svm.xz").read_bytes()))
        streamcut.convert(text, Path(folder, "a9a.zarr"))
        best: list[float] = []
        bound: list[float] = []

        def note(iteration) -> None:
            best.append(min([iteration.primal, *best[-1:]]))
            bound.append(iteration.lower_bound)

        streamcut.train(Path(folder, "a9a.zarr"), loss="hinge", row_cache="0", tol=1e-4, tol_relative=1e-3, on_iteration=note)
    figure, axes = plt.subplots(figsize=(7.2, 3.0), layout="constrained")
    passes = np.arange(1, len(best) + 1)
    axes.fill_between(passes, bound, best, color=TEAL, alpha=0.12, linewidth=0)
    axes.plot(passes, best, color=TEAL, linewidth=2, marker="o", markersize=3)
    axes.plot(passes, bound, color=RED, linewidth=2, linestyle="--", marker="o", markersize=3)
    low, high = bound[-1], best[-1]
    axes.set(xlabel="passes over the data", ylabel="objective", xlim=(1, len(best)), ylim=(0.8 * low, 1.45 * high))
    axes.annotate("objective of the model", (passes[3], best[3]), (4.6, 1.25 * high), color=TEAL)
    axes.annotate("no model can be below this", (passes[5], bound[5]), (6.2, 0.86 * low), color=RED)
    relative = 100 * (best[-1] - bound[-1]) / best[-1]
    said = f"a9a, 32,561 rows: after {len(best)} passes at most {relative:.2f} % above the optimum"
    axes.set_title(said, loc="left", fontsize=10)
    figure.savefig(FOLDER / "gap.svg", transparent=True, metadata={"Date": None})


def cuts() -> None:
    def loss(at):
        return np.logaddexp(0, 2.5 - 1.2 * at) + np.logaddexp(0, 1.1 * at - 3.5)

    def slope(at):
        return -1.2 / (1 + np.exp(1.2 * at - 2.5)) + 1.1 / (1 + np.exp(3.5 - 1.1 * at))

    def quadratic(at):
        return 0.03 * at**2

    w = np.linspace(-1.5, 6.5, 600)
    figure, axes = plt.subplots(figsize=(7.2, 3.0), layout="constrained")
    axes.plot(w, quadratic(w) + loss(w), color=TEAL, linewidth=2)
    model = np.full_like(w, -np.inf)
    for at in (0.4, 4.7):
        cut = quadratic(w) + loss(at) + slope(at) * (w - at)
        axes.plot(w, cut, color=GREY, linewidth=1)
        axes.plot([at], [quadratic(at) + loss(at)], "o", color=GREY, markersize=5)
        model = np.maximum(model, cut)
    least = model.argmin()
    axes.plot(w, model, color=RED, linewidth=2, linestyle="--")
    axes.plot([w[least]], [model[least]], "o", color=RED)
    axes.axhline(model[least], color=RED, linewidth=0.8, linestyle=":")
    axes.annotate("objective", (w[20], 0), (w[20] + 0.35, quadratic(w[20]) + loss(w[20]) - 0.25), color=TEAL)
    axes.annotate("a cut", (0, 0), (3.6, -0.6), color=GREY)
    axes.annotate("the best of the cuts: a lower bound, and the next w", (w[least], 0), (-1.4, model[least] - 0.5), color=RED)
    axes.set(xlabel="w", xlim=(-1.5, 6.5), ylim=(-0.9, 4.2), yticks=[])
    figure.savefig(FOLDER / "cuts.svg", transparent=True, metadata={"Date": None})


LAYERS = (  # what it is, where it is, what it asks of the next
    ("doors", "cli  fitting  training  tuning  sklearn", "options: options, config"),
    ("a job: how this training runs", "strategy  jobs", "an oracle, a solver, a plan of memory"),
    ("a solver: one algorithm a file", "solvers  bundle", "a cut at w; a pass of dual ascent; a line search"),
    ("an oracle: answers by passes", "oracles  losses  kernels", "a pass: what happens to rows, how sums add up"),
    ("a runner: threads here, workers on Dask", "execution", "blocks of rows; kernels on them"),
)


def parts() -> None:
    figure, axes = plt.subplots(figsize=(7.2, 4.8))
    figure.subplots_adjust(0, 0, 1, 1)
    axes.set(xlim=(0, 100), ylim=(-4, 65))
    axes.axis("off")

    def box(left, low, width, title, inside, colour):
        axes.add_patch(plt.Rectangle((left, low), width, 7.4, fill=False, edgecolor=colour, linewidth=1.4))
        lines = inside.count("\n") + 1
        axes.text(left + 1.6, low + 6.4, title, va="top", color=colour, fontsize=9)
        axes.text(
            left + 1.6, low + 0.9, inside, va="bottom", fontsize=8 if lines == 1 else 6.6, family="monospace", linespacing=1.1
        )

    def arrow(x, high, low):
        axes.annotate("", (x, low), (x, high), arrowprops={"arrowstyle": "-|>", "color": GREY, "linewidth": 1.2})

    for row, (title, inside, asks) in enumerate(LAYERS):
        low = 56 - 11.6 * row
        box(1, low, 62, title, inside, TEAL)
        arrow(12, low - 0.2, low - 4.0)
        axes.text(14, low - 2.2, asks, va="center", fontsize=8, style="italic")
    for left, title, inside in ((1, "kernels", "compiled  compiler"), (33, "storage, formats", "io")):
        box(left, -2.6, 30, title, inside, RED)
    arrow(48, 9.4, 5.6)
    for row, left, title, inside in (
        (0, 68, "what came out", "models  prediction  evaluation\nexports  reports  calibration"),
        (2, 68, "how far it is from the optimum", "verification\ncertification  certified"),
    ):
        box(left, 56 - 11.6 * row, 31, title, inside, TEAL)
        axes.annotate("", (63.4, 59.7 - 11.6 * row), (67.6, 59.7 - 11.6 * row), arrowprops={"arrowstyle": "<|-", "color": GREY})
    axes.text(68, 14.5, "Imports point down, never up.\nBelow all: foundation, errors.", fontsize=8, va="top", linespacing=1.4)
    figure.savefig(FOLDER / "parts.svg", transparent=True, metadata={"Date": None})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("STREAMCUT_DATA"))
    chosen = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    cuts()
    parts()
    if chosen.data is not None:
        gap(chosen.data)
