"""What certify and predict --certified prove of real data (STREAMCUT_DATA).

    passes     what 1, 2, 3, 6 and 12 passes prove of models of scikit-learn, and of vw's and LIBLINEAR's files
    classes    the same of models of scikit-learn for several classes
    labels     how many labels are proved at gaps of 1e-3, 1e-4, 1e-5; ends with code 1 if an optimum at 1e-12 denies one

Usage: python scripts/checks/check_certify_data.py passes|classes|labels [--sets a9a,news20_bydate:1] [--every 1]
"""

import argparse
import io
import lzma
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import streamcut

warnings.simplefilter("ignore")
TIMES = (1, 2, 3, 6, 12)
GAPS = (1e-3, 1e-4, 1e-5)
SETS = {
    "passes": ("a9a", "ijcnn1", "news20_bydate:1", "celegans_splice", "flights3m"),
    "classes": ("usps", "letter", "dna", "news20_bydate"),
    "labels": ("a9a", "ijcnn1", "spambase", "svmguide1", "skin_nonskin", "susy_30k"),
}
STEP = [1]


def rows(name: str, part: str = "train", features: int | None = None):
    """(X, y): two classes, −1 and 1; NAME:LABEL is that label against the rest."""
    from sklearn.datasets import load_svmlight_file

    name, _, label = name.partition(":")
    text = lzma.decompress((Path(os.environ["STREAMCUT_DATA"]) / name / f"{part}.svm.xz").read_bytes())
    X, y = load_svmlight_file(io.BytesIO(text), n_features=features)
    X, y = X[:: STEP[0]], y[:: STEP[0]]
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, np.where(y == float(label) if label else y > 0, 1.0, -1.0)


def models(X, y):
    """(name, model or file, how it is certified) of other programs, at their defaults."""
    from sklearn.linear_model import LogisticRegression, SGDClassifier
    from sklearn.svm import LinearSVC

    yield "lbfgs", LogisticRegression(), {}
    yield "lbfgs, tol 1e-8", LogisticRegression(tol=1e-8, max_iter=2000), {}
    yield "saga", LogisticRegression(solver="saga"), {}
    yield "SGD, 5 epochs", SGDClassifier("log_loss", alpha=1.0 / len(y), max_iter=5, tol=None, random_state=0), {}
    yield "LinearSVC", LinearSVC(), {}
    yield "LinearSVC, hinge", LinearSVC(loss="hinge", random_state=0), {}
    yield "LIBLINEAR -s 0", "liblinear", {"trained_by": "train -s 0 -c 1 -B 1"}
    yield "vw --bfgs", "vw", {"trained_by": "vw --bfgs --l2 1 --loss_function logistic --passes 20 --predict_only_model"}
    yield "vw --sgd", "vw", {"trained_by": f"vw --sgd --l2 {1.0 / len(y)!r} --loss_function logistic --passes 5"}


def fitted(what, X, y, folder, how):
    """The fitted estimator, or the file that the program wrote."""
    if not isinstance(what, str):
        return what.fit(X, y)
    place = Path(folder) / "model"
    if what == "liblinear":
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(solver="liblinear").fit(X, y)
        head = f"solver_type L2R_LR_DUAL\nnr_class 2\nlabel 1 -1\nnr_feature {X.shape[1]}\nbias 1\nw\n"
        place.write_text(head + "".join(f"{v:.17g} \n" for v in (*model.coef_[0], *model.intercept_)))
        return place
    from vowpalwabbit import pyvw

    with open(Path(folder) / "rows.vw", "w") as out:
        for i in range(X.shape[0]):
            at = slice(X.indptr[i], X.indptr[i + 1])
            words = " ".join(f"{j + 1}:{v:.9g}" for j, v in zip(X.indices[at].tolist(), X.data[at].tolist(), strict=True))
            out.write(f"{y[i]:g} | {words}\n")
    bits = max(18, int(np.ceil(np.log2(X.shape[1] + 2))))
    files = f"-d {out.name} --readable_model {place} --cache_file {place}.cache -k -b {bits} --holdout_off --quiet"
    pyvw.Workspace(f"{files} {how['trained_by'].removeprefix('vw ')}").finish()
    return place


def passes(sets: list[str]) -> int:
    print("| data | model | " + " | ".join(map(str, TIMES)) + " | trained, s | 12 passes, s |")
    print("|---|---|" + "---|" * (len(TIMES) + 2))
    for name in sets:
        X, y = rows(name)
        for what, model, how in models(X, y):
            with tempfile.TemporaryDirectory() as folder:
                began = time.process_time()
                try:
                    given = fitted(model, X, y, folder, how)
                except ImportError as error:
                    print(f"| {name} | {what} | {error} |")
                    continue
                between = time.process_time()
                found = streamcut.certify(given, (X, y), TIMES[-1], **how)
                ended = time.process_time()
            row(name, what, found, between - began, ended - between)
    return 0


def row(name: str, what: str, found, trained: float, took: float) -> None:
    """A line of the tables of `passes` and `classes`."""
    said = {each.passes: each for each in found.passes}
    cells = [said.get(k, found.passes[-1]) for k in TIMES]
    text = " | ".join(f"{100 * each.at_most:.2g} / {100 * each.at_least:.2g}" for each in cells)
    print(f"| {name} | {what} | {text} | {trained:.1f} | {took:.1f} |", flush=True)


def labels(sets: list[str]) -> int:
    print("| data | intercept | gap asked | gap | same label as the optimum | proved | false | outside | s |")
    print("|---|---|---|---|---|---|---|---|---|")
    false = judged = 0
    for name in sets:
        X, y = rows(name)
        test, _ = rows(name, "test", X.shape[1])
        for intercept in ({"bias": 1.0}, {"intercept": "free"}):
            options = {"loss": "logistic", "C": 1.0, "tol": None, **intercept}
            best = streamcut.train((X, y), solver="newton", tol_relative=1e-12, max_passes=100, **options)
            truth = streamcut.predict(best, test)
            chance, off = chances(best, X, y, test)
            for gap in GAPS:
                model = streamcut.train((X, y), solver="bundle-dca", tol_relative=gap, max_passes=400, **options)
                began = time.process_time()
                found = streamcut.predict(model, test, certified=True, trained_on=(X, y))
                took = time.process_time() - began
                wrong = int((found.proved & (found.labels != truth)).sum())
                outside = int(((chance < found.low - off) | (chance > found.high + off)).sum())
                false, judged = false + wrong + outside, judged + len(truth)
                part = model.certificate.gap / model.certificate.primal
                same = 100 * (found.labels == truth).mean()
                cells = f"{gap:.0e} | {part:.1e} | {same:.2f} % | {100 * found.share:.2f} % | {wrong} | {outside} | {took:.1f}"
                print(f"| {name} | {next(iter(intercept))} | {cells} |", flush=True)
    print(f"{judged:,} predictions, {false} false")
    return false


def chances(best, X, y, test):
    """(probabilities of the test rows at the optimum, how far they may be off); with few features by Newton steps from `best` in
    extended precision."""
    if X.shape[1] > 500:
        return streamcut.predict(best, test, output="probabilities"), 1e-7
    A, T = (np.column_stack([each.toarray(), np.ones(each.shape[0])]).astype(np.longdouble) for each in (X, test))
    sides, v = np.where(y > 0, 1, -1), np.append(best.weights, best.intercept).astype(np.longdouble)
    ridge = np.append(np.ones(X.shape[1]), 0.0 if best.free else 1.0)
    for _ in range(3):
        p = 1 / (1 + np.exp(sides * (A @ v)))
        H = (A * (p * (1 - p))[:, None]).astype(float).T @ A.astype(float) + np.diag(ridge)
        v -= np.linalg.solve(H, (ridge * v - A.T @ (sides * p)).astype(float))
    return 1 / (1 + np.exp(-(T @ v))), 1e-11


def classes(sets: list[str]) -> int:
    """What passes prove of models for several classes, at their defaults."""
    from sklearn.datasets import load_svmlight_file
    from sklearn.linear_model import LogisticRegression, SGDClassifier
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import LinearSVC

    print("| data | model | " + " | ".join(map(str, TIMES)) + " | trained, s | 12 passes, s |")
    print("|---|---|" + "---|" * (len(TIMES) + 2))
    for name in sets:
        text = lzma.decompress((Path(os.environ["STREAMCUT_DATA"]) / name / "train.svm.xz").read_bytes())
        X, y = load_svmlight_file(io.BytesIO(text))
        X, y = X[:: STEP[0]], y[:: STEP[0]]
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        several = {
            "LogisticRegression()": LogisticRegression(),
            "the same, tol 1e-8": LogisticRegression(tol=1e-8, max_iter=3000),
            "OneVsRestClassifier of it": OneVsRestClassifier(LogisticRegression()),
            "SGDClassifier, 5 epochs": SGDClassifier("log_loss", alpha=1.0 / len(y), max_iter=5, tol=None, random_state=0),
            "LinearSVC()": LinearSVC(random_state=0),
            "LinearSVC, hinge": LinearSVC(loss="hinge", random_state=0),
            "LinearSVC, Crammer-Singer": LinearSVC(multi_class="crammer_singer", random_state=0),
        }
        for what, model in several.items():
            began = time.process_time()
            model.fit(X, y)
            between = time.process_time()
            found = streamcut.certify(model, (X, y), TIMES[-1])
            row(name, what, found, between - began, time.process_time() - between)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=SETS)
    parser.add_argument("--sets", default="", help="instead of those of docs/certify.md")
    parser.add_argument("--every", type=int, default=1, help="one row in so many")
    given = parser.parse_args()
    STEP[0] = given.every
    sets = [name for name in given.sets.split(",") if name] or SETS[given.what]
    return int({"passes": passes, "classes": classes, "labels": labels}[given.what](sets) > 0)


if __name__ == "__main__":
    sys.exit(main())
