"""All families for bench_families.py: those of families_linear.py, one class, rankings, kernels, tables and texts.

Of tables and texts, of which the peer is a pipeline, the log loss of held-out rows is compared.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from cases import DATA, load, seconds_of
from families_linear import LINEAR, Family, Peer, narrow, result_of
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC, OneClassSVM

import streamcut
from streamcut.io.memory import MemoryDataset
from streamcut.training import train

QUERIES = ("mq2008_fold1test", "ohsumed_fold1test", "mq2007_part*")
GAMMA = {"a9a": 0.05, "usps:3*": 1 / 128, "svmguide1": 2.0, "dna:3": 0.01, "spambase*": 1.0}
MOST_PAIRED = 6000  # rows of a kernel's matrix
FLIGHTS = 100_000  # rows of the table
PACKAGES = ("numpy", "scipy", "sklearn")


class OneClass(Family):
    """C is ν; the objective is 1/(2r²), r the mean of the νm lowest scores at ‖w‖ = 1."""

    def theirs(self, name: str, C: float) -> dict[str, Callable[[], Peer]]:
        X = narrow(load(name)[0])

        def libsvm() -> Peer:
            seconds, model = seconds_of(lambda: OneClassSVM(kernel="linear", nu=C).fit(X))
            return seconds, np.asarray(model.coef_.todense() if sp.issparse(model.coef_) else model.coef_).ravel()

        return {"LIBSVM -s 2": libsvm}

    def objective(self, name: str, C: float, W: np.ndarray) -> float:
        scores = np.sort(load(name)[0] @ W)
        k = C * len(scores)
        mean = float(scores @ np.clip(k - np.arange(len(scores)), 0.0, 1.0)) / k
        return 0.5 * float(W @ W) / mean**2 if mean > 0.0 else np.inf

    def ours(self, name: str, C: float, stop: dict[str, Any]) -> dict[str, Any]:
        X = load(name)[0]
        data = MemoryDataset(X, np.ones(X.shape[0]))
        seconds, model = seconds_of(lambda: train(data, task="one-class", nu=C, scheduler="sync", **stop))
        return result_of(seconds, model.certificate.primal, model.certificate.lower_bound, model)


class Ranking(Family):
    """The mean hinge of all pairs within queries; the peer is LIBLINEAR on their differences, for want of svm_rank."""

    def theirs(self, name: str, C: float) -> dict[str, Callable[[], Peer]]:
        def liblinear() -> Peer:  # making the differences counts: without it there is nothing to train on
            def work() -> np.ndarray:
                X, y, qid = load(name)
                high, low = _pairs(y, qid)
                differences = X[high] - X[low]
                sign = np.where(np.arange(len(high)) % 2, 1.0, -1.0)  # it wants two classes
                flipped = narrow(sp.diags_array(sign) @ differences)
                peer = LinearSVC(loss="hinge", C=C * len(y) / len(high), fit_intercept=False)
                return peer.fit(flipped, sign).coef_[0]

            return seconds_of(work)

        return {"LIBLINEAR -s 3 on pairs": liblinear}

    def objective(self, name: str, C: float, W: np.ndarray) -> float:
        X, y, qid = load(name)
        (high, low), scores = _pairs(y, qid), X @ W
        return 0.5 * float(W @ W) + C * len(y) * float(np.maximum(0.0, 1.0 - (scores[high] - scores[low])).mean())

    def ours(self, name: str, C: float, stop: dict[str, Any]) -> dict[str, Any]:
        X, y, qid = load(name)
        data = MemoryDataset(X, y, qid=qid)
        options = {"task": "ranking", "normalisation": "pairs", "scheduler": "sync"}
        seconds, model = seconds_of(lambda: train(data, C=C, **options, **stop))
        return result_of(seconds, model.certificate.primal, model.certificate.lower_bound, model)


def _pairs(y: np.ndarray, qid: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Rows (higher, lower) of all ordered pairs within queries."""
    assert qid is not None
    both = []
    for query in np.unique(qid):
        rows = np.flatnonzero(qid == query)
        high, low = np.nonzero(y[rows][:, None] > y[rows])
        both.append((rows[high], rows[low]))
    return np.concatenate([high for high, _ in both]), np.concatenate([low for _, low in both])


class Kernels(Family):
    """Gaussian kernels, `smo` with an unregularised intercept next to LIBSVM, on MOST_PAIRED rows."""

    def _rows(self, name: str) -> tuple[sp.csr_array, np.ndarray, float]:
        X, y, _ = load(name)
        return X[:MOST_PAIRED], y[:MOST_PAIRED], GAMMA[name]

    def theirs(self, name: str, C: float) -> dict[str, Callable[[], Peer]]:
        X, y, gamma = self._rows(name)

        def libsvm() -> Peer:
            seconds, model = seconds_of(lambda: SVC(C=C, gamma=gamma).fit(narrow(X), y))
            coefficients = np.zeros(len(y))
            dual = model.dual_coef_.toarray() if sp.issparse(model.dual_coef_) else model.dual_coef_
            coefficients[model.support_] = dual.ravel()
            return seconds, np.append(coefficients, model.intercept_)

        return {"LIBSVM": libsvm}

    def objective(self, name: str, C: float, W: np.ndarray) -> float:
        X, y, gamma = self._rows(name)
        dense = X.toarray()
        squares = np.square(dense).sum(axis=1)
        products = np.exp(-gamma * np.maximum(squares[:, None] + squares - 2.0 * dense @ dense.T, 0.0)) @ W[:-1]
        return 0.5 * float(W[:-1] @ products) + C * float(np.maximum(0.0, 1.0 - y * (products + W[-1])).sum())

    def ours(self, name: str, C: float, stop: dict[str, Any]) -> dict[str, Any]:
        X, y, gamma = self._rows(name)
        data = MemoryDataset(X, y)
        seconds, model = seconds_of(lambda: train(data, C=C, kernel="rbf", gamma=gamma, solver="smo", **stop))
        return result_of(seconds, model.certificate.primal, model.certificate.lower_bound, model)

    def has_target(self) -> bool:
        return False  # smo ends by its tolerance


class Tables(Family):
    """A table of flights: `fit` with C given next to OneHotEncoder and StandardScaler with LogisticRegression; log loss."""

    @staticmethod
    def frames(name: str) -> tuple[Any, Any, str]:
        """(training frame, test frame, target)."""
        import pandas

        frame = pandas.read_parquet(DATA / "flights3m" / "flights-3m.parquet").iloc[: FLIGHTS * 5 // 4]
        frame = frame.assign(late=np.where(frame.pop("delay") > 15, "yes", "no"))
        frame["hour"], frame["weekday"] = frame["date"].dt.hour.astype(str), frame.pop("date").dt.dayofweek.astype(str)
        return frame.iloc[:FLIGHTS], frame.iloc[FLIGHTS:], "late"

    def pipeline(self, C: float) -> Any:
        """What the peer fits."""
        words = OneHotEncoder(handle_unknown="ignore"), ["origin", "destination", "hour", "weekday"]
        return make_pipeline(make_column_transformer(words, (StandardScaler(), ["distance"])), LogisticRegression(C=C))

    def theirs(self, name: str, C: float) -> dict[str, Callable[[], Peer]]:
        frame, test, target = _frames(type(self), name)

        def fitted() -> Peer:
            model = self.pipeline(C)
            seconds, _ = seconds_of(lambda: model.fit(self.inputs(frame, target), frame[target]))
            return seconds, log_loss(test[target], model.predict_proba(self.inputs(test, target)), labels=model.classes_)

        return {"scikit-learn's pipeline": fitted}

    def inputs(self, frame: Any, target: str) -> Any:
        """What the pipeline takes."""
        return frame.drop(columns=target)

    def objective(self, name: str, C: float, W: Any) -> float:
        return float(W)

    def ours(self, name: str, C: float, stop: dict[str, Any]) -> dict[str, Any]:
        frame, test, target = _frames(type(self), name)
        seconds, fitted = seconds_of(lambda: streamcut.fit(frame, label=target, C=C, scheduler="sync"))
        rows = test.drop(columns=target)
        probabilities, said = np.asarray(fitted.predict_proba(rows)), fitted.predict(rows)
        if probabilities.ndim == 1:
            probabilities = np.column_stack([1.0 - probabilities, probabilities])
            names = sorted(frame[target].unique())
        else:  # a column's class is the one that is predicted where it is the greatest
            names = [said[np.argmax(np.argmax(probabilities, axis=1) == column)] for column in range(probabilities.shape[1])]
        return result_of(
            seconds, log_loss(test[target], probabilities[:, np.argsort(names)], labels=sorted(names)), None, fitted.model
        )

    def has_target(self) -> bool:
        return False


class Texts(Tables):
    """Docstrings of the packages that everything here needs: which of them is a text from? tf-idf and softmax on both sides."""

    @staticmethod
    def frames(name: str) -> tuple[Any, Any, str]:
        import pandas

        rows = sorted({(text, package) for package in PACKAGES for text in _docstrings(package)})
        order = np.random.default_rng(0).permutation(len(rows))
        frame = pandas.DataFrame([rows[row] for row in order], columns=["text", "package"])
        half = len(frame) * 4 // 5
        return frame.iloc[:half], frame.iloc[half:], "package"

    def pipeline(self, C: float) -> Any:
        return make_pipeline(TfidfVectorizer(), LogisticRegression(C=C))

    def inputs(self, frame: Any, target: str) -> Any:
        return frame["text"]


@cache
def _frames(kind: type[Tables], name: str) -> tuple[Any, Any, str]:
    return kind.frames(name)


def _docstrings(package: str) -> set[str]:
    """Of the public functions and classes of a package's modules, without the words that name it."""
    texts = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
            if module.name.startswith("_") or module.name in ("tests", "conftest", "f2py", "distutils"):
                continue
            for item in vars(importlib.import_module(f"{package}.{module.name}")).values():
                if (inspect.isclass(item) or inspect.isroutine(item)) and (text := inspect.getdoc(item)) and len(text) > 200:
                    for word in (*PACKAGES, "np", "sp"):
                        text = text.replace(word, "")
                    texts.add(text)
    return texts


def none(scores: np.ndarray, y: np.ndarray) -> float:
    """Of families that have an objective of their own."""
    raise NotImplementedError


FAMILIES: dict[str, Family] = LINEAR | {
    "one-class": OneClass({}, none, ("usps", "letter*", "skin_nonskin*"), {}, Cs=(0.1, 0.5)),
    "ranking": Ranking({}, none, QUERIES, {}),
    "kernels": Kernels({}, none, tuple(GAMMA), {}, Cs=(1.0, 10.0)),
    "tables": Tables({}, none, ("flights3m",), {}, Cs=(1.0,)),
    "texts": Texts({}, none, ("docstrings",), {}, Cs=(1.0,)),
}  # fmt: skip
