"""What certify claims of random models, against optima in 500 bits.

N small problems of every loss and of three classes, badly scaled, with and without intercepts, certified from weights near their
optimum and far from it: bound ≤ optimum ≤ F(w) ≤ primal, how far at least, where a free intercept is. A claim that is false is
printed and ends it with code 1.

Usage: python scripts/checks/check_certify.py [N] [--seed 0]
"""

import argparse
import json
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
from flint import arb
from reference.exact_bounds import problem
from reference.optimum import Largest, Problem, Smooth, precision
from reference.truth import _blocks, row_loss

import streamcut
from streamcut.certifying.problem import Problem as Claim
from streamcut.certifying.running import model_of, nothing
from streamcut.loss_table import ROW_LOSSES

warnings.simplefilter("ignore")
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
    if set(own) <= {"epsilon"}:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "m.json"
            labels = {"labels": [-1, 1]} if ROW_LOSSES[options["loss"]].targets == "labels" else {}
            place.write_text(json.dumps(record | labels))
            return streamcut.certify(place, data, passes, **options, **own)
    w = np.array(record["weights"]).reshape(-1)
    claim = Claim(w, record["intercepts"][0], "it", options=own).completed(options["C"], options["loss"], options["intercept"])
    return streamcut.certify(model_of(claim, w, record["intercepts"][0], [nothing()], ""), data, passes)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, nargs="?", default=2000, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    return int(exact(given.count, given.seed) > 0)


if __name__ == "__main__":
    sys.exit(main())
