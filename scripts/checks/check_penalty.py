"""The elastic net on real data: passes with and without it, weights that are left, and objectives next to scikit-learn's saga.

For each data set, C and λ as a part of λ_max (the least λ that leaves no weight): passes until the gap is 1e-3·C̄, and 1 % of F,
without a row cache and with one of 30 %; weights that are not 0; and for logistic regression how far the objective of saga
(tol 1e-8, in memory, the same bias feature) is above our proven bound, in parts of itself: never below 0. Counts are the same on
every machine and under any load; nothing is timed.

Usage: python scripts/checks/check_penalty.py [--data DIR] [--sets a9a ijcnn1] [--C 0.1 1 10] [--losses logistic]
           [--saga-passes 1000]
"""

import argparse
import os
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import lzma
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression

from streamcut.io.memory import MemoryDataset
from streamcut.losses import row_loss
from streamcut.models.linear import LinearModel
from streamcut.training import train

PARTS = (0.0, 0.001, 0.01, 0.1)
FIXED = {"scheduler": "sync", "lanes": 1, "max_passes": 200, "tol_relative": None}


def loaded(folder: Path) -> tuple[sp.csr_matrix, np.ndarray]:
    """Rows and labels ±1 of a training set."""
    with lzma.open(folder / "train.svm.xz") as file:
        X, y = load_svmlight_file(file)
    return X, np.where(y == y.max(), 1.0, -1.0)


def largest_lambda(X: sp.csr_matrix, y: np.ndarray, C: float, loss: str) -> float:
    """λ_max: that of the steepest feature at w = 0, the bias feature among them."""
    slope = row_loss(loss, {}, 1.0).dual(0.0, 1.0)
    return C * slope * max(float(np.abs(X.T @ y).max()), abs(float(y.sum())))


def saga_objective(X: sp.csr_matrix, y: np.ndarray, C: float, l1: float, passes: int) -> tuple[float, int]:
    """(F at saga's answer, its passes)."""
    A = sp.hstack([X, np.ones((X.shape[0], 1))]).tocsr()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = LogisticRegression(
            C=C / (1.0 + l1), l1_ratio=l1 / (1.0 + l1), penalty="elasticnet", solver="saga", tol=1e-8, max_iter=passes,
            fit_intercept=False, random_state=0,
        ).fit(A, y)  # fmt: skip
    w = found.coef_[0]
    return 0.5 * w @ w + l1 * np.abs(w).sum() + C * np.logaddexp(0.0, -y * (A @ w)).sum(), int(found.n_iter_[0])


def passes(model: LinearModel) -> str:
    """Of a training, with a mark where it did not converge."""
    return f"{model.history[-1]['passes']}{'' if model.converged else '!'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("STREAMCUT_DATA", "data")))
    parser.add_argument("--sets", nargs="+", default=["a9a", "ijcnn1"])
    parser.add_argument("--C", nargs="+", type=float, default=[0.1, 1.0, 10.0])
    parser.add_argument("--losses", nargs="+", default=["logistic"])
    parser.add_argument("--saga-passes", type=int, default=1000, help="at most so many for saga; 0: without it")
    given = parser.parse_args()
    head = (
        "data",
        "loss",
        "C",
        "λ/λmax",
        "1e-3·C̄",
        "1 % of F",
        "30 % cached",
        "ocas 1e-3",
        "not 0",
        "saga − bound",
        "its passes",
    )
    print(" | ".join(head), flush=True)
    for name in given.sets:
        X, y = loaded(given.data / name)
        data = MemoryDataset(X, y)
        for loss in given.losses:
            for C in given.C:
                for part in PARTS:
                    l1 = part * largest_lambda(X, y, C, loss)
                    asked = {"loss": loss, "C": C, "l1": l1, **FIXED}
                    plain = train(data, row_cache="0", tol=1e-3, **asked)
                    relative = train(data, row_cache="0", **{**asked, "tol": None, "tol_relative": 1e-2})
                    cached = train(data, row_cache="30%", tol=1e-3, **asked)
                    ocas = train(data, solver="ocas", tol=1e-3, **asked)
                    above, its = "", ""
                    if given.saga_passes and loss == "logistic":
                        F, count = saga_objective(X, y, C, l1, given.saga_passes)
                        best = train(data, row_cache="30%", tol=1e-6, **asked).certificate
                        above, its = f"{(F - best.lower_bound) / F:.1e}", str(count)
                        assert best.lower_bound <= F, (name, C, l1, F, best)
                        if count < given.saga_passes:  # it says that it converged
                            assert best.primal <= F + 1.1e-6 * best.c_bar, (name, C, l1, F, best)
                    left = f"{np.count_nonzero(plain.augmented_weights)}/{X.shape[1] + 1}"
                    line = (name, loss, f"{C:g}", f"{part:g}", *map(passes, (plain, relative, cached, ocas)), left, above, its)
                    print(" | ".join(line), flush=True)


if __name__ == "__main__":
    main()
