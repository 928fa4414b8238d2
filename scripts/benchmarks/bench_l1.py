"""λ‖w‖₁ + C Σ ℓ without ½‖w‖² (--l1-only): passes to 1e-2, 1e-4 and 1e-6 of F, next to LIBLINEAR's -s 5, -s 6, Lasso, skglm.

λ is 1 and C 0.1, 1, 10 as in LIBLINEAR; the upper half of several classes is one against the lower. Of numbers λ is 50 %, 10 %
and 1 % of λmax. No intercept. "above" is by how much their F, at -e 1e-4 and at the others' own tolerances, is above our bound at
1e-6, in parts of it. Seconds are of processor time; ours are those to 1e-4, warm. skglm has no squared hinge.
Needs skglm.

    python scripts/benchmarks/bench_l1.py [DATA] [--sets a9a,ord_abalone]

DATA (or STREAMCUT_DATA) has folders with train.svm.xz. Columns are divided by their largest absolute value.
"""

from __future__ import annotations

import argparse
import lzma
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from liblinear.liblinearutil import parameter, problem
from liblinear.liblinearutil import train as liblinear
from skglm import Lasso as LassoOfSkglm
from skglm import SparseLogisticRegression
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import Lasso

from streamcut.io.memory import MemoryDataset
from streamcut.losses import row_loss
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.training import train

LABELS = ("a9a", "ijcnn1", "spambase", "svmguide1", "news20_bydate", "reuters21578")
NUMBERS = ("ord_abalone", "ord_bank32nh", "ord_california", "ord_computer")
KINDS = {"logistic": 6, "squared-hinge": 5}
LEVELS = (1e-2, 1e-4, 1e-6)


def data_of(folder: Path, labels: bool) -> tuple[sp.csr_array, np.ndarray]:
    with lzma.open(folder / "train.svm.xz", "rb") as file:
        X, y = load_svmlight_file(file)
    size = abs(X).max(axis=0).toarray().ravel()
    return sp.csr_array(X @ sp.diags_array(1.0 / np.where(size > 0.0, size, 1.0))), np.where(
        y > np.median(np.unique(y)), 1.0, -1.0
    ) if labels else y


def passes(history: list[dict[str, Any]]) -> str:
    found = [next((h["passes"] for h in history if h["gap"] <= level * h["primal"]), None) for level in LEVELS]
    return " / ".join("–" if each is None else str(each) for each in found)


def line(X: sp.csr_array, y: np.ndarray, loss: str, C: float, l1: float | str) -> str:
    data, numbers = MemoryDataset(X, y), loss == "squared"
    asked = {"task": "regression" if numbers else "binary", "loss": loss, "C": C, "l1_only": l1, "intercept": "none", "tol": None}
    model = train(data, **asked, tol_relative=1e-6, max_passes=60)
    seconds = -time.process_time()
    train(data, **asked, tol_relative=1e-4, max_passes=60)
    seconds += time.process_time()
    risk = PointwiseRisk(row_loss(loss, {}, 1.0))

    def objective(w: np.ndarray) -> float:
        return model.l1 * float(np.abs(w).sum()) + C * float(risk.values(y, X @ w).sum())

    def peer(fit: Callable[[], np.ndarray]) -> str:
        spent = -time.process_time()
        w = fit()
        spent += time.process_time()
        least = objective(w) if numbers else min(objective(w), objective(-w))
        return f"{least / model.certificate.lower_bound - 1.0:.1e} | {spent:.2f} |"

    alpha, narrow = model.l1 / (len(y) * C), sp.csc_matrix(X)
    narrow.indices, narrow.indptr = narrow.indices.astype(np.int32), narrow.indptr.astype(np.int32)
    found = f"{passes(model.history)} | {seconds:.2f} | {np.count_nonzero(model.weights)} of {model.weights.size} | "
    if numbers:
        found += peer(lambda: Lasso(alpha=alpha, fit_intercept=False).fit(X, y).coef_)
    else:
        given = parameter(f"-s {KINDS[loss]} -c {C} -e 1e-4 -B -1 -q")
        found += peer(lambda: np.array(liblinear(problem(y, sp.csr_matrix(X)), given).get_decfun(0)[0]))
    if loss == "squared-hinge":
        return f"{found} – | – |"
    kind = LassoOfSkglm if numbers else SparseLogisticRegression
    kind(alpha=alpha, fit_intercept=False).fit(narrow[:50], y[:50])  # compiles
    return f"{found} {peer(lambda: kind(alpha=alpha, fit_intercept=False).fit(narrow, y).coef_.ravel())}"


def main() -> None:
    warnings.simplefilter("ignore")
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("data", nargs="?", default=os.environ.get("STREAMCUT_DATA"))
    asked.add_argument("--sets", default=",".join((*LABELS, *NUMBERS)))
    given = asked.parse_args()
    print("| | loss | C or λ | passes | s | weights | LIBLINEAR or Lasso above | s | skglm above | s |")
    for name in given.sets.split(","):
        X, y = data_of(Path(given.data) / name, name in LABELS)
        for loss in KINDS if name in LABELS else ("squared",):
            for value in (0.1, 1.0, 10.0) if name in LABELS else ("50%", "10%", "1%"):
                C, l1 = (value, 1.0) if name in LABELS else (1.0, value)
                print(f"| {name} | {loss} | {value} | {line(X, y, loss, C, l1)}", flush=True)


if __name__ == "__main__":
    main()
