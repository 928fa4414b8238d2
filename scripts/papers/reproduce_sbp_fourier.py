"""Figure 3 of the paper of reproduce_sbp.py: SBP against random Fourier features, at equal numbers of inner products.

k pairs of features take k inner products a row, as k kernel values do; training on them counts nothing. SBP's side is that of
Figure 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from reproduce_sbp_tools import TABLE_2, Problem, gaussian
from reproduce_tools import legible, markdown, pyplot_in_style

from streamcut.io.memory import MemoryDataset
from streamcut.prediction import predict
from streamcut.training import train


def fourier(options: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Test errors (runs) of every number of pairs, as they come."""
    pairs = [2**power for power in range(13) if 2**power <= options.pairs][:: 2 if options.quick else 1]
    for name in [name for name in TABLE_2 if options.data is None or name in options.data]:
        problem = Problem(name, options.rows, options.test_rows)
        variance, C, _ = TABLE_2[name][0]
        kernel, test = gaussian(variance), MemoryDataset(problem.test_X, problem.test_y)
        how: dict[str, Any] = {"kernel": "rbf", "gamma": kernel.gamma, "C": C, "bias": 0.0, "max_passes": 200}
        errors: list[list[float]] = []
        for k in pairs:
            models = [train(problem.data, fourier=2 * k, seed=seed, **how) for seed in range(options.runs)]
            errors.append([float(np.mean(predict(model, test) != problem.test_y)) for model in models])
            print(name, k, errors[-1], flush=True)
        yield name, {"rows": problem.m, "pairs": pairs, "errors": errors}


def ahead(entry: dict[str, Any], sbp: dict[str, Any], plain: float) -> tuple[float, float]:
    """The part of the numbers of pairs at which SBP (a curve of Figure 2) is at least as good, in percent.

    From where one of the two first errs less than `plain`, the error of the greater class, as for Figure 2; and of all numbers.
    """
    x = np.array([k * entry["rows"] for k in entry["pairs"]])
    inside = (x >= sbp["x"][0] * (1 - 1e-9)) & (x <= sbp["x"][-1])
    ours, theirs = np.interp(np.log(x[inside]), np.log(sbp["x"]), sbp["mean"]), np.mean(entry["errors"], axis=1)[inside]
    learnt = np.maximum.accumulate(np.minimum(ours, theirs) < plain - 1e-9)
    return 100 * float(np.mean((ours <= theirs)[learnt])), 100 * float(np.mean(ours <= theirs))


def fourier_in_words(result: dict[str, Any]) -> str:
    lines = [
        (name, 2 * k, k * entry["rows"], f"{100 * np.mean(found):.2f} ± {100 * np.std(found):.2f}")
        for name, entry in result.items()
        for k, found in zip(entry["pairs"], entry["errors"], strict=True)
    ]
    return markdown(("data", "features", "inner products", "test error, %"), lines)


def plot_fourier(result: dict[str, Any], curves: dict[str, Any], path: Path) -> None:
    """Figure 3: a panel for each data set that has both, mean ± deviation."""
    known = [name for name in result if "sbp" in curves.get(name, {}).get("methods", {})]
    if not known:
        return
    pyplot = pyplot_in_style()
    figure, panels = pyplot.subplots(1, len(known), figsize=(4.2 * len(known), 3.4), squeeze=False, layout="constrained")
    for panel, name in zip(panels[0], known, strict=True):
        entry, sbp = result[name], curves[name]["methods"]["sbp"]["evaluations"]
        errors = np.array(entry["errors"])
        sides = {
            "SBP": (sbp["x"], np.array(sbp["mean"]), np.array(sbp["spread"])),
            "Fourier features": ([k * entry["rows"] for k in entry["pairs"]], errors.mean(axis=1), errors.std(axis=1)),
        }
        for label, (x, mean, spread) in sides.items():
            (line,) = panel.plot(x, 100 * mean, label=label)
            panel.fill_between(x, 100 * (mean - spread), 100 * (mean + spread), color=line.get_color(), alpha=0.2)
        panel.set(title=name, xscale="log", xlabel="inner products", ylabel="test error, %")
        legible(panel)
        panel.legend()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
