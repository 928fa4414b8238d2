"""Several classes: passes, processor time and test accuracy of Crammer-Singer and one-vs-rest, next to LIBLINEAR -s 4, -s 3.

Everything in memory, one lane, one thread; rows are shuffled first: some sets are sorted by class. "objective", "bound" and "gap"
(of the mean loss) are those of the class that is furthest from its optimum; runs end at 1e-3, or at --max-passes or --budget
seconds. For LIBLINEAR its primal stands against our lower bound, for -s 3 the sums over classes; its own tolerance is -e.
`--separate` also trains every class of one-vs-rest on its own, and counts the passes.
Usage: python scripts/benchmarks/bench_multiclass.py [NAME:C …]   (data from STREAMCUT_DATA, default ../shared/data)
"""

import argparse
import lzma
import os
import sys
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # peers, too: LIBSVM spins on OpenMP threads

import numpy as np
import scipy.sparse as sp
from liblinear import liblinearutil
from sklearn.datasets import load_svmlight_file

import streamcut
from streamcut.compiled import multiclass
from streamcut.io.memory import MemoryDataset
from streamcut.training import train

DATA = Path(os.environ.get("STREAMCUT_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
SCALES = {"mnist": 1 / 255}
RUNS = {
    "ocas": {"solver": "ocas"},
    "bundle-dca": {"solver": "bundle-dca"},
    "rest-uncached": {"strategy": "one-vs-rest", "row_cache": "0"},
    "rest": {"strategy": "one-vs-rest"},
}


def load(name: str, split: str, features: int | None = None) -> tuple[sp.csr_array, np.ndarray]:
    """Rows and labels of a set, shuffled."""
    with lzma.open(DATA / name / f"{split}.svm.xz") as file:
        X, y = load_svmlight_file(file, zero_based=False, dtype=np.float32, n_features=features)
    order = np.random.default_rng(0).permutation(len(y))
    return sp.csr_array(X * np.float32(SCALES.get(name, 1.0)))[order], y[order]


def liblinear(X, y, C: float, tolerance: float, kind: int) -> tuple[np.ndarray, float]:
    """(W (d + 1, K), seconds) of LIBLINEAR -s `kind` with a bias feature."""
    problem = liblinearutil.problem(y, sp.csr_matrix(X, dtype=np.float64))
    started = time.thread_time()
    model = liblinearutil.train(problem, liblinearutil.parameter(f"-s {kind} -c {C} -B 1 -e {tolerance} -q"))
    seconds = time.thread_time() - started
    W = np.ctypeslib.as_array(model.w, ((X.shape[1] + 1) * model.nr_class,)).reshape(-1, model.nr_class)
    return np.ascontiguousarray(W[:, np.argsort(model.get_labels())]), seconds


def objective(W, X, target, C: float, kind: int) -> float:
    """½‖W‖² + C Σ ℓ of Crammer-Singer, or of each class against the rest."""
    scores, losses = X @ W[:-1] + W[-1], np.empty(len(target))
    if kind == 3:
        signs = np.where(target[:, None] == np.arange(W.shape[1]), 1.0, -1.0)
        losses = np.maximum(0.0, 1.0 - signs * scores)
    else:
        multiclass.losses(target, scores, losses)
    return 0.5 * float(np.sum(W * W)) + C * float(losses.sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="*", default=["dna:1", "usps:1", "letter:1", "news20_bydate:1"], metavar="NAME:C")
    parser.add_argument("--max-passes", type=int, default=100)
    parser.add_argument("--budget", type=float, default=60.0, help="seconds for one run")
    parser.add_argument("--runs", default=",".join(RUNS))
    parser.add_argument("--separate", action="store_true")
    parser.add_argument("-e", type=float, default=0.01, help="LIBLINEAR's tolerance")
    options = parser.parse_args()
    limits = {"max_passes": options.max_passes, "max_time": options.budget, "lanes": 1, "scheduler": "sync"}
    print(f"{'set':16} {'C':>5}  {'':22} {'passes':>7} {'seconds':>8} {'objective':>12} {'bound':>12} {'gap':>8} {'accuracy':>9}")
    for problem in options.problems:
        name, C = problem.split(":")[0], float(problem.split(":")[1])
        X, y = load(name, "train")
        test, truth = load(name, "test", X.shape[1])
        data, labels, bounds = MemoryDataset(X, y), np.unique(y), {3: 0.0, 4: 0.0}

        def line(what, passes, seconds, found, accuracy, name=name, C=C):
            primal, low, gap = found
            print(
                f"{name:16} {C:>5g}  {what:22} {passes:>7} {seconds:>8.1f} {primal:>12.6g} {low:>12.6g} {gap:>8.1e} "
                f"{100 * accuracy:>8.2f}%",
                flush=True,
            )

        for what in options.runs.split(","):
            started = time.thread_time()
            model = train(data, task="multiclass", C=C, tol_relative=None, **limits, **RUNS[what])
            seconds = time.thread_time() - started
            worst = max(model.certificates, key=lambda certificate: certificate.gap)
            kind = 4 if len(model.certificates) == 1 else 3
            bounds[kind] = max(bounds[kind], sum(certificate.lower_bound for certificate in model.certificates))
            found = worst.primal, worst.lower_bound, worst.gap_per_c_bar
            line(what, model.history[-1]["passes"], seconds, found, streamcut.evaluate(model, (test, truth)).accuracy)
        if options.separate:
            started = time.thread_time()
            alone = [train(data, positive_label=label, C=C, tol_relative=None, **limits) for label in labels]
            total = sum(model.history[-1]["passes"] for model in alone)
            said = labels[np.stack([model.decision_function(test) for model in alone], axis=1).argmax(axis=1)]
            worst = max((model.certificate for model in alone), key=lambda certificate: certificate.gap)
            found = worst.primal, worst.lower_bound, worst.gap_per_c_bar
            line("separate trainings", total, time.thread_time() - started, found, np.mean(said == truth))
        for kind in (kind for kind, bound in bounds.items() if bound > 0.0):
            W, seconds = liblinear(X, y, C, options.e, kind)
            primal = objective(W, X, np.searchsorted(labels, y), C, kind)
            accuracy = np.mean(labels[(test @ W[:-1] + W[-1]).argmax(axis=1)] == truth)
            found = primal, bounds[kind], (primal - bounds[kind]) / (C * len(y))
            line(f"liblinear -s {kind} -e {options.e:g}", "", seconds, found, accuracy)


if __name__ == "__main__":
    sys.exit(main())
