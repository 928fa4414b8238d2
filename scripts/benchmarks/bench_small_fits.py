"""Fits of a9a-sized data in one process next to scikit-learn: processor milliseconds of repeated fits, the first one left out.

  python scripts/benchmarks/bench_small_fits.py [--repeat 5] [--profile]

a9a (32,561 × 123) with C = 1, and breast_cancer and digits of scikit-learn; LinearSVC with the same loss, C and constant
feature. `--profile` lists what LinearSVM().fit spends on a9a. Data from STREAMCUT_DATA, default ../shared/data.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time
import warnings

import numpy as np
import scipy.sparse as sp
from bench_passes import load
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import LinearSVC

from streamcut.estimators import LinearSVM


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--profile", action="store_true")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    X, y = load("a9a")
    X = sp.csr_matrix((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)  # LinearSVC takes no others
    sets = {"a9a": (X, y)}
    for name, read in (("breast_cancer", load_breast_cancer), ("digits", load_digits)):
        X, y = read(return_X_y=True)
        sets[name] = MaxAbsScaler().fit_transform(X), y
    print(f"{'data':16}{'LinearSVM ms':>14}{'LinearSVC ms':>14}{'ratio':>8}{'objective / bound':>19}")
    for name, (X, y) in sets.items():
        ours, theirs = LinearSVM(), LinearSVC(loss="hinge", max_iter=10_000)
        spent = [_milliseconds(model, X, y, chosen.repeat) for model in (ours, theirs)]
        above = ours.primal_objective_ / ours.lower_bound_
        print(f"{name:16}{spent[0]:14.1f}{spent[1]:14.1f}{spent[0] / spent[1]:8.1f}{above:19.4f}", flush=True)
    if chosen.profile:
        X, y = sets["a9a"]
        profile = cProfile.Profile()
        profile.runcall(LinearSVM().fit, X, y)
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)


def _milliseconds(model, X, y, repeat: int) -> float:
    model.fit(X, y)
    times = []
    for _ in range(repeat):
        start = time.process_time()
        model.fit(X, y)
        times.append(time.process_time() - start)
    return 1000 * float(np.median(times))


if __name__ == "__main__":
    main()
