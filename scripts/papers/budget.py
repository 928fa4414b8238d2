"""Qaadan, Schüler & Glasmachers, Dual SVM Training on a Budget (ICPRAM 2019): Tables 1 and 2, Figures 1 to 8.

Curves are without damping, which is for the end of training, and of 100 epochs, Figure 8 of 300: a dual variable comes to C = 32
in steps of about 1, one an epoch, and after 30 epochs hardly any is there. C and γ are those of the paper's Table 1. Of SUSY and
COVTYPE there are 24,000 and 15,120 rows here; COD-RNA is not here, and skin_nonskin not in the paper. One thread.
"""

from __future__ import annotations

import itertools
import time
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from sets import Rows, narrow
from sklearn.svm import SVC

from streamcut.compiled import budget as passes
from streamcut.compiled.kernel_rows import kernel_rows
from streamcut.foundation.chunk import concatenate
from streamcut.io.memory import MemoryDataset
from streamcut.kernels.kernel import Kernel
from streamcut.papers.bsgd import BSGD
from streamcut.solvers.bsca import BSCA
from streamcut.solvers.budget import MODES, BudgetProblem, exported, new_slots, squared_norm

SETS = {  # C, γ, positive label
    "a9a": (2.0**5, 2.0**-7, 1.0), "ijcnn1": (2.0**5, 2.0, 1.0), "susy_30k": (2.0**5, 2.0**-7, 1.0),
    "covtype_20k": (2.0**7, 2.0**3, 2.0), "skin_nonskin": (2.0**5, 2.0**3, 1.0),
}  # fmt: skip
METHODS = {"bsca": BSCA, "bsgd": BSGD}
TEST_ROWS, SAMPLE = 10_000, 4_000


class Data(Rows):
    """Rows with the problem of the paper, and the training rows that the primal is estimated on."""

    def __init__(self, name: str, most: int | None) -> None:
        self.C, gamma, positive = SETS[name]
        super().__init__(name, most, positive=positive, tests=TEST_ROWS)
        self.X, self.T = self.X.astype(np.float64), self.T.astype(np.float64)
        self.n = len(self.y)
        self.sample = np.sort(np.random.default_rng(1).choice(self.n, min(self.n, SAMPLE), replace=False))
        self.problem = BudgetProblem(Kernel("rbf", gamma=gamma), self.C, (1.0,), self.n, self.X.shape[1])
        shards = MemoryDataset(self.X, self.y)
        self.sparse = self.problem.rows(concatenate([shards.read(number) for number in range(len(shards.manifest.shards))]), 1.0)

    def least_eigenvalue(self, most: int = 1000) -> float:
        """Of the kernel matrix: 0 where a row is there twice, else an upper bound, that of some rows. Rounding is taken for 0."""
        X = self.X
        seen = {X.data[a:b].tobytes() + X.indices[a:b].tobytes() for a, b in itertools.pairwise(X.indptr.tolist())}
        if len(seen) < X.shape[0]:
            return 0.0
        part = X[:most].toarray()
        squares = np.square(part).sum(axis=1)
        K = self.problem.kernel.values(part @ part.T, squares[:, None], squares)
        least = float(np.linalg.eigvalsh(K)[0])
        return least if least > len(part) * np.finfo(float).eps else 0.0

    def scores(self, X: sp.csr_array, coefficients: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """Σ_j coefficients_j k(x_i, vectors_j)."""
        values, V = np.empty((X.shape[0], len(vectors))), np.ascontiguousarray(vectors.T)
        squares, scratch = np.square(vectors).sum(axis=1), np.empty(len(vectors))
        kernel_rows(X.indptr, X.indices, X.data, V, squares, self.problem.kernel.compiled, scratch, values)
        return values @ coefficients

    def look(self, method: str, model: passes.Slots, objective: bool) -> dict[str, float]:
        """Test accuracy of the model in percent and, if wanted, its primal objective."""
        scale = METHODS[method].scale(model)
        vectors = exported(model, scale)
        record = {"accuracy": 100 * float(np.mean((self.scores(self.T, *vectors) > 0) == (self.t > 0)))}
        if objective:
            margins = self.y[self.sample] * self.scores(self.X[self.sample], *vectors)
            square = squared_norm(model, scale, self.problem.kernel)
            record["primal"] = 0.5 * square + self.C * self.n * float(np.maximum(0.0, 1.0 - margins).mean())
        return record


@cache
def data_of(name: str, most: int | None) -> Data:
    """Read once."""
    return Data(name, most)


def run(
    data: Data, method: str, seed: int, *, budget: int | None = 500, epochs: int = 1, damped: float = 0.0, look: bool = True,
    objective: bool = False,
) -> list[dict[str, float]]:  # fmt: skip
    """What is known after each epoch; seconds are without looking."""
    mode = MODES["none" if budget is None else "merge"]
    model, learner = new_slots(data.problem, budget, mode), METHODS[method]
    alpha, n, goal, seconds, lines = np.zeros(data.n), data.n, data.n * epochs, 0.0, []
    damping = (goal - round(damped * n), goal + (damped == 0.0))
    for epoch in range(epochs):
        order = np.random.default_rng((seed, epoch)).permutation(n)
        before, started = int(model.counts[passes.MAINTAINED]), time.thread_time()
        learner.steps(order, data.sparse, alpha, damping, data.problem, mode, model)
        seconds += time.thread_time() - started
        merged = (int(model.counts[passes.MAINTAINED]) - before) / n
        lines.append({"seconds": seconds, "merged": merged, **(data.look(method, model, objective) if look else {})})
    return lines


def curves(name: str, most: int | None) -> dict[str, Any]:
    """Table 2: accuracies after an epoch at a budget of 500; Figures 1 to 3, 5 to 7: those of epochs, seconds, objectives."""
    data, seeds, epochs = data_of(name, most), range(2 if most else 5), 3 if most else 100
    run(data, "bsca", 0), run(data, "bsgd", 0)  # compiled, and rows in the caches
    result: dict[str, Any] = {"rows": data.n}
    for label, method, damped in (("bsca", "bsca", 0.5), ("bsca, paper", "bsca", 0.0), ("bsgd", "bsgd", 0.0)):
        result[label] = float(np.mean([run(data, method, seed, damped=damped)[-1]["accuracy"] for seed in seeds]))
    for method, budget in itertools.product(METHODS, (200, 500)):
        runs = [run(data, method, seed, budget=budget, epochs=epochs, objective=seed == 0) for seed in seeds]
        result[f"{method} {budget}"] = {
            "accuracy": [[line["accuracy"] for line in lines] for lines in runs],
            "seconds": float(np.mean([lines[-1]["seconds"] for lines in runs])),
            "primal": float(np.mean([line["primal"] for line in runs[0][-8:]])),
        }
    return result


def unlimited(name: str, most: int | None) -> dict[str, Any]:
    """Figure 4: accuracies without a budget; the least eigenvalue of Theorem 1."""
    data, epochs = data_of(name, most), 3 if most else 100
    accuracies = {method: [line["accuracy"] for line in run(data, method, 0, budget=None, epochs=epochs)] for method in METHODS}
    return {**accuracies, "least eigenvalue": data.least_eigenvalue()}


def merging(name: str, most: int | None) -> dict[str, Any]:
    """Figure 8: part of the steps that merge, by epoch."""
    data, epochs = data_of(name, most), 9 if most else 300
    return {
        f"{method} {budget}": [line["merged"] for line in run(data, method, 0, budget=budget, epochs=epochs, look=False)]
        for method in METHODS
        for budget in (200, 500, 1000)
    }


def full(name: str, most: int | None) -> dict[str, Any]:
    """Table 1: the model without a budget, by LIBSVM (with its bias, which theirs has, too)."""
    data = data_of(name, most)
    machine = SVC(C=data.C, gamma=data.problem.kernel.gamma, cache_size=1000).fit(narrow(data.X), data.y)
    return {"support": len(machine.support_), "accuracy": 100 * float(machine.score(narrow(data.T), data.t))}


PARTS = {
    "curves": (curves, tuple(SETS)), "unlimited": (unlimited, tuple(SETS)), "merging": (merging, tuple(SETS)),
    "full": (full, tuple(SETS)),
}  # fmt: skip
