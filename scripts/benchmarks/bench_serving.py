"""How long one row takes: a request at a time, in this process, next to scikit-learn and to a plain product.

  python scripts/benchmarks/bench_serving.py [--repeat 2000]

Models have random weights. Rows are what a service has at hand: an array of 123 numbers, a CSR row of 40 values otherwise; and
rows of a table with 12 columns of numbers and categories, as a dict or as frames of 1,000. Prints the median and the 99th
percentile in microseconds of processor time of `predict` and `decision_function`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

import streamcut
from streamcut.models.certificate import Certificate, StopReason
from streamcut.models.linear import LinearModel
from streamcut.models.model import Model
from streamcut.problem import Problem

CASES = (("dense", 123, 1), ("sparse", 123, 1), ("sparse", 1 << 22, 1), ("sparse", 1 << 20, 20))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=2000)
    repeat = parser.parse_args().repeat
    print(f"{'row':8}{'features':>12}{'classes':>9}  {'method':20}{'median µs':>12}{'99 % µs':>10}")
    for kind, features, classes in CASES:
        rng = np.random.default_rng(0)
        row = _row(rng, kind, features)
        ours, theirs = _ours(rng, features, classes), _theirs(rng, features, classes)
        calls = {
            "predict": lambda model=ours, row=row: model.predict(row),
            "decision_function": lambda model=ours, row=row: model.decision_function(row),
            "scikit-learn predict": lambda model=theirs, row=row: model.predict(row),
        }
        for name, call in calls.items():
            _show(
                f"{kind:8}{features:12,}{classes:9}", name, call, repeat if name != "scikit-learn predict" else min(repeat, 200)
            )
    model, pipeline, rows = _of_tables()
    one, many, dicts = rows.iloc[0].to_dict(), rows.iloc[:1000], rows.iloc[:1000].to_dict("records")
    arrow, begin = pa.Table.from_pandas(many, preserve_index=False), f"{'table':8}{model.n_features:12,}{1:9}"
    for name, call, times in (
        ("a dict", lambda: streamcut.predict(model, one), repeat),
        ("a frame of 1 row", lambda: streamcut.predict(model, rows.iloc[:1]), min(repeat, 500)),
        ("scikit-learn, 1 row", lambda: pipeline.predict(rows.iloc[:1]), min(repeat, 100)),
        ("Arrow, 1,000 rows", lambda: streamcut.predict(model, arrow), min(repeat, 200)),
        ("pandas, 1,000 rows", lambda: streamcut.predict(model, many), min(repeat, 200)),
        ("1,000 dicts", lambda: streamcut.predict(model, dicts), min(repeat, 200)),
        ("scikit-learn, 1,000", lambda: pipeline.predict(many), min(repeat, 100)),
    ):
        _show(begin, name, call, times)


def _show(begin: str, name: str, call: Callable[[], object], repeat: int) -> None:
    call()
    times = [_microseconds(call) for _ in range(repeat)]
    print(f"{begin}  {name:20}{np.median(times):12.1f}{np.quantile(times, 0.99):10.1f}")


def _of_tables() -> tuple[Model, Pipeline, pd.DataFrame]:
    """(our model, scikit-learn's of the same columns, rows without labels)."""
    rng, n = np.random.default_rng(0), 3000
    numbers = {f"x{i}": rng.normal(size=n) for i in range(6)}
    words = {f"c{i}": rng.choice([f"v{k}" for k in range(4**i)], n) for i in range(1, 6)}
    rows = pd.DataFrame({**numbers, **words, "flag": rng.random(n) < 0.5})
    y = np.where(rows.x0 + (rows.c1 == "v0") + rng.normal(size=n) > 0.5, "yes", "no")
    model = streamcut.train(rows.assign(y=y), label="y", loss="logistic", convert={"standardise": True})
    encoders = [("numbers", StandardScaler(), [*numbers]), ("words", OneHotEncoder(handle_unknown="ignore"), [*words, "flag"])]
    return model, make_pipeline(ColumnTransformer(encoders), LogisticRegression(max_iter=1000)).fit(rows, y), rows


def _row(rng: np.random.Generator, kind: str, features: int) -> np.ndarray | sp.csr_array:
    if kind == "dense":
        return rng.standard_normal((1, features))
    indices = np.sort(rng.choice(features, 40, replace=False)).astype(np.int32)
    return sp.csr_array((rng.standard_normal(40).astype(np.float32), indices, np.array([0, 40])), shape=(1, features))


def _ours(rng: np.random.Generator, features: int, classes: int) -> LinearModel:
    reached = Certificate(1.0, 1.0, 1.0, 0.001, 0.01, True, StopReason.CONVERGED)
    common: dict[str, Any] = {"intercept": "regularised", "bias": 1.0}
    if classes == 1:
        problem, w = Problem(labels=(-1.0, 1.0), **common), rng.standard_normal(features)
        return LinearModel(weights=w, intercept=0.5, problem=problem, certificates=(reached,))
    W, labels = rng.standard_normal((features, classes)), tuple(map(float, range(classes)))
    problem = Problem(task="multiclass", loss="crammer-singer", labels=labels, **common)
    return LinearModel(weights=W, intercept=np.zeros(classes), problem=problem, certificates=(reached,))


def _theirs(rng: np.random.Generator, features: int, classes: int) -> LinearSVC:
    model = LinearSVC()
    model.coef_, model.intercept_ = rng.standard_normal((classes, features)), np.zeros(classes)
    model.classes_ = np.arange(max(2, classes))
    model.n_features_in_ = features
    return model


def _microseconds(call) -> float:
    start = time.process_time_ns()
    call()
    return (time.process_time_ns() - start) / 1000


if __name__ == "__main__":
    main()
