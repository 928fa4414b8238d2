"""Tables behind URLs: files, globs and folders of them, read as local ones are."""

from __future__ import annotations

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import streamcut


@pytest.fixture
def bucket():
    """memory://bucket with days/1.parquet, days/2.parquet, days/_SUCCESS and all.csv.gz, and the table that each is of."""
    system = fsspec.filesystem("memory")
    rng = np.random.default_rng(2)
    site = rng.choice(["a", "b", "c"], 600)
    table = pa.table({"click": np.where(rng.random(600) < 0.1, 1, (site == "a") * 1), "site": site, "price": rng.random(600)})
    for number, start in enumerate((0, 400), start=1):
        with system.open(f"/bucket/days/{number}.parquet", "wb") as file:
            pq.write_table(table.slice(start, 400 - start // 2), file, row_group_size=90)
    system.pipe("/bucket/days/_SUCCESS", b"")
    with fsspec.open("memory://bucket/all.csv.gz", "wb", compression="gzip") as file:
        pa.csv.write_csv(table, file)
    system.mkdir("/bucket/empty")
    yield table
    system.rm("/bucket", recursive=True)


@pytest.mark.parametrize("url", ["memory://bucket/days", "memory://bucket/days/*.parquet", "memory://bucket/all.csv.gz"])
def test_tables_behind_urls_are_converted_and_scored(bucket, tmp_path, run, url):
    code, _, said = run("convert", url, tmp_path / "r.zarr", "--label", "click", "-q")
    assert code == 0, said
    streamcut.convert(bucket, tmp_path / "l.zarr", labels="click")
    stores = [streamcut.open(tmp_path / name) for name in ("r.zarr", "l.zarr")]
    assert stores[0].manifest.fingerprint == stores[1].manifest.fingerprint
    model = streamcut.train(tmp_path / "l.zarr")
    streamcut.save_model(model, tmp_path / "m.npz")
    code, out, said = run("predict", tmp_path / "m.npz", url, "--keep", "site", "--answer", "both")
    assert code == 0, said
    assert len(out.splitlines()) == 601
    assert run("evaluate", tmp_path / "m.npz", url)[0] == 0


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("memory://bucket/nothing.parquet", "nothing.parquet"),
        ("memory://bucket/*.tsv", "no file matches"),
        ("memory://bucket/empty", "holds no files"),
        ("nowhere://bucket/a.csv", "nowhere"),
    ],
)
def test_urls_that_lead_nowhere(bucket, tmp_path, run, url, reason):
    code, _, said = run("convert", url, tmp_path / "r.zarr", "--label", "click", "-q")
    assert code == 4, said
    assert reason in said.splitlines()[-1]
    assert not list(tmp_path.iterdir())
