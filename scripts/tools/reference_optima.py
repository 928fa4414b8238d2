"""Optima of the real data sets by LIBLINEAR, frozen for the tests: writes tests/reference/optima.json.

For every set and C: LIBLINEAR (`-s 3 -B 1 -e 1e-8`, the hinge loss with a regularised bias feature) run in a process of its own;
its dual value as it prints it, and F of its weights evaluated here in float64. The optimum lies between the two.
Usage: python scripts/tools/reference_optima.py [NAME …]   (data from STREAMCUT_DATA, default ../shared/data)
"""

import argparse
import json
import lzma
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("STREAMCUT_DATA", ROOT.parent / "shared" / "data"))
OUTPUT = ROOT / "tests" / "reference" / "optima.json"
SETS = ["a9a", "ijcnn1", "reuters_moneyfx", "reuters21578", "skin_nonskin", "news20_bydate", "celegans_splice"]
ONE_AGAINST_REST = {"news20_bydate": 1.0}
CS = [0.1, 1.0, 10.0]


def solve(name: str, C: float) -> dict:
    """One run of LIBLINEAR (in this process: it prints the dual value)."""
    from liblinear.liblinearutil import train

    with lzma.open(DATA / name / "train.svm.xz") as file:
        X, y = load_svmlight_file(file, zero_based=False)
    sign = np.where(y == ONE_AGAINST_REST.get(name, y.max()), 1.0, -1.0)
    model = train(sign, X, f"-s 3 -B 1 -e 1e-8 -c {C}")
    w, bias = model.get_decfun()
    w = np.array(w)
    if model.label[0] != 1:  # LIBLINEAR's scores are positive for the label that it met first
        w, bias = -w, -bias
    losses = np.maximum(0.0, 1.0 - sign * (X @ w + bias))
    return {"primal": float(0.5 * (w @ w + bias * bias) + C * losses.sum()), "rows": len(y)}


def main(names: list[str]) -> None:
    optima = json.loads(OUTPUT.read_text()) if OUTPUT.exists() else {}
    for name in names:
        for C in CS:
            command = [sys.executable, __file__, "--one", name, str(C)]
            printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            dual = -float(re.findall(r"Objective value = (\S+)", printed)[-1])
            result = json.loads(printed.splitlines()[-1])
            optima.setdefault(name, {})[str(C)] = {"dual": dual, **result}
            print(name, C, optima[name][str(C)], flush=True)
            OUTPUT.write_text(json.dumps(optima, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        answer = solve(sys.argv[2], float(sys.argv[3]))
        sys.stdout.flush()
        print("\n" + json.dumps(answer), flush=True)
    else:
        parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("names", nargs="*", metavar="NAME")
        main(parser.parse_args().names or SETS)
