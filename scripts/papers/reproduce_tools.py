"""What the scripts that repeat experiments of papers share: real data in memory, times, slopes, results and plots in one style.

Times are processor time of this process, with one thread unless said: what else the machine does changes them little.
"""

from __future__ import annotations

import json
import lzma
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # peers, too: LIBSVM spins on OpenMP threads

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.metrics import roc_auc_score

DATA = Path(os.environ.get("STREAMCUT_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
POSITIVE = {"covtype_20k": 1.0, "mnist": 8.0}  # against the rest; elsewhere the greater label
POOLED = ("covtype_20k",)  # its training rows were not drawn like its test rows
SCALED = ("covtype_20k", "spambase")  # columns divided by their largest value
COLOURS = ("#3d8bd4", "#d9822b", "#3fa66b", "#b565c9", "#d4564f", "#8c8c3a", "#777777")


class Rows:
    """Training and test rows with labels ±1: X, T sparse float32 (n, d), y, t float64; grey levels are 0 to 1."""

    def __init__(self, name: str, most: int | None = None) -> None:
        self.name = name
        parts = []
        for split in ("train", "test"):
            with lzma.open(DATA / name / f"{split}.svm.xz") as file:
                parts.append(load_svmlight_file(file, zero_based=False, dtype=np.float32))
        d = max(X.shape[1] for X, _ in parts)
        for X, _ in parts:
            X.resize(X.shape[0], d)
        random = np.random.default_rng(0)
        if name in POOLED:
            X, y = sp.vstack([X for X, _ in parts], format="csr"), np.concatenate([y for _, y in parts])
            order, n = random.permutation(len(y)), len(parts[0][1])
            parts = [(X[some], y[some]) for some in (order[:n], order[n:])]
        (X, y), (T, t) = parts
        scale = 1.0 if name != "mnist" else 1.0 / 255.0
        if name in SCALED:
            scale = sp.diags_array((1.0 / np.maximum(abs(X).max(axis=0).toarray()[0], 1e-9)).astype(np.float32))
            X, T = X @ scale, T @ scale
        elif scale != 1.0:
            X, T = X * np.float32(scale), T * np.float32(scale)
        positive = POSITIVE.get(name, y.max())
        order = random.permutation(len(y))[:most]
        self.X, self.y = sp.csr_array(X[order]).astype(np.float32), np.where(y[order] == positive, 1.0, -1.0)
        self.T, self.t = sp.csr_array(T).astype(np.float32), np.where(t == positive, 1.0, -1.0)

    def first(self, n: int) -> tuple[sp.csr_array, np.ndarray]:
        """n training rows, both classes among them."""
        return self.X[:n], self.y[:n]

    def objective(self, w: np.ndarray, C: float) -> float:
        """½‖w‖² + C Σ hinge over the training rows."""
        w = np.asarray(w, dtype=np.float64).ravel()
        return float(0.5 * w @ w + C * np.maximum(0.0, 1.0 - self.y * (self.X @ w)).sum())

    def accuracy(self, w: np.ndarray) -> float:
        """On the test rows."""
        return float(np.mean((self.T @ np.asarray(w).ravel() > 0) == (self.t > 0)))

    def auc(self, w: np.ndarray) -> float:
        """On the test rows."""
        return float(roc_auc_score(self.t, self.T @ np.asarray(w).ravel()))


def gaussians(n: int, d: int, seed: int = 0) -> tuple[sp.csr_array, np.ndarray]:
    """Dense rows of two Gaussians with diagonal covariances of several scales, as Franc and Sonnenburg's artificial set."""
    random = np.random.default_rng(seed)
    scales = 10.0 ** np.random.default_rng(1).uniform(-1.0, 1.0, (2, d))
    y = np.where(random.random(n) < 0.5, 1.0, -1.0)
    X = random.standard_normal((n, d)) * scales[(y > 0).astype(int)] + 0.1 * (y[:, None] > 0) * scales.mean(axis=0)
    return sp.csr_array(X.astype(np.float32)), y


def seconds_of(work: Callable[[], Any]) -> tuple[Any, float]:
    """(what `work` gives, its processor time)."""
    started = time.process_time()
    found = work()
    return found, time.process_time() - started


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """d of y ~ x^d, by least squares on logarithms; nan with fewer than two points."""
    kept = [(a, b) for a, b in zip(x, y, strict=True) if a > 0 and b > 0]
    if len(kept) < 2:
        return float("nan")
    return float(np.polyfit(*np.log(np.array(kept)).T, 1)[0])


def fact(paper: str, item: str, there: float | str, here: float | str, note: str = "") -> dict[str, Any]:
    """A line of the table of all papers: a figure that the paper gives, and ours."""
    return {"paper": paper, "item": item, "there": there, "here": here, "note": note}


def markdown(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table; numbers to four digits."""
    lines = [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
    lines += [f"| {' | '.join(_cell(value) for value in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "–" if np.isnan(value) else f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def write(folder: Path, part: str, result: Any, words: str, facts: Sequence[Mapping[str, Any]] = ()) -> None:
    """PART.json (result and facts) and PART.md in `folder`; prints the words."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{part}.json").write_text(json.dumps({"result": result, "facts": list(facts)}, indent=1) + "\n")
    (folder / f"{part}.md").write_text(words)
    print(f"## {part}\n\n{words}", flush=True)


STYLE: dict[str, Any] = {  # of all plots
    "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.3,
    "legend.frameon": False, "legend.fontsize": 7, "svg.fonttype": "none",
}  # fmt: skip


def pyplot_in_style() -> Any:
    """matplotlib.pyplot for files alone, in the style of all plots."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    pyplot.rcParams.update({**STYLE, "axes.prop_cycle": mpl.cycler(color=COLOURS)})
    return pyplot


def legible(panel: Any) -> None:
    """On logarithmic axes of little more than a decade: plain numbers at 1, 2 and 5 of each, and no others."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for axis, limits in ((panel.xaxis, panel.get_xlim()), (panel.yaxis, panel.get_ylim())):
        if axis.get_scale() != "log":
            continue
        axis.set_minor_formatter(NullFormatter())
        if limits[1] < 50.0 * limits[0]:
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1e3 else f"{value:g}"))


def panels(
    path: Path, drawn: Sequence[tuple[str, str, str, Mapping[str, tuple[Sequence[float], Sequence[float]]]]], **axes: str
) -> None:
    """An SVG with a panel for each (title, x label, y label, {curve: (x, y)}); `axes` such as xscale="log" hold for all."""
    pyplot = pyplot_in_style()
    figure, found = pyplot.subplots(1, len(drawn), figsize=(4.2 * len(drawn), 3.4), squeeze=False, layout="constrained")
    for panel, (title, x_label, y_label, curves) in zip(found[0], drawn, strict=True):
        for number, (name, (x, y)) in enumerate(curves.items()):
            reference = name.startswith("~")
            style = (
                {"linestyle": "--", "color": "#999999"} if reference else {"marker": ".", "color": COLOURS[number % len(COLOURS)]}
            )
            panel.plot(x, y, label=name.lstrip("~"), **style)
        panel.set(title=title, xlabel=x_label, ylabel=y_label, **axes)
        legible(panel)
        panel.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
