"""What the papers of reproduce_sampled_cuts.py, reproduce_bsca.py and reproduce_sbp.py give as figures, next to ours.

Each function takes the folder that its script wrote and gives facts (reproduce_tools.fact); what was not run is left out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from reproduce_bounds import cutting_planes, epochs_to_halve, sampled_excess, spare
from reproduce_sbp_fourier import ahead
from reproduce_tools import fact, slope

YU, QAADAN, COTTER = "Yu & Joachims 2008", "Qaadan 2019", "Cotter 2012"
YU_TABLE = {  # data: test error in percent of constant and linear time at r = 400 and 1000, of SVM-light
    "checkers": {"sampled-constant 400": 3.23, "sampled-constant 1000": 3.14, "sampled-linear 400": 2.99,
                 "sampled-linear 1000": 2.95, "LIBSVM": 2.87},
    "adult": {"sampled-constant 400": 10.45, "sampled-constant 1000": 10.29, "sampled-linear 400": 10.19,
              "sampled-linear 1000": 10.19, "LIBSVM": 10.37},
    "covertype": {"sampled-constant 400": 18.61, "sampled-constant 1000": 18.55, "sampled-linear 400": 18.28,
                  "sampled-linear 1000": 18.22, "LIBSVM": 18.09},
}  # fmt: skip
QAADAN_TABLE = {"a9a": (83.18, 80.74), "ijcnn1": (97.27, 96.68)}  # BSCA, BSGD
COTTER_A9A = {"LIBSVM": 14.9, "quarter": 15.0}


def sampled_cuts(folder: Path) -> list[dict[str, Any]]:
    found = []
    errors: dict[tuple[str, str, int], list[float]] = {}
    stopped: set[tuple[str, str, int]] = set()
    tables, by_rows = _read(folder / "table.json") or [], _read(folder / "rows.json") or []
    known = {(line["data"], line["method"], line["r"]) for line in tables}
    checkers = [line for line in by_rows if line["data"] == "checkers" and "seed" in line]
    most = max((line["N"] for line in checkers), default=0)  # the same trainings as those of the table
    tables += [line for line in checkers if line["N"] == most and ("checkers", line["method"], line["r"]) not in known]
    for line in tables:
        name = line["method"] if line["method"] == "LIBSVM" else f"{line['method']} {line['r']}"
        asked = line["data"], name, line["N"]
        errors.setdefault(asked, []).append(line["test_error"])
        if line.get("stop") == "interrupted":
            stopped.add(asked)
    for (data, name, n), values in errors.items():
        there = YU_TABLE[data].get(name)
        if there is not None:
            note = {"covertype": "15,120 rows here, 522,910 there"}.get(data, f"{n:,} rows here")
            note += "; ended by --limit" if (data, name, n) in stopped else ""
            note += f"; ± {np.std(values):.2f} of {len(values)} seeds" if len(values) > 1 else ""
            found.append(fact(YU, f"Table 1: test error (%), {data}, {name}", there, float(np.mean(values)), note))
        peer = errors.get((data, "LIBSVM", n))
        if peer and name.startswith("sampled"):  # section 6.4: "within 0.3 to 0.5 above", "within 0.2"
            item, above = f"Table 1: test error above LIBSVM's (points), {data}, {name}", float(np.mean(values) - np.mean(peer))
            found.append(fact(YU, item, "≤ 0.5" if "constant" in name else "≤ 0.2", above, f"{n:,} rows here"))
    found += [each for line in checkers if line["N"] == most and line["seed"] == 0 for each in _bounds(line)]
    for method, there in (("sampled-constant", "≈ 0"), ("sampled-linear", "≈ 1"), ("LIBSVM", "≈ 2")):
        own = [line for line in by_rows if line["data"] == "checkers" and line["method"] == method]
        if len({line["N"] for line in own}) > 1:
            steep = slope([line["N"] for line in own], [line["seconds"] for line in own])
            found.append(fact(YU, f"Figure 1: time ~ N^d, Checkers, {method}", there, steep))
    by_samples = _read(folder / "samples.json") or []
    for method in ("sampled-constant", "sampled-linear"):
        own = [line for line in by_samples if line["method"] == method and line["C"] == 1.0 and line["stop"] != "interrupted"]
        if len(own) > 1:
            counts = [line["iterations"] for line in own]
            there = "about constant in r"
            found.append(
                fact(YU, f"Figure 5: iterations, most / least over r, Adult, {method}", there, max(counts) / min(counts))
            )
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
    found = []
    for name, result in _merged(folder, "results.json").items():
        note = f"{result['rows']:,} rows"
        for method, column in (("bsca", 0), ("bsca, paper", 0), ("bsgd", 1)):
            if name in QAADAN_TABLE:
                here = 100 * float(np.mean(result["table 2"][method]["accuracy"]))
                found.append(
                    fact(QAADAN, f"Table 2: test accuracy (%), {name}, {method}", QAADAN_TABLE[name][column], here, note)
                )
        ends = {}
        for method in ("bsca 500", "bsgd 500"):
            percent = 100 * np.array([[line["accuracy"] for line in run] for run in result["curves"][method]])
            ends[method] = float(percent[:, percent.shape[1] // 2 :].std(axis=1).mean())
        item = f"Figures 2, 3: swings of the accuracy in time, BSGD's / BSCA's, {name}"
        found.append(fact(QAADAN, item, "> 1", ends["bsgd 500"] / max(ends["bsca 500"], 1e-9), note))
        if "unlimited" in result:
            swings = {
                method: 100 * float(np.std([line["accuracy"] for line in points[len(points) // 2 :]]))
                for method, points in result["unlimited"].items()
            }
            item = f"Figure 4: swings of the accuracy in time without a budget, SGD's / SCA's, {name}"
            found.append(fact(QAADAN, item, "> 1", swings["bsgd"] / max(swings["bsca"], 1e-9), note))
        if "least eigenvalue" in result:
            halved = epochs_to_halve(result["least eigenvalue"])
            item = f"Theorem 1: epochs in which the bound is halved / epochs run, {name}"
            run = len(result["merging"]["bsca 500"])
            shown = halved / run if np.isfinite(halved) else "no number"
            note = "κ = 0, vacuous: the kernel matrix is singular" if halved == np.inf else f"κ at most; {spare(halved / run)}"
            found.append(fact(QAADAN, item, "> 1", shown, note))
        last = {method: result["merging"][f"{method} 500"][-1] for method in ("bsca", "bsgd")}
        item = f"Figure 8: part of steps that merge, BSCA's / BSGD's at the end, {name}"
        found.append(
            fact(QAADAN, item, "< 1", last["bsca"] / max(last["bsgd"], 1e-9), f"{len(result['merging']['bsca 500'])} epochs")
        )
    return found


def sbp(folder: Path) -> list[dict[str, Any]]:
    found = []
    for name, entry in _merged(folder, "curves.json").items():
        methods, note = entry["methods"], f"{entry['rows']:,} rows"
        item = f"Figure 2: test error of SBP less SMO's (points), {name}"
        found.append(fact(COTTER, item, "≈ 0", 100 * (methods["sbp"]["last"] - entry["smo"]["error"]), note))
        for rival in ("pegasos", "sdca"):
            x, y = np.log(methods[rival]["evaluations"]), np.array(methods[rival]["mean"])
            ours = np.interp(x, np.log(methods["sbp"]["evaluations"]), methods["sbp"]["mean"])
            share = 100 * float(np.mean(ours <= y))
            found.append(
                fact(COTTER, f"Figure 2: SBP at least as good as {rival}, part of the axis (%), {name}", "≈ 100", share, note)
            )
    for name, entry in _merged(folder, "fourier.json").items():
        there, note = "≈ 100" if name != "a9a" else "–", f"{entry['rows']:,} rows"
        item = f"Figure 3: SBP at least as good as Fourier features at equal inner products (% of the axis), {name}"
        found.append(fact(COTTER, item, there, ahead(entry), note))
    for name, entry in _merged(folder, "bias.json").items():
        whole = entry["libsvm"].get("seconds")
        if name == "a9a" and whole:
            quarter = min(entry["sbp"], key=lambda point: abs(point[0] - 0.25 * whole))
            found.append(
                fact(COTTER, "section 5: LIBSVM's test error (%), Adult", COTTER_A9A["LIBSVM"], 100 * entry["libsvm"]["error"])
            )
            item = "section 5: SBP's test error in a quarter of LIBSVM's time (%), Adult"
            found.append(fact(COTTER, item, COTTER_A9A["quarter"], 100 * quarter[2]))
    for name, entry in _merged(folder, "smo.json").items():
        found.append(
            fact(COTTER, f"SMO's time / LIBSVM's, {name}", "–", entry["seconds"] / entry["libsvm_seconds"], "ours alone")
        )
    return found


def _read(path: Path) -> Any:
    return json.loads(path.read_text()) if path.is_file() else None


def _merged(folder: Path, name: str) -> dict[str, Any]:
    """What is known by data set, from runs in the folder itself and in folders in it."""
    return {data: entry for path in sorted(folder.rglob(name)) for data, entry in json.loads(path.read_text()).items()}
