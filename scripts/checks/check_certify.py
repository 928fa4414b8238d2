"""What certify, proved predictions and standard errors claim, against optima in 500 bits, and how much they prove of real data.

    --exact N    N small problems of every loss, badly scaled, with and without intercepts, certified from weights near their
                 optimum and far from it: bound ≤ optimum ≤ F(w) ≤ primal, how far at least, where a free intercept is
    --passes     what 1, 2, 3, 6 and 12 passes prove of models of scikit-learn, and of vw's and LIBLINEAR's files
    --classes    the same of models of scikit-learn for several classes
    --labels     how many labels are proved at gaps of 1e-3, 1e-4, 1e-5, and how many of these an optimum at 1e-12 denies
    --errors     standard errors next to statsmodels' as the penalty goes away, with clusters, too
    --sizes      processor seconds of standard errors of made data: 10^6 rows, 100, 1,000 and 4,000 features

Prints tables; a claim that is false ends it with code 1. Real data are those of STREAMCUT_DATA.
Usage: python scripts/checks/check_certify.py [--exact 2000] [--seed 0] [--passes] [--classes] [--labels] [--errors] [--sizes]
           [--sets a9a,news20_bydate:1] [--every 1]
"""

import argparse
import io
import lzma
import os
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import numpy as np
import scipy.sparse as sp
from flint import arb
from reference.exact_bounds import problem
from reference.optimum import Largest, Problem, Smooth, precision
from reference.truth import _blocks, row_loss

import streamcut
from streamcut.loss_table import ROW_LOSSES

warnings.simplefilter("ignore")
TIMES = (1, 2, 3, 6, 12)
GAPS = (1e-3, 1e-4, 1e-5)
STEP = [1]
CEILING = {100: "600MB", 1000: "1.2GB", 4000: "2.5GB"}  # by features, of --sizes


SEVERAL = ("softmax", "crammer-singer", "one-vs-rest logistic", "one-vs-rest squared-hinge", "one-vs-rest hinge")


def exact(count: int, seed: int) -> int:
    """Claims about random models that are false."""
    kinds = (*ROW_LOSSES, *SEVERAL)
    false, tried, started = Counter(), Counter(), time.process_time()
    for k in range(count):
        kind = kinds[k % len(kinds)]
        try:
            found = (one if kind in ROW_LOSSES else several)(kind, seed + k // len(kinds))
        except streamcut.errors.StreamcutError as error:
            tried[f"refused: {str(error)[:60]}"] += 1
            continue
        tried[kind] += 1
        for what in found:
            false[what] += 1
            print(f"false: {what}; {kind} {seed + k // len(kinds)}", flush=True)
        if sum(tried.values()) % 200 == 0:
            print(f"{sum(tried.values())} tried, {sum(false.values())} false, {time.process_time() - started:.0f} s", flush=True)
    print(f"tried: {dict(tried)}; false: {dict(false) or 0}")
    return sum(false.values())


def several(kind: str, seed: int) -> list[str]:
    """What is false of one certification of three classes, in one problem or in three."""
    rng = np.random.default_rng([seed, 11])
    given = problem("logistic", seed, rows=9, features=2, one_type=True)
    strategy, _, loss = kind.partition(" ")
    intercept = ("free", "none", "1.5")[seed % 3]
    if strategy == "crammer-singer" and intercept == "free":
        intercept = "0.5"
    X, u = np.asarray(given.X, float), np.maximum(given.weight, 1e-6) if seed % 2 == 0 else np.ones(len(given.X))
    target = rng.permutation(np.arange(len(X)) % 3)
    bias = {"free": 1.0, "none": 0.0}.get(intercept) if intercept in ("free", "none") else float(intercept)
    rows = np.column_stack([X, np.full(len(X), bias)]) if bias else X
    D = rows.shape[1]
    with precision():
        big = [[arb(v) for v in x] for x in rows.tolist()]
        price = [arb(given.C) * arb(v) for v in u.tolist()]
        if loss:
            stated = []
            for k in range(3):
                each = zip(big, target.tolist(), price, strict=True)
                terms = [term for x, t, p in each for term in row_loss(loss, {}, x, 1.0 if t == k else -1.0, p)]
                stated.append(Problem(D, terms, intercept == "free"))
            solved = [each.solved()[0] for each in stated]
        else:
            joint = []
            for x, t, p in zip(big, target.tolist(), price, strict=True):
                signs = [{k: 1, t: -1} if k != t else {} for k in range(3)]
                forms = [_blocks(x, each, 3, arb(bool(each) and kind != "softmax")) for each in signs]
                joint.append(Smooth(p, forms, True) if kind == "softmax" else Largest(p, forms))
            stated = [_Joint(D, 3, joint, intercept == "free")]
            solved = [stated[0].solved()]
        flat = np.array([[float(v.mid()) for v in best] for best in solved])
        W = flat.reshape(3, D)
        W = W * (1.0 + rng.normal(size=W.shape) * 10.0 ** -rng.integers(0, 14))
        if seed % 5 == 0:
            W = rng.normal(size=W.shape) * 10.0 ** rng.integers(-3, 1)
        weights, b = W[:, : X.shape[1]], W[:, -1] * bias if bias else np.zeros(3)
        C = given.C
        claim = {"strategy": strategy, "loss": loss or strategy, "fit": "free" if intercept == "free" else bias, "C": C}
        found = streamcut.certify(_of_classes(weights.T, b, **claim), (X, target.astype(float), u), int(rng.integers(1, 6)))

        def numbers(weights, b):
            columns = [[arb(v) for v in w] + ([arb(c) / arb(bias)] if bias else []) for w, c in zip(weights, b, strict=True)]
            return columns if loss else [[v for column in columns for v in column]]

        better = numbers(found.better.weights.T.tolist(), found.better.intercepts.tolist())
        wrong = []
        total, least = arb(0), arb(0)
        claims = [each for _, each, _ in found.classes] or [found.certificate]
        for k, (state, best, at, to) in enumerate(
            zip(stated, solved, numbers(weights.tolist(), b.tolist()), better, strict=True)
        ):
            F, reached = state.value(at), state.value(to)
            optimum = min((state.value(best), F, reached), key=lambda v: v.mid())
            total, least = total + F, least + optimum
            checks = (
                ("primal below F", arb(claims[k].primal) < F),
                ("bound above the optimum", arb(claims[k].lower_bound) > optimum),
                ("better model's primal below its F", arb(found.better.certificates[k].primal) < reached),
            )
            wrong += [name for name, is_wrong in checks if bool(is_wrong)]
            if found.better.witnesses and bool(arb(found.better.witnesses[k].bound(claims[k].c_bar)) > optimum):
                wrong.append("plane above the optimum")
        primal = arb(found.certificate.primal)
        checks = (
            ("sum of primals below F", primal < total),
            ("sum of bounds above the optimum", arb(found.certificate.lower_bound) > least),
            ("at least more than it is", arb(found.at_least) * primal > total - least + arb("1e-13") * primal),
            ("at most less than it is", arb(found.at_most) * primal * arb("1.000000000001") < total - least),
        )
    return wrong + [name for name, is_wrong in checks if bool(is_wrong)]


class _Joint:
    """A problem of K classes, class after class in w; the last feature of each costs nothing if they are `free`."""

    def __init__(self, D: int, classes: int, terms: list, free: bool) -> None:
        self._whole, self._terms = Problem(D * classes, terms), terms
        self._last = [k * D + D - 1 for k in range(classes)] if free else []

    def value(self, w):
        return self._whole.value(w) - sum((w[j] ** 2 for j in self._last), arb(0)) / 2

    def solved(self):
        """The optimum; with free intercepts that of a bias feature so large that its weights cost a part of 1e-60 of what they
        would."""
        if not self._last:
            return self._whole.solved()[0]
        terms = [Smooth(term.price, [(_times(a, self._last), b) for a, b in term.forms], True) for term in self._terms]
        found, _ = Problem(self._whole.dimension, terms).solved()
        return _times(found, self._last)


def _times(a, places):
    return [v * arb("1e30") if j in places else v for j, v in enumerate(a)]


def _of_classes(weights, intercepts, **claim):
    from streamcut.certifying.problem import Problem as Claim
    from streamcut.certifying.running import model_of, nothing

    labels = tuple(map(float, range(len(intercepts))))
    told = Claim(weights, intercepts, "it", labels=labels, **claim).completed(None, None, None)
    return model_of(
        told, told.weights, told.intercept, [nothing()] * (len(labels) if claim["strategy"] == "one-vs-rest" else 1), ""
    )


def one(loss: str, seed: int) -> list[str]:
    """What is false of one certification."""
    rng = np.random.default_rng([seed, 7])
    given = problem(loss, seed, rows=8, features=3, one_type=True)
    kind = ("free", "none", "1.5")[seed % 3]
    X, y, u = np.asarray(given.X, float), np.asarray(given.y, float), np.maximum(given.weight, 1e-6)
    if seed % 2:
        u = np.ones(len(y))
    own = {name: given.own[name] for name in ROW_LOSSES[loss].options}
    bias = {"free": 1.0, "none": 0.0, "1.5": 1.5}[kind]
    ones = np.column_stack([X, np.full(len(y), bias)]) if bias else X
    with precision():
        terms = [
            term
            for x, target, weight in zip(ones.tolist(), y.tolist(), u.tolist(), strict=True)
            for term in row_loss(loss, given.own, [arb(v) for v in x], target, arb(given.C) * arb(weight))
        ]
        stated = Problem(ones.shape[1], terms, kind == "free")
        best, known = stated.solved()
        near = np.array([float(v.mid()) for v in best])
        w = near * (1.0 + rng.normal(size=len(near)) * 10.0 ** -rng.integers(0, 14))
        if seed % 5 == 0:
            w = rng.normal(size=len(near)) * 10.0 ** rng.integers(-3, 1)
        b = float(w[-1] * bias) if bias else 0.0
        record = {"features": list(range(X.shape[1])), "weights": [[v] for v in w[: X.shape[1]].tolist()]}
        record |= {"n_features": X.shape[1], "intercepts": [b]}
        found = certified(record, (X, y, u), int(rng.integers(1, 6)), C=given.C, loss=loss, intercept=kind, own=own)
        at = [arb(v) for v in w[: X.shape[1]].tolist()] + ([arb(b) / arb(bias)] if bias else [])
        F, optimum = stated.value(at), stated.value(best)
        if bool(optimum > F):
            optimum = F
        better = found.better
        v = [arb(x) for x in better.weights.tolist()] + ([arb(float(better.intercept)) / arb(bias)] if bias else [])
        reached = stated.value(v)
        if bool(optimum > reached):
            optimum = reached
        primal, bound = arb(found.certificate.primal), arb(found.certificate.lower_bound)
        wrong = [
            name
            for name, is_wrong in (
                ("primal below F", primal < F),
                ("bound above the optimum", bound > optimum),
                ("better model's primal below its F", arb(better.certificate.primal) < reached),
                ("at least more than it is", arb(found.at_least) * primal > F - optimum + arb("1e-13") * primal),
                ("at most less than it is", arb(found.at_most) * primal * arb("1.000000000001") < F - optimum),
                ("plane above the optimum", arb(better.witness.bound(found.certificate.c_bar)) > optimum),
            )
            if bool(is_wrong)
        ]
        if kind == "free" and found.intercept_within is not None and known:
            low, high = (arb(v) for v in found.intercept_within)
            slack = arb("1e-9") * (1 + abs(best[-1]))
            if bool(best[-1] < low - slack) or bool(best[-1] > high + slack):
                wrong.append("intercept elsewhere")
    return wrong


def certified(record, data, passes, *, own, **options):
    """Of weights in JSON, or with the options of a loss that only a model of ours has."""
    import json

    if set(own) <= {"epsilon"}:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "m.json"
            labels = {"labels": [-1, 1]} if ROW_LOSSES[options["loss"]].targets == "labels" else {}
            place.write_text(json.dumps(record | labels))
            return streamcut.certify(place, data, passes, **options, **own)
    from streamcut.certifying.problem import Problem as Claim
    from streamcut.certifying.running import model_of, nothing

    w = np.array(record["weights"]).reshape(-1)
    claim = Claim(w, record["intercepts"][0], "it", options=own).completed(options["C"], options["loss"], options["intercept"])
    return streamcut.certify(model_of(claim, w, record["intercepts"][0], [nothing()], ""), data, passes)


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
    """A line of the table of --passes."""
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
            chance = streamcut.predict(best, test, output="probabilities")
            for gap in GAPS:
                model = streamcut.train((X, y), solver="bundle-dca", tol_relative=gap, max_passes=400, **options)
                began = time.process_time()
                found = streamcut.predict(model, test, certified=True, trained_on=(X, y))
                took = time.process_time() - began
                wrong = int((found.proved & (found.labels != truth)).sum())
                outside = int(((chance < found.low - 1e-7) | (chance > found.high + 1e-7)).sum())
                false, judged = false + wrong + outside, judged + len(truth)
                part = model.certificate.gap / model.certificate.primal
                same = 100 * (found.labels == truth).mean()
                cells = f"{gap:.0e} | {part:.1e} | {same:.2f} % | {100 * found.share:.2f} % | {wrong} | {outside} | {took:.1f}"
                print(f"| {name} | {next(iter(intercept))} | {cells} |", flush=True)
    print(f"{judged:,} predictions, {false} false")
    return false


def errors() -> int:
    """Against statsmodels: a Binomial GLM without a penalty, where C is large."""
    import statsmodels.api as sm

    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(3000, 6)), 4)
    clusters = rng.integers(0, 60, 3000)
    y = np.where(X @ rng.normal(size=6) + rng.normal(size=60)[clusters] + rng.logistic(size=3000) > 0.5, 1.0, -1.0)
    ones = sm.add_constant(X, prepend=False)
    theirs = sm.GLM(y > 0, ones, family=sm.families.Binomial()).fit(tol=1e-14)
    ways = {
        "model": (theirs.bse, {}),
        "robust": (sm.GLM(y > 0, ones, family=sm.families.Binomial()).fit(tol=1e-14, cov_type="HC0").bse, {"robust": True}),
        "clusters": (
            sm.Logit(y > 0, ones).fit(disp=0, tol=1e-14, method="newton", cov_type="cluster", cov_kwds={"groups": clusters}).bse,
            {"clusters": clusters},
        ),
    }
    print("| C | errors | largest relative difference | widest interval |")
    print("|---|---|---|---|")
    worst = 0.0
    for C in (1.0, 1e3, 1e6):
        model = streamcut.train((X, y), loss="logistic", C=C, intercept="free", tol=None, tol_relative=1e-9)
        for kind, (expected, how) in ways.items():
            found = streamcut.standard_errors(model, (X, y), **how)
            middle = 0.5 * (found.low + found.high)
            apart = float(np.abs(middle / expected - 1.0).max())
            print(f"| {C:g} | {kind} | {apart:.1e} | {float((found.high / found.low - 1.0).max()):.1e} |", flush=True)
        worst = max(worst, apart) if C == 1e6 else 0.0
    return int(worst > 1e-6)


def sizes(n: int) -> int:
    """Rows are read from a store, in no more memory than `CEILING`."""
    from streamcut.foundation.systems import peak_bytes

    print("| rows | features | ceiling | trained, s | standard errors, s | widest interval | peak of the process |")
    print("|---|---|---|---|---|---|---|")
    for D, ceiling in CEILING.items():
        rng = np.random.default_rng(D)
        with tempfile.TemporaryDirectory() as folder:
            text, truth = Path(folder) / "rows.svm", rng.normal(size=D)
            with text.open("w") as out:
                for start in range(0, n, 50_000):
                    rows = min(50_000, n - start)
                    X = sp.random_array((rows, D), density=10.0 / D, rng=rng, format="csr", dtype=np.float32)
                    y = np.where(X @ truth + rng.logistic(size=rows) > 0.0, 1, -1)
                    for i in range(rows):
                        at = slice(X.indptr[i], X.indptr[i + 1])
                        words = zip((X.indices[at] + 1).tolist(), X.data[at].tolist(), strict=True)
                        out.write(f"{y[i]} " + " ".join(f"{j}:{v:.6g}" for j, v in sorted(words)) + "\n")
            store = Path(folder) / "rows.zarr"
            streamcut.convert(text, store, n_features=D)
            text.unlink()
            del X, y
            began = time.process_time()
            options = {"loss": "logistic", "C": 1.0, "intercept": "free", "tol": None, "tol_relative": 1e-6, "memory": ceiling}
            model = streamcut.train(store, **options)
            between = time.process_time()
            found = streamcut.standard_errors(model, store, memory=ceiling)
            ended = time.process_time()
        wide, peak = float((found.high / found.low - 1.0).max()), peak_bytes() / 2**20
        times = f"{between - began:.1f} | {ended - between:.1f}"
        print(f"| {n:,} | {D:,} | {ceiling} | {times} | {wide:.1e} | {peak:.0f} MiB |", flush=True)
    return 0


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
    parser.add_argument("--exact", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of --sizes")
    parser.add_argument("--sets", default="", help="of --passes and --labels, instead of those of the page")
    parser.add_argument("--every", type=int, default=1, help="of real data: one row in so many")
    for name in ("passes", "classes", "labels", "errors", "sizes"):
        parser.add_argument(f"--{name}", action="store_true")
    given = parser.parse_args()
    STEP[0] = given.every
    chosen = [name for name in given.sets.split(",") if name]
    false = exact(given.exact, given.seed) if given.exact else 0
    if given.passes:
        false += passes(chosen or ["a9a", "ijcnn1", "news20_bydate:1", "celegans_splice", "flights3m"])
    if given.classes:
        false += classes(chosen or ["usps", "letter", "dna", "news20_bydate"])
    if given.labels:
        false += labels(chosen or ["a9a", "ijcnn1", "spambase", "svmguide1", "susy_30k"])
    if given.errors:
        false += errors()
    if given.sizes:
        false += sizes(given.rows)
    return 1 if false else 0


if __name__ == "__main__":
    sys.exit(main())
