"""Small data to try things on, the same at every run: made up, or real data that scikit-learn ships."""

from __future__ import annotations

import csv
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

import numpy as np

from streamcut.errors import UsageError

TOPICS = {
    "gardening": "soil seed tomato prune compost bloom frost bulb hedge mulch",
    "cycling": "gear chain saddle climb brake tyre spoke pedal helmet descent",
    "baking": "dough yeast oven crust flour knead proof butter sugar glaze",
}
COMMON = "today I tried this again and my friend said that it was not so good after all but we will see next week"


def clicks(file: str) -> None:
    rng = np.random.default_rng(1)
    n = 4_000
    site, device = rng.choice(["news", "sport", "weather", "games", "mail"], n), rng.choice(["phone", "laptop", "tablet"], n)
    age, hours = rng.integers(16, 80, n), np.sort(rng.integers(0, 24 * 60, n))
    likes = {"games": 1.2, "sport": 0.5, "mail": -0.8}
    score = np.array([likes.get(name, 0.0) for name in site]) + 0.9 * (device == "phone") - 0.03 * (age - 40) - 1.5
    clicked = rng.random(n) < 1 / (1 + np.exp(-score))
    began = datetime(2026, 1, 1)
    with open(file, "w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow(["time", "site", "device", "age", "click"])
        for row in range(n):
            shown = "" if row % 11 == 0 else age[row]
            when = (began + timedelta(hours=int(hours[row]))).isoformat(" ")
            writer.writerow([when, site[row], device[row], shown, "yes" if clicked[row] else "no"])


def posts(file: str) -> None:
    rng = np.random.default_rng(2)
    with open(file, "w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow(["topic", "text"])
        for _ in range(1_500):
            topic = str(rng.choice(list(TOPICS)))
            other = str(rng.choice(list(TOPICS)))
            words = [
                *rng.choice(COMMON.split(), 20),
                *rng.choice(TOPICS[topic].split(), 3),
                *rng.choice(TOPICS[other].split(), 2),
            ]
            writer.writerow([topic, " ".join(rng.permutation(words))])


def cells(file: str) -> None:
    try:
        import anndata
    except ModuleNotFoundError as error:
        raise UsageError(f"cells: {error}; run pip install anndata") from None
    import pandas as pd
    from scipy.sparse import csr_matrix

    rng = np.random.default_rng(3)
    kinds = np.array(["B cell", "T cell", "monocyte"])
    kind, mean = rng.integers(0, 3, 900), rng.gamma(0.3, 1.0, 2_000)
    counts = rng.poisson(mean * rng.uniform(0.5, 1.5, (900, 1)))
    for j in range(3):
        counts[kind == j, 10 * j : 10 * j + 10] += rng.poisson(0.8, ((kind == j).sum(), 10))
    genes = pd.DataFrame(index=[f"GENE{j}" for j in range(2_000)])
    about = pd.DataFrame({"cell_type": kinds[kind]}, index=[f"CELL{i}" for i in range(900)])
    data = anndata.AnnData(csr_matrix(counts.astype(np.float32)), about, genes)
    data.layers["lognorm"] = csr_matrix(np.log1p(1e3 * counts / counts.sum(axis=1, keepdims=True)).astype(np.float32))
    data.write_h5ad(file)


def tumours(file: str, part: int = 0) -> None:
    """Part 1 is held out. Columns, whose scales differ by a factor of 100,000, are divided by their largest value in part 0."""
    from sklearn.datasets import dump_svmlight_file, load_breast_cancer
    from sklearn.model_selection import train_test_split

    X, y = load_breast_cancer(return_X_y=True)
    *rows, y_train, y_test = train_test_split(X, 2 * y - 1, test_size=0.25, random_state=0)
    dump_svmlight_file(rows[part] / np.abs(rows[0]).max(axis=0), (y_train, y_test)[part], file, zero_based=False)


def digits(file: str) -> None:
    from sklearn.datasets import dump_svmlight_file, load_digits

    X, y = load_digits(return_X_y=True)
    dump_svmlight_file(X / 16, y, file, zero_based=False)


EXAMPLES: dict[str, tuple[Callable[[str], None], str]] = {  # how it is written, and its usual file
    "clicks": (clicks, "clicks.csv"),
    "posts": (posts, "posts.csv"),
    "cells": (cells, "cells.h5ad"),
    "tumours": (tumours, "tumours.svm"),
    "tumours-test": (partial(tumours, part=1), "tumours-test.svm"),
    "digits": (digits, "digits.svm"),
}
