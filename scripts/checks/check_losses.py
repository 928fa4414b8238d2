"""Every loss of single rows, C = 0.1, 1, 10, on real data: bound ≤ optimum ≤ primal, and the passes that took.

The optimum comes from others: LIBLINEAR at -e 1e-8 for the hinges, the logistic and the ε-insensitive losses and for the quantile
loss at ½ (half the absolute residual), L-BFGS of SciPy for the squared, Huber's and the Poisson loss. Of smooth losses its shares
give a dual value as well, so that both sides are known. "others" is how far apart these are, or how far LIBLINEAR's point is
above our bound. F(w) of our weights is also computed anew in NumPy, and may not be above what the certificate says.

Columns of features are divided by their largest absolute value. A line is for a loss and C: passes with no cache and with one of
30 %, until the gap is 1e-3 of C̄ (for numbers: of C̄ times the loss of the best constant).

    python scripts/checks/check_losses.py DATA [--sets a9a,ord_abalone] [--losses logistic] [--most-passes 300]

DATA has folders with train.svm.xz. Ends with status 1 if any claim is false.
"""

from __future__ import annotations

import argparse
import lzma
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from liblinear.liblinearutil import parameter, problem
from liblinear.liblinearutil import train as liblinear
from scipy.optimize import minimize
from sklearn.datasets import load_svmlight_file

from streamcut.io.memory import MemoryDataset
from streamcut.loss_table import ROW_LOSSES
from streamcut.losses import row_loss
from streamcut.losses.loss import Loss
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.training import train

LABELS = ("a9a", "ijcnn1", "reuters21578", "news20_bydate")
NUMBERS = ("ord_abalone", "ord_bank32nh", "ord_california", "ord_computer")
KINDS = {"hinge": "3", "squared-hinge": "2", "logistic": "0", "squared-epsilon-insensitive": "11", "epsilon-insensitive": "13"}
PARAMETERS = {"epsilon": 0.1, "delta": 1.0, "quantile": 0.5}
EXACTLY = {"ftol": 1e-16, "gtol": 1e-9, "maxiter": 20_000, "maxfun": 40_000}


def data_of(folder: Path, labels: bool) -> tuple[sp.csr_array, np.ndarray]:
    """(X with a bias feature of 1, y): of labels the class of the first row in order of numbers against all others."""
    with lzma.open(folder / "train.svm.xz", "rb") as file:
        X, y = load_svmlight_file(file)
    size = abs(X).max(axis=0).toarray().ravel()
    X = X @ sp.diags_array(1.0 / np.where(size > 0.0, size, 1.0))
    if labels:
        y = np.where(y == np.unique(y)[-1], 1.0, -1.0)
    return sp.csr_array(sp.hstack([X, np.ones((len(y), 1))])), y


def value(loss: Loss, X: sp.csr_array, y: np.ndarray, C: float, w: np.ndarray) -> float:
    return 0.5 * w @ w + C * PointwiseRisk(loss).values(y, X @ w).sum()


def dual(loss: Loss, X: sp.csr_array, y: np.ndarray, C: float, w: np.ndarray) -> float:
    """The dual value of the shares at w, of use for smooth losses."""
    signed, constants, _ = PointwiseRisk(loss).duals(y, X @ w)
    implied = C * (X.T @ signed)
    return C * constants.sum() - 0.5 * implied @ implied


def by_others(name: str, loss: Loss, X: sp.csr_array, y: np.ndarray, C: float) -> np.ndarray:
    """Weights that minimise F, by LIBLINEAR or SciPy."""
    if name in KINDS or name == "quantile":
        kind, factor, epsilon = (KINDS[name], 1.0, PARAMETERS["epsilon"]) if name in KINDS else ("13", 0.5, 0.0)
        options = f"-s {kind} -c {C * factor!r} -e 1e-8 -B -1 -q" + f" -p {epsilon}" * (kind in ("11", "12", "13"))
        model = liblinear(problem(y, sp.csr_matrix(X)), parameter(options))
        sign = 1.0 if kind in ("11", "12", "13") or model.get_labels()[0] == 1 else -1.0
        return sign * np.array([model.get_decfun_coef(j + 1) for j in range(X.shape[1])])

    def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
        signed, _, _ = PointwiseRisk(loss).duals(y, X @ w)
        return value(loss, X, y, C, w), w - C * (X.T @ signed)

    return minimize(objective, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B", options=EXACTLY).x


def check(name: str, X: sp.csr_array, y: np.ndarray, C: float, most: int) -> tuple[str, bool]:
    """(a line of the table, whether all claims hold)."""
    loss = row_loss(name, PARAMETERS)
    own = {option: PARAMETERS[option] for option in ROW_LOSSES[name].options}
    task = "regression" if loss.targets == "numbers" else "binary"
    theirs = by_others(name, loss, X, y, C)
    above, below = value(loss, X, y, C, theirs), dual(loss, X, y, C, theirs) if loss.smooth else -np.inf
    passes, good, bounds = [], True, []
    for cache in ("0", "30%"):
        data, limits = MemoryDataset(X, y), {"tol": 1e-3, "tol_relative": None, "max_passes": most}
        model = train(data, task=task, loss=name, C=C, bias=0.0, row_cache=cache, **limits, **own)
        found = model.certificate
        anew = value(loss, X, y, C, np.asarray(model.weights))
        good &= found.lower_bound <= above and below <= found.primal and anew <= found.primal * (1.0 + 1e-12)
        passes.append(f"{model.history[-1]['passes']}{'' if model.converged else '+'}")
        bounds.append(found.lower_bound)
    apart = above - (below if loss.smooth else max(bounds))
    numbers = f"{max(bounds):14.6f} {above:14.6f} {found.primal:14.6f} {apart / above:8.1e}"
    return f"{numbers} {passes[0]:>5} {passes[1]:>5}  {'yes' if good else 'NO'}", good


def check_one_class(X: sp.csr_array, nu: float, most: int) -> tuple[str, bool]:
    """The same for Schölkopf's plane without a bias feature; the optimum is that of LIBLINEAR's direction, -s 21."""
    y = np.ones(X.shape[0])
    theirs = liblinear(problem(y, sp.csr_matrix(X)), parameter(f"-s 21 -n {nu} -e 1e-8 -q"))
    w = np.array([theirs.get_decfun_coef(j + 1) for j in range(X.shape[1])])
    model = train(MemoryDataset(X, y), task="one-class", nu=nu, tol=1e-3, max_passes=most)
    found, k = model.certificate, nu * len(y)

    def length(w: np.ndarray) -> float:
        """½‖w‖² where w is made as long as gives the lowest scores a mean of 1."""
        mean = np.sort(X @ w) @ np.clip(k - np.arange(len(y)), 0.0, 1.0) / k
        return 0.5 * w @ w / mean**2 if mean > 0.0 else np.inf

    above, own = length(w), length(np.asarray(model.weights))
    good = found.lower_bound <= min(above, own) * (1.0 + 1e-12) and found.primal >= min(above, own) * (1.0 - 1e-9)
    numbers = f"{found.lower_bound:14.6f} {above:14.6f} {found.primal:14.6f} {(above - found.lower_bound) / above:8.1e}"
    return f"{numbers} {model.history[-1]['passes']:5} {'–':>5}  {'yes' if good else 'NO'}", good


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("data", type=Path)
    asked.add_argument("--sets", default=",".join((*LABELS, *NUMBERS)))
    asked.add_argument("--losses", default=",".join((*ROW_LOSSES, "one-class")))
    asked.add_argument("--most-passes", type=int, default=300)
    given, all_good = asked.parse_args(), True
    heads = " ".join(f"{head:>14}" for head in ("bound", "optimum", "primal"))
    print(f"{'data':14} {'loss':28} {'C':>4} {heads} {'others':>8} {'none':>5} {'30%':>5}  holds")
    for folder in given.sets.split(","):
        X, y = data_of(given.data / folder, folder in LABELS)
        for nu in (0.01, 0.1, 0.5) if "one-class" in given.losses.split(",") else ():
            line, good = check_one_class(X[:, :-1], nu, given.most_passes)
            all_good &= good
            print(f"{folder:14} {'one-class, ν for C':28} {nu:4g} {line}", flush=True)
        for name in given.losses.split(","):
            if name == "one-class" or (ROW_LOSSES[name].targets == "labels") != (folder in LABELS):
                continue
            for C in (0.1, 1.0, 10.0):
                line, good = check(name, X, y, C, given.most_passes)
                all_good &= good
                print(f"{folder:14} {name:28} {C:4g} {line}", flush=True)
    return 0 if all_good else 1


if __name__ == "__main__":
    sys.exit(main())
