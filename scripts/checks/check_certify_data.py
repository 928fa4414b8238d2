"""What `certify` proves of models of scikit-learn on real data (STREAMCUT_DATA), after 1, 3 and 6 passes, and what it costs.

Usage: python scripts/checks/check_certify_data.py [--sets a9a,ijcnn1,spambase,dna,usps] [--every 1]
"""

import argparse
import io
import lzma
import os
import time
import warnings
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.svm import LinearSVC

import streamcut

PASSES = (1, 3, 6)


def rows(name: str, every: int):
    """(X, y): every `every`-th row of the training part."""
    text = lzma.decompress((Path(os.environ["STREAMCUT_DATA"]) / name / "train.svm.xz").read_bytes())
    X, y = load_svmlight_file(io.BytesIO(text))
    return X[::every], y[::every]


def models(n: int):
    """(name, estimator at its defaults)."""
    yield "`LogisticRegression()`", LogisticRegression()
    yield "the same, `tol=1e-8`", LogisticRegression(tol=1e-8, max_iter=2000)
    yield "`SGDClassifier`, log loss, 5 epochs", SGDClassifier("log_loss", alpha=1.0 / n, max_iter=5, tol=None, random_state=0)
    yield "`LinearSVC()`", LinearSVC()
    yield '`LinearSVC(loss="hinge")`', LinearSVC(loss="hinge", random_state=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="a9a,ijcnn1,spambase,dna,usps")
    parser.add_argument("--every", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| data | model | " + " | ".join(f"{k} passes" for k in PASSES) + " | fit, s | 6 passes, s |")
    print("|---|---|" + "---|" * (len(PASSES) + 2))
    for name in options.sets.split(","):
        X, y = rows(name, options.every)
        for what, model in models(len(y)):
            if len(set(y)) > 2 and isinstance(model, LogisticRegression):  # free intercepts of a joint loss are not certified
                model.fit_intercept = False
            times = [time.process_time()]
            model.fit(X, y)
            times.append(time.process_time())
            cells = []
            for passes in PASSES:
                certified = streamcut.certify(model, (X, y), passes)
                cells.append(f"{100 * certified.at_most:.2g} / {100 * certified.at_least:.2g}")
            again = time.process_time()
            streamcut.certify(model, (X, y), PASSES[-1])
            spent = [times[1] - times[0], time.process_time() - again]
            print(f"| {name} | {what} | {' | '.join(cells)} | {spent[0]:.2f} | {spent[1]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
