"""Tables to features: rows and bytes per second and peak memory, next to DuckDB with NumPy, FeatureHasher and Vowpal Wabbit.

    python scripts/bench_tables.py                       # everything, 2 million rows: about 10 minutes on two quiet processors
    python scripts/bench_tables.py --rows 100000         # a look: under a minute
    python scripts/bench_tables.py --only encode,convert --threads 1,2

The table is synthetic: a label, 8 categories of 10 to 100,000 values with 5 % missing, 2 numbers, hashed into 2^22 features.
Every line is a process of its own, after one that compiles; seconds are of the work alone, without imports. What each one does:

    encode      our rows from Parquet, in memory block by block, nothing written
    convert     our store from Parquet, compressed, with checksums
    csv         our rows from CSV; text: from texts of 10 words, words and bigrams
    duckdb      hash() of every category and the numbers by DuckDB on so many threads, CSR arrays by NumPy (its own hashes)
    hasher      scikit-learn's FeatureHasher on lists of strings, on one thread as ever; the time to make the lists does not count
    vw          Vowpal Wabbit's own parser on its own text, --noop, without a cache

`--scales 1,4,16`: peak memory of `convert --memory 500MB` on tables so many times as long.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

SIZES = (10, 30, 100, 300, 1000, 5000, 20_000, 100_000)
BITS = 22
BLOCK = 100_000


def table(rows: int, seed: int) -> pa.Table:
    """`rows` rows; the same for the same seed."""
    rng = np.random.default_rng(seed)
    columns: dict[str, pa.Array] = {}
    score = np.zeros(rows)
    for number, size in enumerate(SIZES):
        code = (size * rng.random(rows) ** 2).astype(np.int64)
        score += np.sin(code + number) * 0.5
        words = pa.array([f"v{value:x}" for value in range(size)])
        column = pa.DictionaryArray.from_arrays(pa.array(code, mask=rng.random(rows) < 0.05), words)
        columns[f"c{number}"] = column.dictionary_decode()
    for name in ("price", "age"):
        columns[name] = pa.array(rng.random(rows).round(4), mask=rng.random(rows) < 0.05)
    columns["click"] = pa.array((score + rng.standard_normal(rows) > 1).astype(np.int8))
    return pa.table(columns)


def texts(rows: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    words = np.array([f"word{number:x}" for number in range(50_000)], dtype=object)
    chosen = words[(50_000 * rng.random((rows, 10)) ** 3).astype(np.int64)]
    return pa.table({"text": [" ".join(row) for row in chosen.tolist()], "click": rng.integers(0, 2, rows)})


def write(folder: Path, rows: int, scale: int = 1) -> None:
    """big.parquet, and for a scale of 1 also big.csv, text.parquet and big.vw."""
    name = folder / f"big{scale}.parquet"
    with pq.ParquetWriter(name, table(1, 0).schema) as out:
        for start in range(0, rows * scale, BLOCK):
            out.write_table(table(min(BLOCK, rows * scale - start), start))
    if scale > 1:
        return
    whole = pq.read_table(name)
    pa.csv.write_csv(whole, folder / "big.csv")
    pq.write_table(texts(rows // 4, 1), folder / "text.parquet", row_group_size=BLOCK)
    with open(folder / "big.vw", "w") as out:
        for batch in whole.to_batches(BLOCK):
            columns = [batch.column(name).to_pylist() for name in batch.schema.names]
            for *values, click in zip(*columns, strict=True):
                cells = (f"{name}={value}" for name, value in zip(batch.schema.names[:8], values[:8], strict=True) if value)
                numbers = (
                    f"{name}:{value}" for name, value in zip(("price", "age"), values[8:], strict=True) if value is not None
                )
                out.write(f"{2 * click - 1} | {' '.join((*cells, *numbers))}\n")


ROLES = {"labels": "click", "hash_bits": BITS, "categorical": [f"c{k}" for k in range(len(SIZES))], "numeric": "price,age"}


def ours(source: Path, threads: int, **options) -> tuple[int, float]:
    """Encode without writing: (rows, seconds)."""
    from streamcut.io.conversion.prepared import prepared

    given = prepared(str(source), str(source.with_name("never.zarr")), {"threads": threads, **options})
    began = time.perf_counter()
    return sum(chunk.n_rows for chunk, _ in given.source.blocks()), time.perf_counter() - began


def duckdb_numpy(source: Path, threads: int) -> tuple[int, float]:
    import duckdb
    import scipy.sparse as sp

    began = time.perf_counter()
    link = duckdb.connect(config={"threads": threads})
    mask = (1 << BITS) - 1
    hashed = ", ".join(f"(hash('c{k}=' || coalesce(c{k}, '')) & {mask})::int AS c{k}" for k in range(8))
    found = link.execute(f"SELECT {hashed}, coalesce(price, 0) AS price, coalesce(age, 0) AS age FROM '{source}'").fetchnumpy()
    rows = len(found["c0"])
    indices = np.empty((rows, 10), np.int32)
    data = np.ones((rows, 10), np.float32)
    for k in range(8):
        indices[:, k] = found[f"c{k}"]
    indices[:, 8:] = 0, 1
    data[:, 8], data[:, 9] = found["price"], found["age"]
    X = sp.csr_array((data.ravel(), indices.ravel(), np.arange(0, 10 * rows + 1, 10)), shape=(rows, 1 << BITS))
    X.sum_duplicates()
    return X.shape[0], time.perf_counter() - began


def hasher(source: Path, _: int) -> tuple[int, float]:
    """(rows, seconds of hashing alone)."""
    from sklearn.feature_extraction import FeatureHasher

    encoder, rows, seconds = FeatureHasher(1 << BITS, input_type="string", alternate_sign=False), 0, 0.0
    for batch in pq.ParquetFile(source).iter_batches(BLOCK, columns=[f"c{k}" for k in range(8)]):
        columns = [[f"c{k}={value}" for value in batch.column(k).to_pylist()] for k in range(8)]
        given = list(zip(*columns, strict=True))
        began = time.perf_counter()
        rows += encoder.transform(given).shape[0]
        seconds += time.perf_counter() - began
    return rows, seconds


def wabbit(source: Path, _: int) -> tuple[int, float]:
    from vowpalwabbit import pyvw

    began = time.perf_counter()
    engine = pyvw.Workspace(f"-d {source} --noop -b {BITS} --quiet")
    engine.run_parser()
    engine.finish()
    seconds = time.perf_counter() - began
    return pq.ParquetFile(source.with_name("big1.parquet")).metadata.num_rows, seconds


def one(what: str, folder: Path, threads: int, scale: int) -> dict:
    """Run `what` once; rows, seconds, and the peak of this process."""
    source = folder / {"csv": "big.csv", "text": "text.parquet", "vw": "big.vw"}.get(what, f"big{scale}.parquet")
    if what in ("encode", "csv"):
        rows, seconds = ours(source, threads, **ROLES)
    elif what == "text":
        rows, seconds = ours(source, threads, labels="click", hash_bits=BITS, text="text", ngrams="1,2")
    elif what in ("convert", "scale"):
        import streamcut

        with tempfile.TemporaryDirectory(dir=folder) as out:
            report = streamcut.convert(
                source, f"{out}/o.zarr", threads=threads, **ROLES,
                memory="500MB" if what == "scale" else "1GB",
            )  # fmt: skip
        rows, seconds = report.rows, report.seconds
    else:
        rows, seconds = {"duckdb": duckdb_numpy, "vw": wabbit, "hasher": hasher}[what](source, threads)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"rows": rows, "seconds": seconds, "bytes": source.stat().st_size, "peak": peak}


def in_a_process(what: str, folder: Path, threads: int, scale: int = 1) -> dict | None:
    command = [sys.executable, __file__, "--one", what, "--folder", folder, "--threads", threads, "--scales", scale]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "ARROW_NUM_THREADS": str(threads)}
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        print(f"{what:<10} {threads:>7}  failed: {done.stderr.strip().splitlines()[-1]}", flush=True)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--only", default="encode,convert,csv,text,duckdb,hasher,vw,scale")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--scales", default="1,4,16")
    parser.add_argument("--repeat", type=int, default=3, help="the best of so many")
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one(given.one, Path(given.folder), int(given.threads), int(given.scales))))
        return
    wanted, threads = given.only.split(","), [int(count) for count in given.threads.split(",")]
    with tempfile.TemporaryDirectory(prefix="bench-tables-") as name:
        folder = Path(name)
        write(folder, given.rows)
        print(
            f"{given.rows:,} rows x 11 columns\n{'what':<10} {'threads':>7} {'s':>8} {'rows/s':>12} {'MB/s':>7} {'peak MB':>8}",
            flush=True,
        )
        for what in wanted:
            if what == "scale":
                continue
            in_a_process(what, folder, 1)  # compiles, and warms the page cache
            for count in threads if what not in ("hasher", "vw") else [1]:
                runs = [run for _ in range(given.repeat) if (run := in_a_process(what, folder, count)) is not None]
                if not runs:
                    break
                best = min(runs, key=lambda run: run["seconds"])
                s = best["seconds"]
                speed = f"{best['rows'] / s:>12,.0f} {best['bytes'] / s / 1e6:>7.0f}"
                print(f"{what:<10} {count:>7} {s:>8.2f} {speed} {best['peak'] / 1e6:>8.0f}", flush=True)
        if "scale" in wanted:
            for scale in [int(number) for number in given.scales.split(",")]:
                if scale > 1:
                    write(folder, given.rows, scale)
                for count in threads:
                    run = in_a_process("scale", folder, count, scale)
                    if run is not None:
                        size = f"{run['rows']:>12,} rows"
                        print(
                            f"convert --memory 500MB x{scale:<3} threads {count}  {size}  peak {run['peak'] / 1e6:.0f} MB",
                            flush=True,
                        )


if __name__ == "__main__":
    main()
