"""What the five papers say, as data: an item, their figure, which experiment has ours, and why it is another where it is.

A figure is a number, "≈ x", "≤ x", "> x" or "x to y", for all data sets or {data: figure}. `ours` takes the record that the
experiment has of one data set; what is missing from it has no figure.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from cutting_planes import EPSILONS
from sets import slope

JOACHIMS, FRANC, YU, QAADAN, COTTER = "Joachims 2006", "Franc 2008", "Yu & Joachims 2008", "Qaadan 2019", "Cotter 2012"
Record = Any


class Claim(NamedTuple):
    """A line of the table."""

    paper: str
    item: str
    part: str
    there: float | str | dict[str, float | str]
    ours: Callable[[Record], float | None]
    why: str = ""


def bound(record: Record, iterations: int, epsilon: float = 1e-3) -> float:
    """The most iterations of cutting planes that the theorems allow, max{2/ε, 8C̄R²/ε²}, over those that it took."""
    return max(2.0 / epsilon, 8.0 * record["C̄"] * record["square"] / epsilon**2) / iterations


def late(x: list[float], y: list[float]) -> float:
    return slope(x[len(x) // 2 :], y[len(y) // 2 :])


def spread(lines: Record, key: str, method: str, C: float) -> float | None:
    values = [line[key] for line in lines if line["method"].startswith(method) and line["C"] == C]
    return max(values) - min(values) if len(values) > 1 else None


def growth(lines: Record, x: str, y: str, method: str, C: float = 1.0) -> float:
    chosen = [line for line in lines if line["method"].startswith(method) and line["C"] == C]
    return slope([line[x] for line in chosen], [line[y] for line in chosen])


def apart(lines: Record, key: str) -> float:
    """How far the errors of methods are apart at most, at one number of rows."""
    by_rows: dict[int, list[float]] = {}
    for line in lines:
        by_rows.setdefault(line["N"], []).append(line[key])
    return max(max(values) - min(values) for values in by_rows.values())


def error(lines: Record, method: str) -> float | None:
    values = [line["test_error"] for line in lines if line["method"] == method]
    return float(np.mean(values)) if values else None


def above_libsvm(lines: Record, method: str) -> float | None:
    ours, theirs = error(lines, method), error(lines, "LIBSVM")
    return None if ours is None or theirs is None else ours - theirs


def swings(runs: list[list[float]]) -> float:
    """Deviation of the accuracy over the second half of the epochs."""
    values = np.array(runs)
    return float(values[:, values.shape[1] // 2 :].std(axis=1).mean())


def at_the_end(runs: list[list[float]]) -> float:
    return float(np.mean([run[-1] for run in runs]))


def over_seeds(runs: list[list[float]]) -> float:
    values = np.array(runs)
    return float(values[:, values.shape[1] // 2 :].std(axis=0).mean())


def ahead(record: Record, rival: Record, axis: str = "evaluations") -> float:
    """% of the rival's axis on which SBP's mean error is no worse, from where one first errs less than the greater class."""
    curve = record["sbp"][axis]
    x, y = np.array(rival["x"]), np.array(rival["mean"])
    inside = (x >= curve["x"][0] * (1 - 1e-9)) & (x <= curve["x"][-1] * (1 + 1e-9))
    x, y = x[inside], y[inside]
    ours = np.interp(np.log(x), np.log(curve["x"]), curve["mean"])
    learnt = np.maximum.accumulate(np.minimum(ours, y) < record["sbp"]["constant"] - 1e-9)
    return 100 * float(np.mean((ours <= y)[learnt])) if learnt.any() else math.nan


def rate(record: Record, method: str) -> float:
    """d of the evaluations ~ (1/ε)^d after which the mean error stays within ε (3 to 0.3 points) of its last value."""
    x, mean = np.array(record[method]["evaluations"]["x"]), np.array(record[method]["evaluations"]["mean"])
    stays = np.maximum.accumulate(np.abs(mean - mean[-1])[::-1])[::-1]
    epsilons = (0.03, 0.02, 0.01, 0.005, 0.003)
    return slope([1 / epsilon for epsilon in epsilons], [float(x[np.argmax(stays <= epsilon)]) for epsilon in epsilons])


def halved(record: Record) -> float | None:
    """Epochs in which Theorem 1 makes half the distance of the dual, over those run."""
    kappa = record["least eigenvalue"]
    return math.log(2.0) * (1.0 + kappa) / (2.0 * kappa) / len(record["bsca"]) if kappa > 0.0 else None


def near(curve: Record, part: float = 0.005) -> float:
    """% of SMO's evaluations until its error stays within half a point of the last."""
    away = [x for x, value in curve if abs(value - curve[-1][1]) > part]
    return 100 * max(away, default=0) / curve[-1][0]


_FEW = "iterations fall like n^−0.3 there, and one of so few rows costs what its quadratic program does: see flights3m"
_CACHE = "SVM-light there; LIBSVM keeps all columns of few rows in its cache, of many it does not (flights3m)"
_DATA = "the data: LIBSVM's error on the same rows differs as much from theirs"
_LATE = "SBP is behind late, where both are near SMO's error; a row that the rival leaves alone costs it no column"
_DRIFT = "the drift that the paper sees at B = 200: BSCA's objective rises after 10 epochs; not so without a budget"
CLAIMS = [
    Claim(JOACHIMS, "Table 1: time of decomposition / cutting planes", "table1", "4.7 to 149",
          lambda r: r["libsvm"] / r["seconds"], "LIBSVM's time grows like n^1.9, that of cutting planes like n^0.3"),
    Claim(JOACHIMS, "Table 1: time of ordinal regression / classification", "table1", "1.5 to 6.5",
          lambda r: r["ordinal seconds"] / r["seconds"], "theirs ends at what a sort costs; ours is a radix sort"),
    Claim(JOACHIMS, "Lemma 2: bound on iterations / iterations", "table1", "> 1", lambda r: bound(r, r["iterations"])),
    Claim(JOACHIMS, "Figure 1: time ~ n^d, classification", "rows", 0.8, lambda r: slope(r["n"], r["seconds"]), _FEW),
    Claim(JOACHIMS, "Figure 1: time ~ n^d, decomposition", "rows", 1.7, lambda r: slope(r["n"], r["libsvm"]), _CACHE),
    Claim(JOACHIMS, "Figure 1: d of ordinal regression less that of classification", "rows", "> 0",
          lambda r: slope(r["n"], r["ordinal seconds"]) - slope(r["n"], r["seconds"])),
    Claim(JOACHIMS, "Figure 1: iterations of ordinal regression / classification", "rows", "≈ 1",
          lambda r: r["ordinal iterations"][-1] / r["iterations"][-1], "nearer at a small C: a9a 1.6 at C / 100, 2.1 at 10 C"),
    Claim(JOACHIMS, "Figure 2: iterations ~ n^d", "rows", "≤ 0", lambda r: slope(r["n"], r["iterations"]),
          "they grow up to some thousand rows; from there on by 0.00 to 0.05, on flights3m by 0.18"),
    Claim(JOACHIMS, "Figure 3: accuracy next to another solver's, most (points)", "C", "≈ 0", lambda r: r["apart"]),
    Claim(JOACHIMS, "Figure 4: accuracy at ε ≤ 0.01 differs by (points)", "epsilon", "≤ 0.5",
          lambda r: max(abs(a - r["accuracy"][-1]) for a, e in zip(r["accuracy"], EPSILONS, strict=True) if e <= 0.01),
          "less than the deviation of its test set, 0.6"),
    Claim(JOACHIMS, "Figure 5: iterations ~ (1/ε)^d", "epsilon", 0.3, lambda r: slope(r["1/ε"], r["iterations"]),
          "the fit begins at ε = 0.3, where a few iterations do; from 0.1 on 0.38 to 0.41"),
    Claim(JOACHIMS, "Figure 6: time ~ (1/ε)^d", "epsilon", 0.4, lambda r: slope(r["1/ε"], r["seconds"]),
          "of 10 to 30 ms most is spent whatever ε is"),
    Claim(JOACHIMS, "Figure 7: bound below the optimum at ε = 0.001 (%)", "epsilon", "0.1 to 1", lambda r: r["below"]),
    Claim(JOACHIMS, "Figure 8: iterations ~ C^d", "C", 0.5, lambda r: slope(r["C"], r["iterations"]),
          "0.65 at first, 0.3 about the best C, and 0 where a greater C changes nothing"),
    Claim(JOACHIMS, "Figure 9: time ~ C^d", "C", "< 1", lambda r: slope(r["C"], r["seconds"])),
    Claim(JOACHIMS, "Algorithm 2, five ranks: above all pairs' objective (mean loss)", "ordinal", "≤ 0.001",
          lambda r: r["above"]),
    Claim(FRANC, "Table 2: iterations of CPA / of OCAS", "table2",
          {"reuters_moneyfx": 38 / 21, "reuters21578": 228 / 48, "covtype_20k": 520 / 80, "mnist": 1295 / 137,
           "celegans_splice": 2029 / 125, "artificial": 709 / 76, "flights3m": "–"},
          lambda r: r["cpa"] / r["ocas"],
          "it grows with C and rows: covtype_20k 5.8, 9.1, 12 at C / 10, C, 10 C; celegans 1.2 with 5,000 rows, 2.2 with "
          "100,000, 1,026,036 there; so few iterations (reuters21578) have little to save"),
    Claim(FRANC, "Table 2: SGD of 10 epochs above the best objective (%)", "table2", "2 to 570", lambda r: r["SGD above"],
          "C: 30,000 of its rows give 0.26, 3.4, 71, 1,800 % at C = 0.01, 0.1, 1, 10"),
    Claim(FRANC, "Theorem 1: bound on iterations / iterations", "table2", "> 1", lambda r: bound(r, r["ocas"])),
    Claim(FRANC, "Figure 2: SGD's least objective in 100 epochs above OCAS's (%)", "figure2", "> 0", lambda r: r["SGD above"]),
    Claim(FRANC, "Table 3: time of CPA / of OCAS for the whole selection", "table3", "3 to 25",
          lambda r: r["cpa"]["seconds"] / r["ocas"]["seconds"], "the greatest C decides: money-fx 1.3, 4.3 at 10, 1,000"),
    Claim(FRANC, "Table 3: area of OCAS less that of SGD (points)", "table3", "−0.01 to 5.5",
          lambda r: r["ocas"]["area"] - r["SGD"]["area"]),
    Claim(FRANC, "Figure 3: time ~ m^e of OCAS", "figure3", "≈ 1", lambda r: r["e"]),
    Claim(FRANC, "Table 4: speed-up by 2 processors", "table4", 1.77, lambda r: r["speed-up"]),
    Claim(YU, "Figure 1: time ~ N^d, constant", "rows", "≈ 0", lambda r: growth(r, "N", "seconds", "sampled-constant"),
          "iterations grow with C times the rows: 125, 161, 272 of them"),
    Claim(YU, "Figure 1: time ~ N^d, linear", "rows", "≈ 1", lambda r: growth(r, "N", "seconds", "sampled-linear")),
    Claim(YU, "Figure 1: time ~ N^d, LIBSVM", "rows", "> 1", lambda r: growth(r, "N", "seconds", "LIBSVM")),
    *(Claim(YU, f"Figure {figure}: {key} errors of the methods, most apart (points)", "rows", "≤ 0.5",
            lambda r, key=key: apart(r, f"{key}_error"), "at few rows: by seed r = 400 errs 4.8 to 6.5 %, linear time 3.6")
      for figure, key in ((2, "train"), (3, "test"))),
    *(Claim(YU, f"Figures 4 to 7: {name}, {method}, C = {C:g}", "samples", there,
            lambda r, f=f, method=method, C=C: f(r, method, C), why)
      for name, there, f, why in (
          ("time ~ r^d", "> 0", lambda r, method, C: growth(r, "r", "seconds", method, C), ""),
          ("iterations ~ r^d", "< 0", lambda r, method, C: growth(r, "r", "iterations", method, C), ""),
          ("training errors most apart (points)", "≤ 0.5", lambda r, method, C: spread(r, "train_error", method, C),
           "with 100 samples alone; from 400 on they are 0.1 to 0.4 apart"),
          ("test errors most apart (points)", "≤ 0.5", lambda r, method, C: spread(r, "test_error", method, C),
           "with 100 samples alone; from 400 on they are 0.1 to 0.4 apart"))
      for method in ("sampled-constant", "sampled-linear") for C in (0.01, 0.1, 1.0, 10.0, 100.0)),
    *(Claim(YU, f"Table 1: test error (%), {method}", "table", dict(zip(("checkers", "adult", "covertype"), there, strict=True)),
            lambda r, method=method: error(r, method), _DATA)
      for method, there in (
          ("sampled-constant 400", (3.23, 10.45, 18.61)), ("sampled-constant 1000", (3.14, 10.29, 18.55)),
          ("sampled-linear 400", (2.99, 10.19, 18.28)), ("sampled-linear 1000", (2.95, 10.19, 18.22)),
          ("LIBSVM", (2.87, 10.37, 18.09)), ("Nyström 250", (3.11, 15.09, 21.85)), ("Nyström 500", ("–", 14.50, 20.35)))),
    *(Claim(YU, f"section 6.4: test error above LIBSVM's (points), {method}", "table", there,
            lambda r, method=method: above_libsvm(r, method), why)
      for method, there, why in (
          ("sampled-constant 400", "≤ 0.5", ""), ("sampled-constant 1000", "≤ 0.5", ""), ("sampled-linear 400", "≤ 0.2", ""),
          ("sampled-linear 1000", "≤ 0.2", ""), ("Nyström 250", "> 0.5", "LIBSVM errs 8.8 % on rows that it learnt from, 17.4 % "
           "on others; so few features learn less by heart; 15,120 rows of covertype need fewer than 522,910"))),
    *(Claim(QAADAN, f"Table 2: test accuracy (%), {method}", "curves", {"a9a": there[0], "ijcnn1": there[1]},
            lambda r, method=method: r[method],
            "without damping the last steps of an epoch decide, 77 ± 8 over ten seeds")
      for method, there in (("bsca", (83.18, 97.27)), ("bsca, paper", (83.18, 97.27)), ("bsgd", (80.74, 96.68)))),
    Claim(QAADAN, "Figure 1: primal objective at the end, BSCA's / BSGD's", "curves", "< 1",
          lambda r: r["bsca 500"]["primal"] / r["bsgd 500"]["primal"], _DRIFT),
    Claim(QAADAN, "Figures 2, 3: swings of the accuracy in time, BSGD's / BSCA's", "curves", "> 1",
          lambda r: swings(r["bsgd 500"]["accuracy"]) / max(swings(r["bsca 500"]["accuracy"]), 1e-9), _DRIFT),
    Claim(QAADAN, "Figure 3: deviation of the accuracy over seeds, BSGD's / BSCA's", "curves", "> 1",
          lambda r: over_seeds(r["bsgd 500"]["accuracy"]) / max(over_seeds(r["bsca 500"]["accuracy"]), 1e-9), _DRIFT),
    Claim(QAADAN, "Figure 5: accuracy at B = 200, BSCA's less BSGD's (points)", "curves",
          {"a9a": "> 0", "ijcnn1": "< 0", "susy_30k": "> 0", "covtype_20k": "> 0", "skin_nonskin": "> 0"},
          lambda r: at_the_end(r["bsca 200"]["accuracy"]) - at_the_end(r["bsgd 200"]["accuracy"]),
          f"{_DRIFT}; on skin_nonskin, no set of theirs, both err on 10 of 10,000 rows"),
    Claim(QAADAN, "Figure 6: primal objective of BSCA at the end, B = 200 / B = 500", "curves", "> 1",
          lambda r: r["bsca 200"]["primal"] / r["bsca 500"]["primal"]),
    Claim(QAADAN, "Figure 7: time of as many epochs, B = 200 / B = 500", "curves", "< 1",
          lambda r: r["bsca 200"]["seconds"] / r["bsca 500"]["seconds"]),
    Claim(QAADAN, "Figure 4: swings of the accuracy in time without a budget, SGD's / SCA's", "unlimited", "> 1",
          lambda r: swings([r["bsgd"]]) / max(swings([r["bsca"]]), 1e-9), "1.7 over epochs 150 to 300"),
    Claim(QAADAN, "Theorem 1: epochs in which the bound is halved / epochs run", "unlimited", "> 1", halved),
    *(Claim(QAADAN, f"Figure 8: part of steps that merge, BSCA's / BSGD's at the end, B = {B}", "merging", "< 1",
            lambda r, B=B: r[f"bsca {B}"][-1] / max(r[f"bsgd {B}"][-1], 1e-9),
            "4.4, 3.1, 1.6, 1.4, 1.3 after 30, 100, 300, 500, 1,000 epochs: C = 128 is far") for B in (200, 500, 1000)),
    Claim(QAADAN, "Table 1: test accuracy (%), LIBSVM", "full",
          {"a9a": 84.82, "ijcnn1": 98.77, "susy_30k": 80.02, "covtype_20k": 75.88},
          lambda r: r["accuracy"], "78.3, 79.0, 79.4, 79.5, 79.4 % from 1,500 to 24,000 rows, of 4,500,000 there"),
    Claim(QAADAN, "Table 1: support vectors, LIBSVM", "full", {"a9a": 11_399, "ijcnn1": 2_477}, lambda r: r["support"]),
    Claim(COTTER, "Table 2: ν × 10⁴", "curves", {"reuters_moneyfx": 6.34, "a9a": 110.0, "mnist": 2.21},
          lambda r: 1e4 * r["smo"]["nu"]),
    Claim(COTTER, "Figure 2: test error of SBP less SMO's (points)", "curves", "≈ 0",
          lambda r: 100 * (r["sbp"]["last"] - r["smo"]["error"])),
    Claim(COTTER, "Figure 2: SMO is half a point off until (% of its evaluations)", "curves", "–",
          lambda r: near(r["smo"]["curve"])),
    *(Claim(COTTER, f"Figure 2: SBP at least as good as {rival} by {words} (% of the axis)", "curves", "≈ 100",
            lambda r, rival=rival, axis=axis: ahead(r, r[rival][axis], axis), _LATE)
      for rival in ("pegasos", "sdca") for axis, words in (("evaluations", "kernel evaluations"), ("looked", "rows looked at"))),
    Claim(COTTER, "Figure 2: SBP less the Perceptron after an epoch (points)", "curves", "≈ 0",
          lambda r: 100 * (r["sbp"]["one epoch"] - r["perceptron"]["one epoch"]),
          "the Perceptron's iterate is not averaged: in the first epoch it errs from 17 to 23 % on a9a"),
    Claim(COTTER, "Figure 2: SBP less the Perceptron at the end (points)", "curves", "< 0",
          lambda r: 100 * (r["sbp"]["last"] - r["perceptron"]["last"]), "C = 1 is too little for mnist, 1,000 in section 5"),
    *(Claim(COTTER, f"Table 1: evaluations ~ (1/ε)^d of {m}", "curves", "≤ 4", lambda r, m=m: rate(r, m))
      for m in ("sbp", "pegasos", "sdca")),
    Claim(COTTER, "Figure 3: SBP at least as good as Fourier features (% of the axis)", "curves",
          {"reuters_moneyfx": "≈ 100", "mnist": "≈ 100", "a9a": "–"}, lambda r: ahead(r, r["fourier"]),
          "at 32 pairs, where both err as the greater class does; SBP is ahead from 64 pairs on"),
    Claim(COTTER, "section 5: LIBSVM's test error (%)", "bias", {"a9a": 14.9, "mnist": 0.44}, lambda r: 100 * r["libsvm"]),
    Claim(COTTER, "section 5: SBP's test error in a quarter of LIBSVM's time (%)", "bias", {"a9a": 15.0, "mnist": 0.46},
          lambda r: 100 * r["sbp"]),
    Claim(COTTER, "SMO's time / LIBSVM's (no figure of the paper)", "smo", "–", lambda r: r["seconds"] / r["libsvm"]),
]  # fmt: skip
