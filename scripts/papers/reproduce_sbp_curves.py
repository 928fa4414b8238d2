"""Figure 2 of the paper of reproduce_sbp.py: test error against kernel evaluations, one record for each run.

Evaluations are counted twice. `evaluations`: a row that a step changes costs a whole column, one that a step leaves costs
nothing, as responses are kept. `looked`: every row that is looked at costs a column, whether it is changed or not, as the paper's
analysis counts ("even a Pegasos-type update requires either considering all support vectors, or updating all responses").
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from reproduce_sbp_stored import StoredResponses, scores, stored_values
from reproduce_sbp_tools import TABLE_2, Problem, gaussian, optimum, solver_on
from reproduce_tools import legible, pyplot_in_style

from streamcut.papers import rounds
from streamcut.solvers.progress import Progress, StoppingRule

METHODS = ("sbp", "pegasos", "sdca", "perceptron")
AXES = ("evaluations", "looked")
KEPT = ("rows_seen", "evaluations", "error", "support", "norm", "mean_hinge")  # of a history


def curves(options: Any) -> Iterator[dict[str, Any]]:
    """A record of each data set, method and seed; of "smo" one."""
    for name in [name for name in TABLE_2 if options.data is None or name in options.data]:
        problem = Problem(name, options.rows, options.test_rows)
        variance, C, published = TABLE_2[name][0]
        kernel = gaussian(variance)
        about = {"data": name, "rows": problem.m, "test rows": len(problem.test_y), "nu of Table 2": published}
        best = None
        if options.rows is not None or "smo" in options.methods:
            best = optimum(problem, kernel, C, bias=False)
            yield {**about, "method": "smo", "seed": 0, **best}
        methods = [method for method in options.methods if method != "smo"]
        if not methods:
            continue
        nu = published if best is None or options.rows is None else best["nu"]  # that of the table is for all rows
        folder = (options.stored or options.out) / f"{name} {problem.m}"
        values = stored_values(problem.X, problem.X, kernel.gamma, folder / "train.u16")
        tested = stored_values(problem.test_X, problem.X, kernel.gamma, folder / "test.u16")
        for method in methods:
            for seed in options.seeds:
                started = time.thread_time()
                responses = StoredResponses(values, problem.y, averaged=method == "sbp")
                solver = solver_on(responses, method, seed, nu=nu, C=C)

                def error(alpha: np.ndarray, intercept: float) -> float:
                    wrong = (scores(tested, alpha * problem.y) + intercept > 0) != (problem.test_y > 0)  # noqa: B023
                    return float(np.mean(wrong))

                epochs = options.epochs * (10.0 if (name, method) == ("a9a", "perceptron") else 1.0)  # as there
                fit = rounds.run(solver, Progress(StoppingRule(None, None)), epochs, error, patience=np.inf)
                history = rounds.as_records(fit.history)
                record = {key: [line.get(key) for line in history] for key in KEPT if key in history[-1]}
                yield {
                    **about, "nu": nu, "method": method, "seed": seed, "seconds": time.thread_time() - started, **record
                }  # fmt: skip


def merged(records: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """By data set (that with the most rows of it): {"rows", "smo", "methods": {method: {axis: {"x", "mean", "spread"}, …}}}."""
    found: dict[str, dict[str, Any]] = {}
    for name in TABLE_2:
        own = [record for record in records if record["data"] == name]
        own = [record for record in own if record["rows"] == max(each["rows"] for each in own)]
        if not own:
            continue
        entry = found[name] = {key: own[0][key] for key in ("rows", "test rows", "nu of Table 2")}
        entry["smo"] = next((record for record in own if record["method"] == "smo"), None)
        runs = {method: [record for record in own if record["method"] == method] for method in METHODS}
        entry["methods"] = {method: _mean(those, entry["rows"]) for method, those in runs.items() if those}
    return found


def _mean(runs: list[dict[str, Any]], m: int) -> dict[str, Any]:
    """Mean and deviation over seeds on a grid of each axis, and at the end."""
    found: dict[str, Any] = {"runs": len(runs), "seconds": float(np.mean([run["seconds"] for run in runs]))}
    for axis in AXES:
        counted = [np.array(run["evaluations"] if axis == "evaluations" else run["rows_seen"]) for run in runs]
        counted = [np.maximum(each if axis == "evaluations" else each * m, 1) for each in counted]
        grid = np.geomspace(m, min(each[-1] for each in counted), 30)
        errors = np.array([np.interp(np.log(grid), np.log(x), run["error"]) for x, run in zip(counted, runs, strict=True)])
        found[axis] = {"x": grid.tolist(), "mean": errors.mean(axis=0).tolist(), "spread": errors.std(axis=0).tolist()}
    last = np.array([run["error"][-1] for run in runs])
    one_epoch = [run["error"][int(np.searchsorted(run["rows_seen"], m))] for run in runs if run["rows_seen"][-1] >= m]
    found["constant"] = min(run["error"][0] for run in runs)  # after one row everything is of its class; of some seed the greater
    found |= {"last": float(last.mean()), "last spread": float(last.std())}
    found |= {"one epoch": float(np.mean(one_epoch))} if one_epoch else {}
    found |= {key: runs[0][key][-1] for key in ("norm", "mean_hinge") if key in runs[0]}
    return found


def compared(entry: dict[str, Any], rival: str, axis: str) -> dict[str, float]:
    """How SBP does next to a rival on the rival's grid, as far as SBP went.

    "share": % of the axis on which SBP's mean is at least as good, from where one of the two first errs less than the greater
    class does, as the paper's figures show; "whole": from one evaluation a row on; "within": as "share", but for a deviation of
    both; "lead": points on average; "beaten": the least part of n² evaluations at which SBP is behind, if any, and
    "late": by how many points at most from there on where a tenth of n² is spent.
    """
    own, other = entry["methods"]["sbp"][axis], entry["methods"][rival][axis]
    x = np.array([each for each in other["x"] if each <= own["x"][-1] * (1 + 1e-9)])
    y, deviation = np.array(other["mean"][: len(x)]), np.array(other["spread"][: len(x)])
    ours, more = (np.interp(np.log(x), np.log(own["x"]), own[key]) for key in ("mean", "spread"))
    plain = entry["methods"]["sbp"]["constant"]
    learnt = np.maximum.accumulate(np.minimum(ours, y) < plain - 1e-9)
    ahead, behind = ours <= y, x[learnt & (ours > y)]
    later = (ours - y)[learnt & (x >= 0.1 * entry["rows"] ** 2)]
    return {
        "share": 100 * float(np.mean(ahead[learnt])), "whole": 100 * float(np.mean(ahead)),
        "within": 100 * float(np.mean((ours <= y + np.hypot(deviation, more))[learnt])),
        "lead": 100 * float(np.mean((y - ours)[learnt])),
        "late": 100 * float(max(later.max(initial=0.0), 0.0)),
        "beaten": float(behind[0]) / entry["rows"] ** 2 if len(behind) else np.nan,
    }  # fmt: skip


def curves_in_words(result: dict[str, dict[str, Any]]) -> str:
    lines = []
    for name, entry in result.items():
        m, methods, best = entry["rows"], entry["methods"], entry["smo"]
        lines += [f"### {name}: {m:,} rows, {entry['test rows']:,} test rows", ""]
        if best is not None:
            lines += [
                f"SMO: ν = {best['nu']:.3g} (Table 2, all rows: {entry['nu of Table 2']:.3g}), {100 * best['error']:.2f} % after "
                f"{best['curve'][-1][0]:,} evaluations.", "",
            ]  # fmt: skip
        lines += ["| kernel evaluations | " + " | ".join(methods) + " |", "|---" * (len(methods) + 1) + "|"]
        for axis in AXES:
            for epochs in (0.01, 0.03, 0.1, 0.3, 1, 3, 10):
                shown = []
                for values in methods.values():
                    x = values[axis]["x"]
                    inside = x[0] <= epochs * m * m <= x[-1] * (1 + 1e-9)
                    at = np.interp(np.log(epochs * m * m), np.log(x), values[axis]["mean"])
                    shown.append(f"{100 * at:.2f}" if inside else "")
                if any(shown):
                    lines.append(f"| {epochs:g} m²{', of rows looked at' * (axis == 'looked')} | " + " | ".join(shown) + " |")
        last = [f"{100 * each['last']:.2f} ± {100 * each['last spread']:.2f} of {each['runs']}" for each in methods.values()]
        lines += ["| end | " + " | ".join(last) + " |", ""]
    return "\n".join(lines)


def plot(result: dict[str, dict[str, Any]], path: Path) -> None:
    """Figure 2: a panel for each data set, mean ± deviation, columns as they are needed above, as the analysis counts below."""
    if not result:
        return
    pyplot = pyplot_in_style()
    figure, panels = pyplot.subplots(2, len(result), figsize=(4.2 * len(result), 6.4), squeeze=False, layout="constrained")
    for panels_of, axis in zip(panels, AXES, strict=True):
        for panel, (name, entry) in zip(panels_of, result.items(), strict=True):
            for method, values in entry["methods"].items():
                x, mean, spread = (np.array(values[axis][key]) for key in ("x", "mean", "spread"))
                (line,) = panel.plot(x, 100 * mean, label=f"{method}, {values['runs']} runs")
                panel.fill_between(x, 100 * (mean - spread), 100 * (mean + spread), color=line.get_color(), alpha=0.2)
            if entry["smo"] is not None:
                panel.plot(*zip(*[(x, 100 * y) for x, y in entry["smo"]["curve"]], strict=True), label="smo", color="black")
            low = min(min(values[axis]["mean"]) for values in entry["methods"].values())
            label = "kernel evaluations" if axis == "evaluations" else "n × rows looked at"
            panel.set(title=name, xscale="log", xlabel=label, ylabel="test error, %", ylim=(90 * low, 400 * low))
            legible(panel)
            panel.legend()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
