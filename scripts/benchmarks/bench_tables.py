"""Tables to features: rows and bytes per second and peak memory, next to DuckDB with NumPy, FeatureHasher and Vowpal Wabbit.

    python scripts/benchmarks/bench_tables.py                       # everything, 2 million rows: about 7 minutes
    python scripts/benchmarks/bench_tables.py --rows 100000         # a look: two minutes
    python scripts/benchmarks/bench_tables.py --only encode,convert --threads 1,2

The table is synthetic: a label, 8 categories of 10 to 100,000 values with 5 % missing, 2 numbers, hashed into 2^22 features.
Every line is the best of several runs, each in a process of its own that may use as many processors as it has threads (helper
threads count, a library's and ours), after one that compiles; seconds are of the work alone, without imports. What each one does:

    encode      our rows from Parquet, in memory block by block, nothing written
    convert     our store from Parquet, compressed, with checksums, every file on the disk before it has its name
    csv         our rows from CSV; text: from texts of 10 words, words and bigrams
    duckdb      hash() of every category and the numbers by DuckDB on so many threads, CSR arrays by NumPy (its own hashes)
    hasher      scikit-learn's FeatureHasher on lists of strings, on one thread as ever, for 500,000 rows; making lists does not
                count
    vw          Vowpal Wabbit's own parser on its own text, --noop, without a cache

MB/s are of the bytes of the file, for `text` of the bytes of the texts in it; peak is the most that a process had in memory, with
its imports. `scale`: peak memory of `convert --memory 500MB` on tables `--scales` times as long, which has to be below that.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute
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
    if scale > 1:  # the same rows again and again
        once = pq.ParquetFile(folder / "big1.parquet")
        with pq.ParquetWriter(name, once.schema_arrow) as out:
            for _ in range(scale):
                for batch in once.iter_batches(BLOCK):
                    out.write_batch(batch)
        return
    with pq.ParquetWriter(name, table(1, 0).schema) as out:
        for start in range(0, rows, BLOCK):
            out.write_table(table(min(BLOCK, rows - start), start))
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
        if rows >= 500_000:
            break
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
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
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
    size, most = source.stat().st_size, peak()
    if what == "text":
        size = int(pa.compute.sum(pa.compute.binary_length(pq.read_table(source, columns=["text"]).column("text"))).as_py())
    return {"rows": rows, "seconds": seconds, "bytes": size, "peak": most}


def peak() -> int:
    """The most bytes that this process had in memory; getrusage would count those of the process that started it, too."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) * 1024


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
        print(f"{given.rows:,} rows x 11 columns; Python {sys.version.split()[0]}, pyarrow {pa.__version__}")
        print(f"{'what':<10} {'threads':>7} {'s':>8} {'rows/s':>12} {'MB/s':>7} {'peak MB':>8} {'x threads':>9}", flush=True)
        found = {what: measured(what, folder, threads, given.repeat) for what in wanted if what != "scale"}
        compare({what: runs for what, runs in found.items() if runs})
        if "scale" in wanted:
            scale_up(folder, given.rows, [int(number) for number in given.scales.split(",")], threads)


def measured(what: str, folder: Path, threads: list[int], repeat: int) -> dict[int, float]:
    """{threads: seconds a row}; prints a line for each."""
    in_a_process(what, folder, 1)  # compiles, and warms the page cache
    seconds: dict[int, float] = {}
    for count in threads if what not in ("hasher", "vw") else [1]:
        runs = [run for _ in range(repeat) if (run := in_a_process(what, folder, count)) is not None]
        if not runs:
            break
        best = min(runs, key=lambda run: run["seconds"])
        s, seconds[count] = best["seconds"], best["seconds"] / best["rows"]
        speed = f"{best['rows'] / s:>12,.0f} {best['bytes'] / s / 1e6:>7.0f} {max(run['peak'] for run in runs) / 1e6:>8.0f}"
        print(f"{what:<10} {count:>7} {s:>8.2f} {speed} {seconds[min(seconds)] / seconds[count]:>9.2f}", flush=True)
    return seconds


def compare(found: dict[str, dict[int, float]]) -> None:
    """How many times as long the others take as `encode`, and `vw` as `convert`, with as many threads or as many as they have."""
    for ours, others in (("encode", ("duckdb", "hasher")), ("convert", ("duckdb", "vw"))):
        for other in others:
            for count, seconds in found.get(ours, {}).items():
                if other in found:
                    theirs = found[other].get(count, found[other][1])
                    print(f"{other} / {ours}, {count} threads: {theirs / seconds:.2f}", flush=True)


def scale_up(folder: Path, rows: int, scales: list[int], threads: list[int]) -> None:
    for scale in scales:
        if scale > 1:
            write(folder, rows, scale)
        for count in threads:
            run = in_a_process("scale", folder, count, scale)
            if run is not None:
                size = f"{run['rows']:>12,} rows {run['seconds']:>7.1f} s"
                print(f"convert --memory 500MB x{scale:<3} threads {count}  {size}  peak {run['peak'] / 1e6:.0f} MB", flush=True)
        if scale > 1:
            (folder / f"big{scale}.parquet").unlink()


if __name__ == "__main__":
    main()
