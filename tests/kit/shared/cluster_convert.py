"""What tests/io/test_cluster_convert.py and tests/inside/io/test_cluster_convert.py share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """A folder with text of 5 files (one empty, one of long rows), and tables t0.parquet, t1.parquet, t2.parquet."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    for number, rows in enumerate((150, 0, 40, 333, 7)):
        with open(folder / f"p{number}.svm", "w") as file:
            for _ in range(rows):
                most = 700 if number == 4 else 12
                indices = np.sort(rng.choice(900, int(rng.integers(0, most)), replace=False)) + 1
                entries = " ".join(f"{j}:{v:.4g}" for j, v in zip(indices, rng.normal(size=len(indices)), strict=True))
                file.write(f"{rng.choice([-1, 1])}:{rng.random():.3f} {entries}\n")
    for number, rows in enumerate((200, 90, 310)):
        site = rng.choice(["a", "b", "c"], rows)
        table = {"click": (rng.random(rows) < 0.3).astype(int), "site": site, "price": rng.random(rows)}
        pq.write_table(pa.table(table), folder / f"t{number}.parquet")
    return folder
