"""Passes and processor time of many sets, losses, C and row caches; with --against two versions, which take turns.

One thread and lane, rows in memory; of three runs the one with the median of seconds, kernels loaded. `NAME:K` is class K against
the rest. Sets of labels have losses of labels and, labels taken as numbers, those of residuals; sets of numbers these alone.
Large sets are thinned, unless --whole. --options are given to every training: solver=ocas,cut=exact or l1_only=1,max_cuts=8.

    python scripts/benchmarks/bench_cases.py --sets a9a,ijcnn1 --losses hinge,logistic --C 1 --against 16656afd
    python scripts/benchmarks/bench_cases.py --whole --sets a9a,ijcnn1 --losses hinge --caches 0,30% --tol 1e-3
"""

from __future__ import annotations

import argparse
import sys
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp
from cases import load, median, seconds_of, serve, versions

SETS = "a9a,ijcnn1,spambase,reuters_moneyfx,reuters21578,news20_bydate:1,mnist:8,svmguide1,skin_nonskin,agaricus,dna:2"
SETS += ",celegans_splice,flights3m,conll2000:3,mq2007_part"
ROWS = {"mnist": 4000, "skin_nonskin": 20_000, "celegans_splice": 6000, "flights3m": 200_000, "conll2000": 40_000}
LABELS, NUMBERS = ("hinge", "squared-hinge", "logistic"), ("squared", "epsilon-insensitive")
OF_NUMBERS = {"mq2007_part", "ord_abalone", "ord_bank32nh", "ord_california", "ord_computer"}


def rows(name: str, whole: bool) -> tuple[sp.csr_array, np.ndarray]:
    """Training rows in single precision and labels; of several classes the last against the rest."""
    X, y, _ = load(name)
    most = None if whole else ROWS.get(name.partition(":")[0])
    if name not in OF_NUMBERS and len(np.unique(y)) > 2:
        y = np.where(y == y.max(), 1.0, -1.0)
    return sp.csr_array(X[:most].astype(np.float32)), y[:most]


def trained(name: str, loss: str, C: float, cache: str, whole: bool, options: dict[str, Any]) -> dict[str, Any]:
    """Passes, seconds, whether it converged, and the gap in parts of C̄."""
    from streamcut.io.memory import MemoryDataset
    from streamcut.training import train

    data, task = MemoryDataset(*rows(name, whole)), "regression" if loss in NUMBERS else "binary"
    settings = {"task": task, "loss": loss, "C": C, "lanes": 1, "scheduler": "sync", **options}
    settings |= {"row_cache": cache} if cache != "auto" else {}
    train(data, **settings | {"max_passes": 3})  # kernels are loaded
    seconds, model = median(lambda: seconds_of(lambda: train(data, **settings)), lambda run: run[0])
    certificate = model.certificate
    return {
        "passes": model.history[-1]["passes"], "seconds": seconds, "converged": certificate.converged,
        "gap": certificate.gap / certificate.c_bar,
    }  # fmt: skip


def shown(result: dict[str, Any]) -> str:
    end = "" if result["converged"] else f" (gap {result['gap']:.0e})"
    return f"{result['passes']:5} passes {result['seconds']:8.3f} s{end}"


def sums(pairs: dict[tuple[str, ...], tuple[dict[str, Any], dict[str, Any]]], worst: int) -> None:
    """Print what all cases and those with one set, loss, C or cache take here and there, and the worst cases."""
    groups: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    for case, pair in pairs.items():
        for group in ("all", *(f"{what} {value}" for what, value in zip(("set", "loss", "C", "cache"), case, strict=True))):
            groups.setdefault(group, []).append(pair)
    print(f"\n{'here / there':28} {'cases':>5} {'passes':>15} {'ratio':>6} {'seconds':>17} {'ratio':>6} {'median':>6} not ended")
    for group, chosen in groups.items():
        passes, seconds = ([sum(pair[side][what] for pair in chosen) for side in (0, 1)] for what in ("passes", "seconds"))
        middle = np.median([here["seconds"] / there["seconds"] for here, there in chosen])
        left = [sum(not pair[side]["converged"] for pair in chosen) for side in (0, 1)]
        print(
            f"{group:28} {len(chosen):5} {passes[0]:7} {passes[1]:7} {passes[0] / passes[1]:6.2f} {seconds[0]:8.2f} "
            f"{seconds[1]:8.2f} {seconds[0] / seconds[1]:6.2f} {middle:6.2f} {left[0]:4} {left[1]:4}"
        )
    for what in ("passes", "seconds"):
        ratio = {case: here[what] / there[what] for case, (here, there) in pairs.items()}
        print(f"\nworst by {what}")
        for case in sorted(ratio, key=lambda case: -ratio[case])[:worst]:
            print(f"  {' '.join(case):44} {shown(pairs[case][0])}, there {shown(pairs[case][1])}: {ratio[case]:.2f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=SETS)
    parser.add_argument("--losses", default=",".join(LABELS + NUMBERS))
    parser.add_argument("--C", default="0.1,1,10,100")
    parser.add_argument("--caches", default="auto", help="row caches: 0, 10%%, auto")
    parser.add_argument("--tol", type=float, help="a gap in mean loss, and no other rule; default: the default stop")
    parser.add_argument("--max-passes", type=int, default=100)
    parser.add_argument("--options", default="", metavar="NAME=VALUE,…")
    parser.add_argument("--whole", action="store_true", help="all rows of large sets")
    parser.add_argument("--against", metavar="REV", help="a version to compare with")
    parser.add_argument("--worst", type=int, default=10)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve(trained)
        return 0
    options: dict[str, Any] = {"max_passes": args.max_passes}
    for name, value in (pair.split("=") for pair in args.options.split(",") if pair):
        options[name] = float(value) if value.replace(".", "", 1).isdigit() else value
    if args.tol is not None:
        options |= {"tol": args.tol, "tol_relative": None}
    wanted = [
        (name, loss, C, row_cache)
        for name, loss, C, row_cache in product(*(names.split(",") for names in (args.sets, args.losses, args.C, args.caches)))
        if loss in NUMBERS or name not in OF_NUMBERS
    ]
    request = [
        {"name": n, "loss": loss, "C": float(C), "cache": c, "whole": args.whole, "options": options} for n, loss, C, c in wanted
    ]
    if not args.against:
        for case, arguments in zip(wanted, request, strict=True):
            print(f"{' '.join(case):44} {shown(trained(**arguments))}", flush=True)
        return 0
    pairs = {}
    with versions(__file__, args.against) as (here, there):
        for case, arguments in zip(wanted, request, strict=True):
            new, old = here.ask(**arguments), there.ask(**arguments)
            if error := new.get("error") or old.get("error"):
                print(f"{' '.join(case):44} not compared: {error}", flush=True)
                continue
            pairs[case] = new, old
            print(f"{' '.join(case):44} {shown(new)}, there {shown(old)}", flush=True)
    if pairs:
        sums(pairs, args.worst)
    return 0


if __name__ == "__main__":
    sys.exit(main())
