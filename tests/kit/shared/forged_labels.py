"""What tests/hostile/test_forged_labels.py and tests/inside/hostile/test_forged_labels.py share."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

RBF = "--kernel rbf --gamma 0.5"
CLASSES, PAIR, CHAIN = "classes", "pair", "chain"  # stores: four classes, two, four with a qid
COMMANDS = [
    *((PAIR, f"--solver {solver}") for solver in ("bundle-dca", "ocas", "cpa")),
    *((PAIR, f"--loss {loss}") for loss in ("f1", "error")),
    *((PAIR, f"--solver {solver} {RBF}") for solver in ("smo", "bsca", "bsgd", "sbp", "sampled-linear", "sampled-constant")),
    (PAIR, "--task roc-area"),
    *((CLASSES, f"--task multiclass --solver {solver}") for solver in ("bundle-dca",)),
    (CLASSES, "--task multiclass --strategy one-vs-rest"),
    *((CLASSES, f"--task multiclass --solver {solver} {RBF}") for solver in ("bsca", "sampled-linear", "sampled-constant")),
    (CHAIN, "--task sequence"),
    *((CHAIN, f"--task sequence --solver {solver} {RBF}") for solver in ("sampled-linear", "sampled-constant")),
    (CHAIN, "--task ranking"),
]


def _rows(kind, n=240):
    """(X, y, qid or None)."""
    rng = np.random.default_rng(1)
    y = np.arange(n) % (2 if kind == PAIR else 4) + 1.0
    return sp.random_array((n, 10), density=0.3, format="csr", rng=rng), y, np.arange(n) // 6 if kind == CHAIN else None
