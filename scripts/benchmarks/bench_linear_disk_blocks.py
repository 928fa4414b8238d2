"""Peers that read a store shard by shard and have one shard in memory: the program that bench_linear_disk.py measures.

sgd      scikit-learn's SGDClassifier, averaged, by partial_fit of each shard, its default steps
cdblock  block minimisation of the dual (Yu, Hsieh, Chang & Lin 2010; LIBLINEAR-cdblock's method): of each shard in its turn, α of
         its rows is improved by dual coordinate descent, in a random order, --inner times over; hinge and logistic (Yu, Huang &
         Lin 2011, one Newton step with a guard). α of all rows stays in memory, its dual is a bound.

After each pass FOLDER/pass-N.npz has w (d + 1, the bias last), the bound (0: none), processor time and most memory so far.
Usage: python scripts/benchmarks/bench_linear_disk_blocks.py {sgd,cdblock} STORE FOLDER --loss hinge --C 1 [--passes 40]
           [--inner 1] [--seconds 60]
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import scipy.sparse as sp

from streamcut.compiler.jit import kernel
from streamcut.foundation.systems import peak_bytes
from streamcut.io.opening import open_dataset


@kernel
def descend(order, indptr, indices, data, y, squares, C, logistic, alpha, w):
    """Dual coordinate descent over the rows in `order`, in place; w (d + 1) is Σ α y x with a bias feature of 1."""
    last = len(w) - 1
    for i in order:
        score = w[last]
        for t in range(indptr[i], indptr[i + 1]):
            score += w[indices[t]] * data[t]
        z, a, q = y[i] * score, alpha[i], squares[i] + 1.0
        if logistic:
            low, high = 1e-12 * C, (1.0 - 1e-12) * C
            new = a
            for _ in range(5):
                slope = np.log(new / (C - new)) + z + q * (new - a)
                step = slope / (q + C / (new * (C - new)))
                new = min(max(new - step, max(low, 0.1 * new)), min(high, C - 0.1 * (C - new)))
        else:
            new = min(max(a - (z - 1.0) / q, 0.0), C)
        if new != a:
            change = (new - a) * y[i]
            alpha[i] = new
            w[last] += change
            for t in range(indptr[i], indptr[i + 1]):
                w[indices[t]] += change * data[t]


def dual_value(alpha: np.ndarray, w: np.ndarray, C: float, logistic: bool) -> float:
    """Of the dual problem, where rows that were not met have no part."""
    if not logistic:
        return float(alpha.sum() - 0.5 * (w @ w))
    share = np.clip(alpha / C, 1e-300, 1.0)
    entropy = -C * (share * np.log(share) + (1.0 - share) * np.log1p(-np.minimum(share, 1.0 - 1e-16)))
    return float(entropy.sum() - 0.5 * (w @ w))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", choices=["sgd", "cdblock"])
    parser.add_argument("store")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--loss", choices=["hinge", "logistic"], default="hinge")
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--passes", type=int, default=40)
    parser.add_argument("--inner", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0, help="by the clock, looked at after each pass")
    args = parser.parse_args()
    data, rng, logistic = open_dataset(args.store), np.random.default_rng(0), args.loss == "logistic"
    n, d = data.manifest.statistics.n_rows, data.manifest.statistics.n_features
    buffers, count = data.buffers(), len(data.manifest.shards)
    w, bound, alpha = np.zeros(d + 1), 0.0, np.full(n, 1e-3 * args.C if logistic else 0.0) if args.tool == "cdblock" else None
    model = None
    if args.tool == "sgd":
        from sklearn.linear_model import SGDClassifier

        loss = "log_loss" if logistic else "hinge"
        model = SGDClassifier(loss=loss, alpha=1.0 / (args.C * n), average=True, fit_intercept=False, random_state=0)
    began = time.monotonic()
    for number in range(1, args.passes + 1):
        for shard in rng.permutation(count) if alpha is not None else range(count):
            rows = data.read(int(shard), buffers)
            values = np.ones(rows.nnz, np.float32) if rows.data is None else rows.data
            if model is not None:
                X = sp.csr_matrix((values, rows.indices, rows.indptr.astype(np.int32)), (rows.n_rows, d))
                X = sp.hstack([X, np.ones((rows.n_rows, 1), values.dtype)], format="csr")
                order = rng.permutation(rows.n_rows)
                model.partial_fit(X[order], rows.y[order], classes=[-1.0, 1.0])
                continue
            assert alpha is not None
            part = alpha[rows.first_row : rows.first_row + rows.n_rows]
            squares = np.add.reduceat(np.append(np.square(values, dtype=np.float64), 0.0), rows.indptr[:-1])
            squares[np.diff(rows.indptr) == 0] = 0.0
            if logistic and number == 1:  # where its α begins
                X = sp.csr_matrix((values, rows.indices, rows.indptr), (rows.n_rows, d))
                w[:-1] += X.T @ (part * rows.y)
                w[-1] += part @ rows.y
            for _ in range(args.inner):
                order = rng.permutation(rows.n_rows)
                descend(order, rows.indptr, rows.indices, values, rows.y, squares, args.C, logistic, part, w)
        if model is not None:
            w = model.coef_[0]
        elif alpha is not None:
            bound = dual_value(alpha, w, args.C, logistic)
        temporary = args.folder / ".pass.npz"
        np.savez(temporary, w=w, bound=bound, seconds=time.process_time(), peak=peak_bytes())
        temporary.rename(args.folder / f"pass-{number}.npz")
        if time.monotonic() - began > args.seconds:
            return


if __name__ == "__main__":
    main()
