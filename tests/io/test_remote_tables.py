"""Tables behind URLs: files, globs and folders of them, read as local ones are."""

from __future__ import annotations

import gzip
import io
import urllib.request

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from kit.object_stores import s3_server

import streamcut


@pytest.fixture
def bucket(monkeypatch):
    """s3://bucket with days/1.parquet, days/2.parquet, days/_SUCCESS and all.csv.gz, and the table that each is of."""
    rng = np.random.default_rng(2)
    site = rng.choice(["a", "b", "c"], 600)
    table = pa.table({"click": np.where(rng.random(600) < 0.1, 1, (site == "a") * 1), "site": site, "price": rng.random(600)})
    objects = {"days/_SUCCESS": b"", "empty/_SUCCESS": b""}
    for number, start in enumerate((0, 400), start=1):
        pq.write_table(table.slice(start, 400 - start // 2), file := io.BytesIO(), row_group_size=90)
        objects[f"days/{number}.parquet"] = file.getvalue()
    pa.csv.write_csv(table, file := io.BytesIO())
    objects["all.csv.gz"] = gzip.compress(file.getvalue())
    with s3_server(monkeypatch) as server:
        for name, content in objects.items():
            kind = {"Content-Type": "application/octet-stream"}
            request = urllib.request.Request(f"{server.url}/bucket/{name}", content, kind, method="PUT")
            urllib.request.urlopen(request, timeout=60).close()
        yield table


@pytest.mark.parametrize("url", ["s3://bucket/days", "s3://bucket/days/*.parquet", "s3://bucket/all.csv.gz"])
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
        ("s3://bucket/nothing.parquet", "nothing.parquet"),
        ("s3://bucket/*.tsv", "no file matches"),
        ("s3://bucket/empty", "holds no files"),
        ("nowhere://bucket/a.csv", "nowhere"),
    ],
)
def test_urls_that_lead_nowhere(bucket, tmp_path, run, url, reason):
    code, _, said = run("convert", url, tmp_path / "r.zarr", "--label", "click", "-q")
    assert code == 4, said
    assert reason in said.splitlines()[-1]
    assert not list(tmp_path.iterdir())
