"""Free intercepts: objective and weights next to others', and passes next to a regularised bias of 1.

Others: scikit-learn's newton-cholesky, LIBLINEAR with a constant feature of 1000, LIBSVM (linear, 3,000 rows), Ridge, and
statsmodels' GLM without any ridge next to ours at C = 1e7. Ours are trained to 1e-9 of F. "theirs" is F of their weights in parts
of ours, less 1; b and ‖w − w′‖ / ‖w‖ say how far apart the models are. Ends with status 1 where ours is above theirs by 1e-6.

Passes are those of bundle-dca to 1e-3 of F, C = 1: balanced data, a9a with one positive in 40, and columns as they are.

    python scripts/checks/check_intercept.py [DATA] [--only others,passes]

DATA (or STREAMCUT_DATA) has folders with train.svm.xz.
"""

from __future__ import annotations

import argparse
import lzma
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import SVC, LinearSVC

from streamcut.io.memory import MemoryDataset
from streamcut.losses import row_loss
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.training import train

SETS = ("a9a", "ijcnn1", "a9a 1 in 40", "svmguide1", "spambase")
LOSSES = ("logistic", "hinge", "squared-hinge")
NEAR, WITHIN = 1e-6, 2


def rows_of(root: Path, name: str) -> tuple[sp.csr_array, np.ndarray]:
    folder, _, imbalanced = name.partition(" ")
    with lzma.open(root / folder / "train.svm.xz", "rb") as file:
        X, y = load_svmlight_file(file)
    X, y = sp.csr_array(X), np.where(y == y.max(), 1.0, -1.0) if not folder.startswith("ord") else y
    if imbalanced:
        keep = (y < 0) | (np.cumsum(y > 0) % 40 == 1)
        X, y = X[np.flatnonzero(keep)], y[keep]
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # LIBLINEAR in scikit-learn takes no others
    return X, y


def compared(name: str, what: str, X: sp.csr_array, y: np.ndarray, C: float, loss: str, theirs: tuple[np.ndarray, float]) -> bool:
    numbers = loss == "squared"
    asked: dict[str, Any] = {"task": "regression" if numbers else "binary", "loss": loss, "C": C, "intercept": "free"}
    model = train(MemoryDataset(X, y), **asked, tol=None, tol_relative=1e-9, max_passes=3000, max_time=60)
    risk = PointwiseRisk(row_loss(loss, {}, 1.0))

    def objective(w: np.ndarray, b: float) -> float:
        return 0.5 * float(w @ w) + C * float(risk.values(y, X @ w + b).sum())

    w, b = theirs
    F, other = objective(model.weights, model.intercept), objective(w, b)
    above = other / F - 1.0
    apart = float(np.linalg.norm(w - model.weights) / np.linalg.norm(model.weights))
    gap = model.certificate.gap / model.certificate.primal
    print(
        f"| {name} | {loss} | {what} | {F:.9g} | {gap:.0e} | {above:+.1e} | {model.intercept:.6g} | {b:.6g} | {apart:.1e} |",
        flush=True,
    )
    return above >= -NEAR


def others(root: Path) -> bool:
    print("| | loss | next to | F of ours | gap | theirs | b of ours | of theirs | weights apart |")
    good = True
    for name in ("a9a", "ijcnn1", "svmguide1", "spambase"):
        X, y = rows_of(root, name)
        kinds: list[tuple[str, str, Any]] = [
            ("logistic", "newton-cholesky", LogisticRegression(solver="newton-cholesky", tol=1e-10, max_iter=1000)),
            (
                "logistic",
                "LIBLINEAR -B 1000",
                LogisticRegression(solver="liblinear", intercept_scaling=1e3, tol=1e-8, max_iter=10_000),
            ),
            ("squared-hinge", "LIBLINEAR -B 1000", LinearSVC(intercept_scaling=1e3, tol=1e-8, max_iter=10_000, dual=False)),
        ]
        for loss, what, peer in kinds:
            peer.fit(X, y)
            good &= compared(name, what, X, y, 1.0, loss, (peer.coef_[0], float(peer.intercept_[0])))
        few = np.sort(np.random.default_rng(0).permutation(len(y))[:3000])
        svc = SVC(kernel="linear", tol=1e-6, cache_size=1000).fit(X[few], y[few]) if name != "spambase" else None
        if svc is not None:
            w = np.ravel(sp.csr_array(svc.coef_).toarray())
            good &= compared(f"{name}, 3,000 rows", "LIBSVM", X[few], y[few], 1.0, "hinge", (w, float(svc.intercept_[0])))
    for name in ("ord_abalone", "ord_california", "ord_computer"):
        X, y = rows_of(root, name)
        ridge = Ridge(alpha=1.0, solver="cholesky").fit(X.toarray(), y)
        good &= compared(name, "Ridge", X, y, 1.0, "squared", (ridge.coef_, float(ridge.intercept_)))
    return good & unpenalised(root)


def unpenalised(root: Path) -> bool:
    import statsmodels.api as sm

    X, y = rows_of(root, "ijcnn1")
    _, independent = np.linalg.qr(np.column_stack([np.ones(len(y)), X.toarray()]))
    columns = np.flatnonzero(np.abs(np.diag(independent))[1:] > 1e-6 * np.abs(np.diag(independent)).max())
    X = sp.csr_array(X[:, columns])
    fit = sm.GLM((y > 0).astype(float), sm.add_constant(X.toarray()), family=sm.families.Binomial()).fit(tol=1e-14, maxiter=200)
    return compared("ijcnn1, independent columns", "statsmodels", X, y, 1e7, "logistic", (fit.params[1:], float(fit.params[0])))


def passes(root: Path) -> None:
    print("\n| | loss | free | bias 1 | more |")
    found = []
    for name in SETS:
        X, y = rows_of(root, name)
        for loss in LOSSES:
            used = [
                train(
                    MemoryDataset(X, y),
                    loss=loss,
                    intercept=intercept,
                    solver="bundle-dca",
                    tol=None,
                    tol_relative=1e-3,
                    max_passes=150,
                ).history[-1]["passes"]
                for intercept in ("free", "regularised")
            ]
            found.append(used[0] - used[1])
            print(f"| {name} | {loss} | {used[0]} | {used[1]} | {found[-1]:+d} |", flush=True)
    print(f"\n{sum(more <= WITHIN for more in found)} of {len(found)} are within {WITHIN}")


def main() -> int:
    warnings.simplefilter("ignore")
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("data", nargs="?", default=os.environ.get("STREAMCUT_DATA"))
    asked.add_argument("--only", default="others,passes")
    given = asked.parse_args()
    good = others(Path(given.data)) if "others" in given.only else True
    if "passes" in given.only:
        passes(Path(given.data))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
