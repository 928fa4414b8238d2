"""The experiments of five papers, and a page with what they say next to what comes out here.

    python scripts/papers/reproduce.py --quick --out quick     # small samples of the data: about ten minutes
    python scripts/papers/reproduce.py --out papers            # at the papers' sizes: five hours, in pieces
    python scripts/papers/reproduce.py --out papers --only "cotter smo,qaadan curves a9a"

A piece is one experiment on one data set, kept as a file in --out when it is done: a run that ends goes on with what is missing.
OUT/papers.md has a line for each claim (claims.py): limits and ranges hold exactly, "≈ x" to within a half or a tenth of x,
exponents to within 0.15, errors and accuracies half a point worse at most, other figures to within a tenth; a theorem whose bound
is met with more than a hundred times to spare predicts nothing and is called vacuous. Where a data set of a paper is not to be
had, the nearest stands for it. docs/papers.md says what came of it. Data from STREAMCUT_DATA, default ../shared/data.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import budget
import cutting_planes
import perceptron
import sampled_cuts
from claims import CLAIMS, COTTER, FRANC, JOACHIMS, QAADAN, YU, Claim
from sklearn.exceptions import ConvergenceWarning

PARTS = {
    JOACHIMS: cutting_planes.SVM_PERF, FRANC: cutting_planes.OCAS, YU: sampled_cuts.PARTS, QAADAN: budget.PARTS,
    COTTER: perceptron.PARTS,
}  # fmt: skip
QUICK = 1000  # rows
SPARE = 100.0  # times: from here on a bound is vacuous


def verdict(claim: Claim, there: float | str, here: float) -> str:
    """yes, no or vacuous; "" where there is nothing to compare."""
    if not isinstance(there, str):
        if "test accuracy" in claim.item or "test error" in claim.item:
            return "yes" if (there - here if "accuracy" in claim.item else here - there) <= 0.5 else "no"
        return "yes" if abs(here - there) <= (0.15 if "^" in claim.item else 0.1 * abs(there)) else "no"
    text = there.replace("−", "-")
    if " to " in text:
        low, high = map(float, text.split(" to "))
        return "yes" if low <= here <= high else "no"
    sign, _, limit = text.partition(" ")
    if not limit or math.isnan(here):
        return ""
    x = float(limit)
    holds = {"<": here < x, "≤": here <= x, ">": here > x, "≈": abs(here - x) <= max(0.5, 0.1 * abs(x))}[sign]
    return "vacuous" if holds and claim.item.startswith(("Lemma", "Theorem")) and here > SPARE else "yes" if holds else "no"


def table(records: dict[tuple[str, str, str], Any]) -> tuple[str, Counter[str]]:
    """A line for each claim that has figures, with those of all data sets; how many hold."""
    lines, counts = ["| paper | item | there | here | holds | why not |", "|---" * 6 + "|"], Counter[str]()
    for claim in CLAIMS:
        theirs, ours, verdicts = [], [], []
        for (paper, part, data), record in records.items():
            if (paper, part) != (claim.paper, claim.part):
                continue
            there = claim.there.get(data, "–") if isinstance(claim.there, dict) else claim.there
            try:
                here = claim.ours(record)
            except KeyError:
                continue
            if here is not None and not math.isnan(here):
                theirs.append(shown(there))
                ours.append(f"{data} {shown(here)}")
                verdicts.append(verdict(claim, there, here))
        if ours:
            counts.update(filter(None, verdicts))
            holds = ", ".join(f"{word} {verdicts.count(word)}" for word in ("yes", "no", "vacuous") if word in verdicts)
            stated = theirs[0] if len(set(theirs)) == 1 else ", ".join(theirs)
            why = claim.why if "no" in verdicts else ""
            lines.append(f"| {claim.paper} | {claim.item} | {stated} | {', '.join(ours)} | {holds} | {why} |")
    return "\n".join(lines) + "\n", counts


def shown(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.3g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("papers"))
    parser.add_argument("--quick", action="store_true", help=f"{QUICK:,} rows of each set; give it an --out of its own")
    parser.add_argument("--only", metavar="TEXT,…", help="pieces whose names contain all words of one of the texts")
    parser.add_argument("--list", action="store_true", help="say which pieces there are, and which of them are done")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # of LIBLINEAR at a large C
    records: dict[tuple[str, str, str], Any] = {}
    for paper, parts in PARTS.items():
        for part, (experiment, sets) in parts.items():
            for data in sets:
                name = f"{paper.split()[0].lower()} {part} {data}"
                path = args.out / f"{name.replace(' ', '-')}.json"
                if args.only and not any(all(word in name for word in text.split()) for text in args.only.split(",")):
                    pass
                elif args.list:
                    print(f"{'done' if path.exists() else '    '} {name}")
                elif not path.exists():
                    started = time.process_time()
                    result = experiment(data, QUICK if args.quick else None)
                    args.out.mkdir(parents=True, exist_ok=True)
                    unfinished = path.with_suffix(f".{os.getpid()}")
                    unfinished.write_text(json.dumps(result, default=float) + "\n")
                    unfinished.replace(path)
                    print(f"{name}: {time.process_time() - started:.0f} s", flush=True)
                if path.exists():
                    records[paper, part, data] = json.loads(path.read_text())
    if records and not args.list:
        text, counts = table(records)
        summary = ", ".join(f"{count} {word}" for word, count in counts.items())
        (args.out / "papers.md").write_text(f"# The figures of five papers, and ours\n\nOf all figures: {summary}.\n\n{text}")
        print(f"{summary}; see {args.out / 'papers.md'}")


if __name__ == "__main__":
    main()
