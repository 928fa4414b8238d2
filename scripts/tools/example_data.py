"""example_data.py clicks|posts|cells FILE: the small data of the tutorials in docs/, made up, the same at every run.

clicks   CSV, 4,000 views of advertisements by time: site, device, age (with gaps), hour and whether somebody clicked
posts    CSV, 1,500 posts on three topics
cells    AnnData (.h5ad, needs anndata), 900 cells of three types, 2,000 genes: counts, and a layer "lognorm"
"""

import csv
import sys
from datetime import datetime, timedelta

import numpy as np

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
    with open(file, "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["time", "site", "device", "age", "click"])
        for row in range(n):
            shown = "" if row % 11 == 0 else age[row]
            when = (began + timedelta(hours=int(hours[row]))).isoformat(" ")
            writer.writerow([when, site[row], device[row], shown, "yes" if clicked[row] else "no"])


def posts(file: str) -> None:
    rng = np.random.default_rng(2)
    with open(file, "w", newline="") as out:
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
    import anndata
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
    found = anndata.AnnData(csr_matrix(counts.astype(np.float32)), about, genes)
    found.layers["lognorm"] = csr_matrix(np.log1p(1e3 * counts / counts.sum(axis=1, keepdims=True)).astype(np.float32))
    found.write_h5ad(file)


if __name__ == "__main__":
    {"clicks": clicks, "posts": posts, "cells": cells}[sys.argv[1]](sys.argv[2])
