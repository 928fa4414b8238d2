"""What the papers of reproduce_sampled_cuts.py, reproduce_bsca.py and reproduce_sbp.py give as figures, next to ours.

Each function takes the folder of a paper's pieces and gives facts (reproduce_tools.fact); what was not run is left out. `draw`
makes the figures that need several pieces.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import reproduce_bsca
import reproduce_sampled_cuts
import reproduce_sbp_curves
from reproduce_bounds import cutting_planes, epochs_to_halve, sampled_excess, spare
from reproduce_sbp_curves import METHODS, compared
from reproduce_sbp_fourier import ahead, plot_fourier
from reproduce_tools import fact, slope

YU, QAADAN, COTTER = "Yu & Joachims 2008", "Qaadan 2019", "Cotter 2012"
YU_TABLE = {  # data: test error in percent of constant and linear time, of SVM-light, of Cholesky (here Nyström)
    "checkers": {"sampled-constant 400": 3.23, "sampled-constant 1000": 3.14, "sampled-linear 400": 2.99,
                 "sampled-linear 1000": 2.95, "LIBSVM": 2.87, "Nyström 250": 3.11},
    "adult": {"sampled-constant 400": 10.45, "sampled-constant 1000": 10.29, "sampled-linear 400": 10.19,
              "sampled-linear 1000": 10.19, "LIBSVM": 10.37, "Nyström 250": 15.09, "Nyström 500": 14.50},
    "covertype": {"sampled-constant 400": 18.61, "sampled-constant 1000": 18.55, "sampled-linear 400": 18.28,
                  "sampled-linear 1000": 18.22, "LIBSVM": 18.09, "Nyström 250": 21.85, "Nyström 500": 20.35},
}  # fmt: skip
QAADAN_TABLE = {"a9a": (83.18, 80.74), "ijcnn1": (97.27, 96.68)}  # BSCA, BSGD
QAADAN_FULL = {"a9a": (84.82, 11_399), "ijcnn1": (98.77, 2_477), "susy_30k": (80.02, 2_052_555), "covtype_20k": (75.88, 187_626)}
FEWER = {"susy_30k": "24,000 rows here, 4,500,000 there", "covtype_20k": "15,120 rows here, 581,012 there"}
COTTER_BIAS = {"a9a": ("Adult", 14.9, 15.0), "mnist": ("MNIST", 0.44, 0.46)}  # LIBSVM's error, SBP's in a quarter of its time


def sampled_cuts(folder: Path) -> list[dict[str, Any]]:
    """Table 1 and Figures 1 to 7."""
    tables, by_rows, by_samples = (_lines(folder, f"{part}.json") for part in ("table", "rows", "samples"))
    found = _yu_table(tables + [line for line in by_rows if "seed" in line])
    checkers = [line for line in by_rows + tables if line["data"] == "checkers" and line.get("seed") == 0]
    most = max((line["N"] for line in checkers), default=0)
    firsts = {line["method"]: line for line in checkers if line["N"] == most}
    found += [each for line in firsts.values() for each in _bounds(line)]
    for data in ("checkers", "covertype"):
        for method, there in (("sampled-constant", "≈ 0"), ("sampled-linear", "≈ 1"), ("LIBSVM", "> 1")):
            own = [line for line in by_rows if (line["data"], line["method"]) == (data, method)]
            if len({line["N"] for line in own}) > 1:
                steep = slope([line["N"] for line in own], [line["seconds"] for line in own])
                note = "processor time of a busy machine"
                found.append(fact(YU, f"Figure 1: time ~ N^d, {data}, {method}", there, steep, note))
        for figure, key in ((2, "train_error"), (3, "test_error")):
            apart = _apart([line for line in by_rows if line["data"] == data and key in line], key)
            if apart is not None:
                item = f"Figure {figure}: {key.replace('_', ' ')}s of the methods, most apart at one N (points), {data}"
                found.append(fact(YU, item, "≤ 0.5", apart))
    by_samples = [line for line in by_samples if line["stop"] != "interrupted"]
    for method in ("sampled-constant", "sampled-linear"):
        by_C: dict[float, list[dict[str, Any]]] = {}
        for line in by_samples:
            if line["method"] == method:
                by_C.setdefault(line["C"], []).append(line)
        for C, own in by_C.items():
            if len(own) < 2:
                continue
            own.sort(key=lambda line: line["r"])
            r, name = [line["r"] for line in own], f"Adult, {method}, C = {C:g}"
            found += [
                fact(YU, f"Figure 4: time ~ r^d, {name}", "> 0", slope(r, [line["seconds"] for line in own])),
                fact(YU, f"Figure 5: iterations ~ r^d, {name}", "< 0", slope(r, [line["iterations"] for line in own])),
                fact(YU, f"Figure 6: training errors over r, most apart (points), {name}", "≤ 0.5", _range(own, "train_error")),
                fact(YU, f"Figure 7: test errors over r, most apart (points), {name}", "≤ 0.5", _range(own, "test_error")),
            ]
    return found


def _range(lines: list[dict[str, Any]], key: str) -> float:
    return max(line[key] for line in lines) - min(line[key] for line in lines)


def _apart(lines: list[dict[str, Any]], key: str) -> float | None:
    """Of the mean errors of methods that were run on as many rows, the greatest difference at one N."""
    found = []
    for n in {line["N"] for line in lines}:
        own = [line for line in lines if line["N"] == n]
        means = [np.mean([line[key] for line in own if line["method"] == m]) for m in {line["method"] for line in own}]
        found += [float(max(means) - min(means))] if len(means) > 1 else []
    return max(found, default=None)


def _yu_table(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    runs: dict[tuple[str, str, int], dict[int, dict[str, Any]]] = {}
    for line in lines:
        name = line["method"] if line["method"] == "LIBSVM" else f"{line['method']} {line['r']}"
        if line["C"] == {"checkers": 1.0, "adult": 100.0, "covertype": 1.0}[line["data"]]:
            runs.setdefault((line["data"], name, line["N"]), {})[line["seed"]] = line
    for (data, name, n), by_seed in runs.items():
        if n < max(m for other, _, m in runs if other == data):
            continue
        values = [line["test_error"] for line in by_seed.values()]
        note = {"covertype": "15,120 rows here, 522,910 there"}.get(data, f"{n:,} rows here")
        note += "; ended by --limit" * any(line.get("stop") == "interrupted" for line in by_seed.values())
        note += f"; ± {np.std(values):.2f} of {len(values)} seeds" if len(values) > 1 else ""
        there = YU_TABLE[data].get(name)
        if there is not None:
            found.append(fact(YU, f"Table 1: test error (%), {data}, {name}", there, float(np.mean(values)), note))
        peer = runs.get((data, "LIBSVM", n), {})
        if peer and name != "LIBSVM":  # section 6.4: "within 0.3 to 0.5 above", "within 0.2", Cholesky "substantially below"
            item, above = f"Table 1: test error above LIBSVM's (points), {data}, {name}", float(np.mean(values))
            above -= float(np.mean([line["test_error"] for line in peer.values()]))
            limit = "≤ 0.5" if "constant" in name else "≤ 0.2" if "linear" in name else "> 0.5"
            found.append(fact(YU, item, limit, above, f"{n:,} rows here"))
    return found


def _bounds(line: dict[str, Any]) -> list[dict[str, Any]]:
    """What Theorems 1 and 2 of sampled cuts say of a training with a kernel whose φ(x) have the norm 1."""
    if "iterations" not in line:
        return []
    method, c_bar, epsilon = line["method"], 4.0 * line["C"] * line["N"], 1e-3
    name = f"Checkers {line['N']:,}, {method}"
    found = cutting_planes(YU, "Theorem 1", name, line["iterations"], c_bar, 1.0, epsilon)
    if method == "sampled-linear" and "objective" in line:
        excess = sampled_excess(c_bar, 1.0, epsilon, line["r"])
        proved = (line["objective"] - line["bound"]) / c_bar
        item = f"Theorem 2: F / C may be above the optimum by (95 %) / what is proved, {name}"
        found.append(
            fact(YU, item, "> 1", excess / proved, "vacuous: w = 0 is within 1" if excess > 1.0 else spare(excess / proved))
        )
    return found


def bsca(folder: Path) -> list[dict[str, Any]]:
    """Tables 1 and 2 and Figures 1 to 8."""
    found = []
    for name, result in bsca_results(folder).items():
        note = FEWER.get(name, f"{result['rows']:,} rows")
        note += "; no set of theirs, in place of COD-RNA" if name == "skin_nonskin" else ""
        if "full" in result and name in QAADAN_FULL:
            accuracy, support = QAADAN_FULL[name]
            full = result["full"]
            found.append(fact(QAADAN, f"Table 1: test accuracy (%), {name}, LIBSVM", accuracy, 100 * full["accuracy"], note))
            there = support if name not in FEWER else "–"
            found.append(fact(QAADAN, f"Table 1: support vectors, {name}, LIBSVM", there, full["support"], note))
        for method, column in (("bsca", 0), ("bsca, paper", 0), ("bsgd", 1)):
            if name in QAADAN_TABLE and "table 2" in result:
                values = 100 * np.array(result["table 2"][method]["accuracy"])
                told = f"{note}; ± {values.std():.2f} of {len(values)} seeds"
                item = f"Table 2: test accuracy (%), {name}, {method}"
                found.append(fact(QAADAN, item, QAADAN_TABLE[name][column], float(values.mean()), told))
        if "curves" in result:
            found += _bsca_curves(name, result["curves"], note)
        if "unlimited" in result:
            swings = {
                method: 100 * float(np.std([line["accuracy"] for line in points[len(points) // 2 :]]))
                for method, points in result["unlimited"].items()
            }
            item = f"Figure 4: swings of the accuracy in time without a budget, SGD's / SCA's, {name}"
            found.append(fact(QAADAN, item, "> 1", swings["bsgd"] / max(swings["bsca"], 1e-9), note))
        if "least eigenvalue" in result:
            halved = epochs_to_halve(result["least eigenvalue"])
            item, run = f"Theorem 1: epochs in which the bound is halved / epochs run, {name}", len(result["unlimited"]["bsca"])
            shown = halved / run if np.isfinite(halved) else "no number"
            told = "κ = 0, vacuous: the kernel matrix is singular" if halved == np.inf else f"κ at most; {spare(halved / run)}"
            found.append(fact(QAADAN, item, "> 1", shown, told))
        for budget in (200, 500, 1000) if "merging" in result else ():
            shares = {method: result["merging"][f"{method} {budget}"] for method in ("bsca", "bsgd")}
            item = f"Figure 8: part of steps that merge, BSCA's / BSGD's at the end, B = {budget}, {name}"
            ratios = np.array(shares["bsca"]) / np.maximum(shares["bsgd"], 1e-9)
            tenth = len(ratios) // 10
            told = f"{note}, {len(ratios)} epochs" + f"; {ratios[tenth - 1]:.2f} after {tenth}" * (tenth > 0)
            found.append(fact(QAADAN, item, "< 1", float(ratios[-1]), told))
    return found


def _bsca_curves(name: str, curves: dict[str, Any], note: str) -> list[dict[str, Any]]:
    def percent(label: str) -> np.ndarray:
        return 100 * np.array([[line["accuracy"] for line in run] for run in curves[label]])

    def swing(label: str) -> float:
        values = percent(label)
        return float(values[:, values.shape[1] // 2 :].std(axis=1).mean())

    def over_seeds(label: str) -> float:
        values = percent(label)
        return float(values[:, values.shape[1] // 2 :].std(axis=0).mean())

    runs = len(curves["bsca 500"])
    told = f"{note}, {runs} seeds"
    item = f"Figures 2, 3: swings of the accuracy in time, BSGD's / BSCA's, {name}"
    found = [fact(QAADAN, item, "> 1", swing("bsgd 500") / max(swing("bsca 500"), 1e-9), told)]
    if runs > 1:
        item = f"Figure 3: deviation of the accuracy over seeds, BSGD's / BSCA's, {name}"
        found.append(fact(QAADAN, item, "> 1", over_seeds("bsgd 500") / max(over_seeds("bsca 500"), 1e-9), told))
    lead = round(percent("bsca 200")[:, -1].mean() - percent("bsgd 200")[:, -1].mean(), 9)
    there = "< 0" if name == "ijcnn1" else "> 0"  # "BSCA fails on the IJCNN data set"
    found.append(fact(QAADAN, f"Figure 5: accuracy at B = 200, BSCA's less BSGD's (points), {name}", there, float(lead), told))
    item = f"Figure 7: time of as many epochs, B = 200 / B = 500, {name}"
    quick = np.mean([run[-1]["seconds"] for run in curves["bsca 200"]]) / np.mean([r[-1]["seconds"] for r in curves["bsca 500"]])
    found.append(fact(QAADAN, item, "< 1", float(quick), told))
    if "primal" in curves["bsca 500"][0][0]:
        last = {label: np.mean([p["primal"] for p in runs[0][-8:]]) for label, runs in curves.items()}  # of two epochs
        item = f"Figure 1: primal objective at the end, BSCA's / BSGD's, {name}"
        found.append(fact(QAADAN, item, "< 1", float(last["bsca 500"] / last["bsgd 500"]), f"{note}, one seed"))
        item = f"Figure 6: primal objective of BSCA at the end, B = 200 / B = 500, {name}"
        found.append(fact(QAADAN, item, "> 1", float(last["bsca 200"] / last["bsca 500"]), f"{note}, one seed"))
    return found


def sbp(folder: Path) -> list[dict[str, Any]]:
    """Figures 2 and 3, ν of Table 2, the rates of Table 1 and section 5."""
    found = []
    curves, fourier = sbp_curves(folder), _merged(folder, "fourier.json")
    for name, entry in curves.items():
        found += _sbp_curves(name, entry)
    for name, entry in fourier.items():
        if "sbp" in curves.get(name, {}).get("methods", {}) and curves[name]["rows"] == entry["rows"]:
            sbp_of = curves[name]["methods"]["sbp"]
            share, whole = ahead(entry, sbp_of["evaluations"], sbp_of["constant"])
            note = f"{entry['rows']:,} rows, to {entry['pairs'][-1]} pairs; of the axis from n on {whole:.0f} %"
            item = f"Figure 3: SBP at least as good as Fourier features at equal inner products (% of the axis), {name}"
            found.append(fact(COTTER, item, "≈ 100" if name != "a9a" else "–", share, note))
    for name, entry in _merged(folder, "bias.json").items():
        whole = entry["libsvm"].get("seconds")
        if name in COTTER_BIAS and whole:
            set_of, theirs, in_a_quarter = COTTER_BIAS[name]
            quarter = min(entry["sbp"], key=lambda point: abs(point[0] - 0.25 * whole))
            note = f"{entry['rows']:,} rows"
            item = f"section 5: LIBSVM's test error (%), {set_of}"
            found.append(fact(COTTER, item, theirs, 100 * entry["libsvm"]["error"], note))
            item = f"section 5: SBP's test error in a quarter of LIBSVM's time (%), {set_of}"
            found.append(fact(COTTER, item, in_a_quarter, 100 * quarter[2], note))
    for name, entry in _merged(folder, "smo.json").items():
        item = f"SMO's time / LIBSVM's, {name}"
        found.append(fact(COTTER, item, "–", entry["seconds"] / entry["libsvm_seconds"], "no figure of the paper"))
    return found


def _sbp_curves(name: str, entry: dict[str, Any]) -> list[dict[str, Any]]:
    methods, smo, note = entry["methods"], entry["smo"], f"{entry['rows']:,} rows"
    found = []
    if smo is not None:
        if entry["rows"] > 5000:
            item = f"Table 2: ν × 10⁴, {name}"
            found.append(fact(COTTER, item, 1e4 * entry["nu of Table 2"], 1e4 * smo["nu"], note))
        if "sbp" in methods:
            item = f"Figure 2: test error of SBP less SMO's (points), {name}"
            found.append(fact(COTTER, item, "≈ 0", 100 * (methods["sbp"]["last"] - smo["error"]), note))
        late = [x for x, error in smo["curve"] if abs(error - smo["error"]) > 0.005]
        part = 100 * max(late, default=0) / smo["curve"][-1][0]
        item = f"Figure 2: SMO is half a point off until (% of its evaluations), {name}"
        found.append(fact(COTTER, item, "a critical point", part, note))
    if "sbp" not in methods:
        return found
    for rival in ("pegasos", "sdca"):
        if rival in methods:
            runs = f"{methods['sbp']['runs']} and {methods[rival]['runs']} seeds"
            for axis, counted in (("evaluations", "kernel evaluations"), ("looked", "rows looked at")):
                told = compared(entry, rival, axis)
                item = f"Figure 2: SBP at least as good as {rival} by {counted} (% of the axis), {name}"
                behind = "" if math.isnan(told["beaten"]) else f"; first behind at {told['beaten']:.2g} n²"
                behind += f", from 0.1 n² on by {told['late']:.2f} points at most" if told["late"] else ""
                words = f"{note}, {runs}; {told['lead']:+.2f} points on average; within a deviation {told['within']:.0f} %"
                words += f", of the axis from n on {told['whole']:.0f} %{behind}"
                found.append(fact(COTTER, item, "≈ 100", told["share"], words))
    if "perceptron" in methods and "one epoch" in methods["perceptron"]:
        one = 100 * (methods["sbp"]["one epoch"] - methods["perceptron"]["one epoch"])
        end = 100 * (methods["sbp"]["last"] - methods["perceptron"]["last"])
        found.append(fact(COTTER, f"Figure 2: SBP less the Perceptron after an epoch (points), {name}", "≈ 0", one, note))
        found.append(fact(COTTER, f"Figure 2: SBP less the Perceptron at the end (points), {name}", "< 0", end, note))
    for method in METHODS[:3]:
        if method in methods:
            d = _rate(methods[method]["evaluations"])
            found.append(
                fact(COTTER, f"Table 1: evaluations ~ (1/ε)^d of {method}, {name}", "≤ 4", d, f"{note}, ε 3 to 0.3 points")
            )
    return found


def _rate(curve: dict[str, Any]) -> float:
    """d of the evaluations ~ (1/ε)^d after which the mean error stays within ε of its last value."""
    x, excess = np.array(curve["x"]), np.array(curve["mean"]) - curve["mean"][-1]
    stays = np.maximum.accumulate(np.abs(excess)[::-1])[::-1]
    taken = [(1 / epsilon, float(x[np.argmax(stays <= epsilon)])) for epsilon in (0.03, 0.02, 0.01, 0.005, 0.003)]
    return slope(*zip(*taken, strict=True))


def sbp_curves(folder: Path) -> dict[str, dict[str, Any]]:
    """What reproduce_sbp_curves.py found, of all runs."""
    return reproduce_sbp_curves.merged(_lines(folder, "curves.json"))


def bsca_results(folder: Path) -> dict[str, Any]:
    """What reproduce_bsca.py found, of all runs."""
    return reproduce_bsca.merged([json.loads(path.read_text()) for path in sorted(folder.glob("*/results.json"))])


def draw(out: Path) -> None:
    """Figures of several pieces, in the folder of their paper."""
    curves = sbp_curves(out / "sbp")
    reproduce_sbp_curves.plot(curves, out / "sbp" / "figure2.svg")
    plot_fourier(_merged(out / "sbp", "fourier.json"), curves, out / "sbp" / "figure3.svg")
    if by_samples := _lines(out / "sampled-cuts", "samples.json"):
        reproduce_sampled_cuts.plot("samples", by_samples, out / "sampled-cuts" / "samples.svg")
    if results := bsca_results(out / "bsca"):
        reproduce_bsca.plots(results, out / "bsca")


def _lines(folder: Path, name: str) -> list[dict[str, Any]]:
    """All records of files of this name in the pieces."""
    return [line for path in sorted(folder.glob(f"*/{name}")) for line in json.loads(path.read_text())]


def _files(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob(f"*/{name}")):
        yield json.loads(path.read_text())


def _merged(folder: Path, name: str) -> dict[str, Any]:
    """What is known by data set, of the most rows."""
    found: dict[str, Any] = {}
    for results in _files(folder, name):
        for data, entry in results.items():
            if entry["rows"] >= found.get(data, entry)["rows"]:
                found[data] = entry
    return found
