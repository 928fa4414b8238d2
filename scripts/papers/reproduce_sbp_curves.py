"""Figure 2 of the paper of reproduce_sbp.py: test error against kernel evaluations."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from reproduce_sbp_tools import TABLE_2, Problem, gaussian, made, optimum, run
from reproduce_tools import legible, pyplot_in_style

from streamcut.solvers.papers.kernel_iterations import Limits


def curves(options) -> Iterator[tuple[str, dict]]:
    """Figure 2: what was found for each data set, as it comes."""
    for name in [name for name in TABLE_2 if options.data is None or name in options.data]:
        problem = Problem(name, options.rows, options.test_rows)
        variance, C, theirs = TABLE_2[name][0]
        kernel = gaussian(variance)
        best = optimum(problem, kernel, C, bias=False)
        entry = {"rows": problem.m, "test rows": len(problem.test_y), "nu of Table 2": theirs, "smo": best, "methods": {}}
        for method in ("sbp", "pegasos", "sdca", "perceptron"):
            started = time.thread_time()
            histories = [
                run(made(method, problem, kernel, seed, nu=best["nu"], C=C), problem, kernel, Limits(options.epochs))
                for seed in range(options.runs)
            ]
            least = min(history[-1]["evaluations"] for history in histories)
            grid = np.geomspace(problem.m, least, 30)
            errors = np.array([
                np.interp(np.log(grid), np.log([max(h["evaluations"], 1) for h in history]), [h["error"] for h in history])
                for history in histories
            ])  # fmt: skip
            entry["methods"][method] = {
                "evaluations": grid.tolist(),
                "mean": errors.mean(axis=0).tolist(),
                "spread": errors.std(axis=0).tolist(),
                "last": float(np.mean([history[-1]["error"] for history in histories])),
                "last_evaluations": float(np.mean([history[-1]["evaluations"] for history in histories])),
                "seconds_a_run": (time.thread_time() - started) / options.runs,
                "figures": {k: histories[0][-1][k] for k in ("norm", "mean_hinge") if k in histories[0][-1]},
            }
            print(name, method, entry["methods"][method]["last"], flush=True)
        yield name, entry


def at(method: dict, evaluations: float) -> float:
    """Mean test error of a method at so many kernel evaluations; nan outside of what it did."""
    known = np.array(method["evaluations"])
    if not known[0] <= evaluations <= known[-1] * (1 + 1e-9):
        return float("nan")
    return float(np.interp(np.log(evaluations), np.log(known), method["mean"]))


def curves_in_words(result: dict) -> str:
    lines = []
    for name, entry in result.items():
        m, methods, best = entry["rows"], entry["methods"], entry["smo"]
        lines += [
            f"### {name}: {m:,} rows, {entry['test rows']:,} test rows",
            "",
            f"ν = {best['nu']:.3g} from SMO's optimum (Table 2, all rows: {entry['nu of Table 2']:.3g}); SMO: "
            f"{100 * best['error']:.2f} % after {best['curve'][-1][0]:,} evaluations.",
            "",
            "| kernel evaluations | " + " | ".join(methods) + " |",
            "|---" * (len(methods) + 1) + "|",
        ]
        for epochs in (0.03, 0.1, 0.3, 1, 3, 10, 30):
            values = [at(method, epochs * m * m) for method in methods.values()]
            if not np.isnan(values).all():
                shown = ["" if np.isnan(value) else f"{100 * value:.2f}" for value in values]
                lines.append(f"| {epochs:g} m² | " + " | ".join(shown) + " |")
        last = [
            f"{100 * v['last']:.2f} ± {100 * v['spread'][-1]:.2f} ({v['last_evaluations'] / m**2:.2g} m²)"
            for v in methods.values()
        ]
        lines += ["| end | " + " | ".join(last) + " |"]
        ahead = {
            rival: np.mean([
                at(methods["sbp"], x) <= y for x, y in zip(methods[rival]["evaluations"], methods[rival]["mean"], strict=True)
                if not np.isnan(at(methods["sbp"], x))
            ])
            for rival in ("pegasos", "sdca")
        }  # fmt: skip
        told = ", ".join(f"{rival} on {100 * share:.0f} %" for rival, share in ahead.items())
        lines += ["", f"SBP is at least as good as {told} of the (logarithmic) axis."]
        figures = methods["sbp"]["figures"]
        if figures:
            lines += [
                f"Norm and mean hinge loss of its last average: {figures['norm'] / best['norm']:.4f} and "
                f"{figures['mean_hinge'] / best['hinge']:.4f} of the optimum's.",
            ]
        lines.append("")
    return "\n".join(lines)


def plot(result: dict, path: Path) -> None:
    """Figure 2: one panel a data set, mean and spread."""
    pyplot = pyplot_in_style()
    figure, panels = pyplot.subplots(1, len(result), figsize=(4.2 * len(result), 3.4), squeeze=False, layout="constrained")
    for panel, (name, entry) in zip(panels[0], result.items(), strict=True):
        for method, values in entry["methods"].items():
            x, mean, spread = (np.array(values[key]) for key in ("evaluations", "mean", "spread"))
            (line,) = panel.plot(x, 100 * mean, label=method)
            panel.fill_between(x, 100 * (mean - spread), 100 * (mean + spread), color=line.get_color(), alpha=0.2)
        panel.plot(*zip(*[(x, 100 * y) for x, y in entry["smo"]["curve"]], strict=True), label="smo", color="black")
        low = min(min(values["mean"]) for values in entry["methods"].values())
        panel.set(title=name, xscale="log", xlabel="kernel evaluations", ylabel="test error, %", ylim=(90 * low, 400 * low))
        legible(panel)
        panel.legend()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
