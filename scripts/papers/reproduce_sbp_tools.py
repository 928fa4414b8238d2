"""What the experiments of reproduce_sbp.py share: data sets, SMO's optimum, the solvers by name and their histories."""

from __future__ import annotations

import lzma
import os
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from streamcut.execution.feed import Feed
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.runner import Runner
from streamcut.io.memory import MemoryDataset
from streamcut.kernels.kernel import Kernel
from streamcut.kernels.vectors import Vectors
from streamcut.oracles.kernel_columns import Responses, take
from streamcut.papers import rounds
from streamcut.papers.rivals import KernelPegasos, KernelPerceptron, KernelSDCA
from streamcut.papers.sbp import StochasticBatchPerceptron
from streamcut.solvers.progress import Progress, StoppingRule
from streamcut.solvers.smo import SMO

DATA = Path(os.environ.get("STREAMCUT_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
TABLE_2 = {  # σ², C = 1/(λn), the paper's ν: without and with bias
    "reuters_moneyfx": ((0.5, 1.0, 6.34e-4), None),
    "a9a": ((10.0, 1.0, 1.10e-2), (100.0, 100.0, 5.79e-4)),
    "mnist": ((25.0, 1.0, 2.21e-4), (25.0, 1000.0, 6.42e-11)),
}
CACHE = 400 << 20
EXACT = 1e-3  # SMO's tolerance for the optimum


class Problem:
    """Rows and classes ±1 of a data set, training and test; mnist is "8" against the rest, grey levels 0 to 1."""

    def __init__(self, name: str, rows: int | None, test_rows: int | None = None) -> None:
        self.name = name
        parts = {}
        for split, most in (("train", rows), ("test", test_rows)):
            with lzma.open(DATA / name / f"{split}.svm.xz") as file:
                X, y = load_svmlight_file(file, zero_based=False, dtype=np.float32)
            positive = 8 if name == "mnist" else y.max()
            X = X / np.float32(255) if name == "mnist" else X
            parts[split] = X[:most], np.where(y[:most] == positive, 1.0, -1.0)
        (X, self.y), (T, self.test_y) = parts["train"], parts["test"]
        d = max(X.shape[1], T.shape[1])
        for each in (X, T):
            each.resize(each.shape[0], d)
        self.X, self.test_X = sp.csr_array(X), sp.csr_array(T)
        self.data = MemoryDataset(self.X, self.y)
        self.chunk = (
            self.data.read(0) if len(self.data.manifest.shards) == 1 else MemoryDataset(X, self.y, shard_nnz=X.nnz).read(0)
        )
        self.test = MemoryDataset(self.test_X, self.test_y, shard_nnz=max(self.test_X.nnz, 1)).read(0)

    @property
    def m(self) -> int:
        return len(self.y)

    @property
    def d(self) -> int:
        return self.X.shape[1]

    def runner(self) -> Runner:
        shards = frozenset(range(len(self.data.manifest.shards)))
        return Runner(Feed(self.data, shards), plan_lanes(self.data.manifest.statistics, 1))

    def error(self, kernel: Kernel, rows: np.ndarray, coefficients: np.ndarray, intercept: float) -> float:
        """Test error of Σ coefficients_i k(x_i, ·) + intercept over training rows `rows`."""
        scores = np.full(len(self.test_y), intercept)
        (kept,) = np.nonzero(coefficients)
        Vectors(kernel, take(self.chunk, rows[kept]), self.d, kept=False).add_sums(self.test, coefficients[kept], scores)
        return float(np.mean((scores > 0) != (self.test_y > 0)))

    def smo(self, kernel: Kernel, C: float, *, bias: bool, cache: int = CACHE) -> SMO:
        signs = self.y.astype(np.int8)
        return SMO(self.chunk, kernel, signs, np.full(self.m, C), dimension=self.d, bias=bias, cache_bytes=cache)


def gaussian(variance: float) -> Kernel:
    return Kernel("rbf", gamma=1.0 / (2.0 * variance))


def optimum(problem: Problem, kernel: Kernel, C: float, *, bias: bool) -> dict:
    """SMO's optimum: its ν, norm, mean hinge loss and test error, and (evaluations, error with intercept 0) on the way."""
    state, curve, spent = problem.smo(kernel, C, bias=bias), [], 0.0

    def look() -> bool:
        nonlocal spent
        before = time.thread_time()
        if not curve or state.evaluations > 1.3 * curve[-1][0]:
            curve.append((state.evaluations, problem.error(kernel, np.arange(problem.m), state.alpha * problem.y, 0.0)))
        spent += time.thread_time() - before
        return False

    started = time.thread_time()
    state.solve(EXACT, look)
    seconds = time.thread_time() - started - spent
    value = state.certify()
    error = problem.error(kernel, np.arange(problem.m), state.alpha * problem.y, value.intercept)
    responses = state.gradient + 1.0 + problem.y * value.intercept
    hinge = float(np.maximum(0.0, 1.0 - responses).mean())
    norm = float(np.sqrt(state.alpha @ (state.gradient + 1.0)))
    curve.append((state.evaluations, error))
    return {
        "nu": hinge / norm,
        "norm": norm,
        "hinge": hinge,
        "error": error,
        "seconds": seconds,
        "dual": value.dual,
        "curve": curve,
    }


def made(method: str, problem: Problem, kernel: Kernel, seed: int, runner: Runner | None = None, **known):
    """A solver of this name on fresh responses."""
    own = Responses(runner or problem.runner(), kernel, 1.0, averaged=method == "sbp")
    return solver_on(own, method, seed, **known)


def solver_on(own, method: str, seed: int, **known):
    """A solver of this name on responses; of what is `known` (ν, C, batch, bias) it takes what it needs."""
    random = np.random.default_rng(seed)
    if method == "sbp":
        own_options = {name: known[name] for name in ("nu", "batch", "bias") if name in known}
        return StochasticBatchPerceptron(own, random=random, **own_options)
    if method == "perceptron":
        return KernelPerceptron(own, random=random)
    return {"pegasos": KernelPegasos, "sdca": KernelSDCA}[method](own, C=known["C"], random=random)


def run(solver, problem: Problem, kernel: Kernel, evaluations: float) -> list[dict]:
    """The history until so many kernel evaluations, the test error in it."""

    def error(alpha: np.ndarray, intercept: float) -> float:
        rows = solver.responses.numbers
        return problem.error(kernel, rows, alpha * problem.y[rows], intercept)

    progress = Progress(StoppingRule(None, None), stop=lambda: solver.responses.evaluations >= evaluations)
    return rounds.as_records(rounds.run(solver, progress, None, error, patience=np.inf).history)
