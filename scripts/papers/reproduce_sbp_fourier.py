"""Figure 3 of the paper of reproduce_sbp.py: SBP against random Fourier features, at equal numbers of inner products."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from reproduce_sbp_tools import TABLE_2, Problem, gaussian, made, optimum, run
from reproduce_tools import markdown, panels

from streamcut.io.memory import MemoryDataset
from streamcut.prediction import predict
from streamcut.solvers.papers.kernel_iterations import Limits
from streamcut.training import train


def fourier(options) -> Iterator[tuple[str, dict]]:
    """k pairs of features take k inner products a row, as k kernel values do; training on them counts nothing."""
    pairs = [4**power for power in range(5)] if options.quick else [2**power for power in range(13)]
    for name in [name for name in TABLE_2 if options.data is None or name in options.data]:
        problem = Problem(name, options.rows, options.test_rows)
        variance, C, _ = TABLE_2[name][0]
        kernel = gaussian(variance)
        best = optimum(problem, kernel, C, bias=False)
        histories = [
            run(made("sbp", problem, kernel, seed, nu=best["nu"], C=C), problem, kernel, Limits(options.epochs))
            for seed in range(options.runs)
        ]
        least = min(history[-1]["evaluations"] for history in histories)
        grid = np.geomspace(problem.m, least, 30)
        errors = [
            np.interp(np.log(grid), np.log([max(h["evaluations"], 1) for h in history]), [h["error"] for h in history])
            for history in histories
        ]
        test = MemoryDataset(problem.test_X, problem.test_y)
        by_pairs = []
        for k in pairs:
            found = []
            for seed in range(options.runs):
                model = train(
                    problem.data, kernel="rbf", gamma=kernel.gamma, fourier=2 * k, C=C, bias=0.0, seed=seed, max_passes=200
                )
                found.append(float(np.mean(predict(model, test) != problem.test_y)))
            by_pairs.append((float(np.mean(found)), float(np.std(found))))
        yield (
            name,
            {
                "rows": problem.m,
                "optimum": best["error"],
                "sbp": {"products": grid.tolist(), "mean": np.mean(errors, axis=0).tolist()},
                "fourier": {
                    "pairs": pairs,
                    "products": [k * problem.m for k in pairs],
                    "mean": [mean for mean, _ in by_pairs],
                    "spread": [spread for _, spread in by_pairs],
                },
            },
        )


def ahead(entry: dict) -> float:
    """The part of the axis, from a kernel value a row on, on which SBP is at least as good, in percent."""
    own, theirs = entry["sbp"], entry["fourier"]
    x = np.array([product for product in theirs["products"] if own["products"][0] <= product <= own["products"][-1]])
    y = np.array(theirs["mean"])[np.isin(theirs["products"], x)]
    return 100 * float(np.mean(np.interp(np.log(x), np.log(own["products"]), own["mean"]) <= y))


def fourier_in_words(result: dict) -> str:
    lines = []
    for name, entry in result.items():
        own, theirs = entry["sbp"], entry["fourier"]
        for k, products, mean, spread in zip(*theirs.values(), strict=True):
            sbp = np.interp(np.log(products), np.log(own["products"]), own["mean"], left=np.nan, right=np.nan)
            shown = ["" if np.isnan(value) else f"{100 * value:.2f}" for value in (sbp, entry["optimum"])]
            lines.append((name, 2 * k, products, f"{100 * mean:.2f} ± {100 * spread:.2f}", *shown))
    return markdown(("data", "features", "inner products", "test error, %", "SBP's by then", "optimum's"), lines)


def plot_fourier(result: dict, path: Path) -> None:
    drawn = []
    for name, entry in result.items():
        own, theirs = entry["sbp"], entry["fourier"]
        curves = {
            "SBP": (own["products"], [100 * y for y in own["mean"]]),
            "random Fourier features": (theirs["products"], [100 * y for y in theirs["mean"]]),
            "~optimum": ([theirs["products"][0], own["products"][-1]], [100 * entry["optimum"]] * 2),
        }
        drawn.append((name, "inner products", "test error, %", curves))
    panels(path, drawn, xscale="log")
