"""Files to rows: svmlight text next to scikit-learn and svmloader, tables next to DuckDB with NumPy, FeatureHasher and VW.

Text: the real sets a9a (every value 1) and reuters_moneyfx (15 digits) again and again up to --megabytes, and synthetic rows with
values of 7 and 17 digits, to CSR arrays: ours block by block as float32. Tables: --rows rows of a label, 8 categories of 10 to
100,000 values with 5 % missing and 2 numbers, hashed into 2^22 features:

    encode    our rows from Parquet, nothing written; csv: from CSV; text: from texts of 10 words, words and bigrams
    convert   our store from Parquet, under --memory 1GB, compressed, with checksums
    duckdb    hash() of every category and the numbers by DuckDB, CSR arrays by NumPy (its own hashes)
    hasher    scikit-learn's FeatureHasher on lists of strings, which are made before
    vw        Vowpal Wabbit's own parser on its own text, --noop, without a cache

Readers take turns, each run of a table in a process of its own with so many processors, which has read 1,000 rows before, so that
modules and kernels are loaded; medians of --repeat runs, after one. Seconds are by the clock, MB of the file, the peak is that of
the process.

    python scripts/benchmarks/bench_reading.py [--only svmlight,encode,…] [--rows 2000000] [--threads 1,2] [--megabytes 100]
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from cases import DATA

SIZES = (10, 30, 100, 300, 1000, 5000, 20_000, 100_000)
BITS = 22
BLOCK = 100_000
WORDS = [f"c{k}" for k in range(len(SIZES))]
ROLES = {"labels": "click", "hash_bits": BITS, "categorical": WORDS, "numeric": "price,age"}
TABLES = ("encode", "convert", "csv", "text", "duckdb", "hasher", "vw")
FILES = {"csv": "big.csv", "text": "text.parquet", "vw": "big.vw"}


def synthetic(digits: int) -> bytes:
    """2,000 rows of 60 features of 100,000, values normal with `digits` significant digits."""
    generator, lines = np.random.default_rng(0), []
    for _ in range(2000):
        indices = np.unique(generator.integers(1, 100_001, 60))
        values = generator.normal(size=len(indices))
        lines.append("1 " + " ".join(f"{j}:{v:.{digits}g}" for j, v in zip(indices, values, strict=True)) + "\n")
    return "".join(lines).encode()


def svmlight(folder: Path, size: int, threads: list[int], repeat: int) -> None:
    """The table of readers of svmlight text."""
    from sklearn.datasets import load_svmlight_file
    from svmloader import load_svmfile

    from streamcut.io.text.svmlight import SvmlightSource

    def ours(path: str, count: int) -> None:
        for _ in SvmlightSource([path], threads=count).blocks():
            pass

    readers: dict[str, Callable[[str], object]] = {
        "scikit-learn": lambda path: load_svmlight_file(path, dtype=np.float32, zero_based=False),
        "svmloader": lambda path: load_svmfile(path, dtype="f", ltype="d", zero_based=False),
        **{f"streamcut, {count} threads": lambda path, count=count: ours(path, count) for count in threads},
    }
    texts = {
        name: lambda name=name: lzma.decompress((DATA / name / "train.svm.xz").read_bytes())
        for name in ("a9a", "reuters_moneyfx")
    }
    texts |= {f"{digits} digits": lambda digits=digits: synthetic(digits) for digits in (7, 17)}
    print(f"{'text':16} {'reader':21} {'MB/s':>6} {'× scikit-learn':>15} {'× svmloader':>12}")
    for name, make in texts.items():
        text, path = make(), folder / "text.svm"
        path.write_bytes(text * -(-size // len(text)))
        seconds: dict[str, list[float]] = {reader: [] for reader in readers}
        for number in range(repeat + 1):
            for reader, read in readers.items():
                started = time.perf_counter()
                read(str(path))
                if number:
                    seconds[reader].append(time.perf_counter() - started)
        middle = {reader: float(np.median(times)) for reader, times in seconds.items()}
        for reader, taken in middle.items():
            ratios = f"{middle['scikit-learn'] / taken:15.1f} {middle['svmloader'] / taken:12.1f}"
            print(f"{name:16} {reader:21} {path.stat().st_size / taken / 1e6:6.0f} {ratios}", flush=True)


def table(rows: int, seed: int) -> pa.Table:
    """`rows` rows; the same for the same seed."""
    rng, columns, score = np.random.default_rng(seed), {}, np.zeros(rows)
    for number, size in enumerate(SIZES):
        code = (size * rng.random(rows) ** 2).astype(np.int64)
        score += np.sin(code + number) * 0.5
        words = pa.array([f"v{value:x}" for value in range(size)])
        columns[WORDS[number]] = pa.DictionaryArray.from_arrays(
            pa.array(code, mask=rng.random(rows) < 0.05), words
        ).dictionary_decode()
    for name in ("price", "age"):
        columns[name] = pa.array(rng.random(rows).round(4), mask=rng.random(rows) < 0.05)
    columns["click"] = pa.array((score + rng.standard_normal(rows) > 1).astype(np.int8))
    return pa.table(columns)


def write(folder: Path, rows: int, wanted: list[str]) -> None:
    """big.parquet and, where they are wanted, big.csv, text.parquet and big.vw."""
    with pq.ParquetWriter(folder / "big.parquet", table(1, 0).schema) as out:
        for start in range(0, rows, BLOCK):
            out.write_table(table(min(BLOCK, rows - start), start))
    whole = pq.read_table(folder / "big.parquet")
    if "csv" in wanted:
        pa.csv.write_csv(whole, folder / "big.csv")
    if "text" in wanted:
        rng = np.random.default_rng(1)
        words = np.array([f"word{number:x}" for number in range(50_000)], dtype=object)
        chosen = words[(50_000 * rng.random((rows // 4, 10)) ** 3).astype(np.int64)]
        texts = pa.table({"text": [" ".join(row) for row in chosen.tolist()], "click": rng.integers(0, 2, rows // 4)})
        pq.write_table(texts, folder / "text.parquet", row_group_size=BLOCK)
    if "vw" in wanted:
        with open(folder / "big.vw", "w") as out:
            for batch in whole.to_batches(BLOCK):
                for *values, price, age, click in zip(
                    *(batch.column(name).to_pylist() for name in batch.schema.names), strict=True
                ):
                    cells = [f"{name}={value}" for name, value in zip(WORDS, values, strict=True) if value]
                    cells += [f"{name}:{value}" for name, value in (("price", price), ("age", age)) if value is not None]
                    out.write(f"{2 * click - 1} | {' '.join(cells)}\n")


def encoded(source: Path, threads: int, **options: object) -> int:
    from streamcut.io.conversion.convert import Work

    work = Work(str(source), str(source.with_name("never.zarr")), {"threads": threads, **options})
    return sum(chunk.n_rows for chunk, _ in work.source.blocks())


def converted(source: Path, threads: int) -> int:
    import streamcut

    with tempfile.TemporaryDirectory(dir=source.parent) as out:
        return streamcut.convert(source, f"{out}/o.zarr", threads=threads, memory="1GB", **ROLES).rows


def duckdb_numpy(source: Path, threads: int) -> int:
    import duckdb
    import scipy.sparse as sp

    link, mask = duckdb.connect(config={"threads": threads}), (1 << BITS) - 1
    hashed = ", ".join(f"(hash('{c}=' || coalesce({c}, '')) & {mask})::int AS {c}" for c in WORDS)
    query = f"SELECT {hashed}, coalesce(price, 0) AS price, coalesce(age, 0) AS age FROM '{source}'"
    columns = link.execute(query).fetchnumpy()
    rows = len(columns["c0"])
    indices, data = np.empty((rows, 10), np.int32), np.ones((rows, 10), np.float32)
    for k, name in enumerate(WORDS):
        indices[:, k] = columns[name]
    indices[:, 8:] = 0, 1
    data[:, 8], data[:, 9] = columns["price"], columns["age"]
    X = sp.csr_array((data.ravel(), indices.ravel(), np.arange(0, 10 * rows + 1, 10)), shape=(rows, 1 << BITS))
    X.sum_duplicates()
    return X.shape[0]


def wabbit(source: Path, _: int) -> int:
    from vowpalwabbit import pyvw

    engine = pyvw.Workspace(f"-d {source} --noop -b {BITS} --quiet")
    engine.run_parser()
    engine.finish()
    return pq.ParquetFile(source.with_name("big.parquet")).metadata.num_rows


def hasher(source: Path) -> tuple[int, float]:
    """(rows, seconds of hashing alone)."""
    from sklearn.feature_extraction import FeatureHasher

    encoder, rows, seconds = FeatureHasher(1 << BITS, input_type="string", alternate_sign=False), 0, 0.0
    for batch in pq.ParquetFile(source).iter_batches(BLOCK, columns=WORDS):
        lists = [[f"{name}={value}" for value in batch.column(name).to_pylist()] for name in WORDS]
        records = list(zip(*lists, strict=True))
        started = time.perf_counter()
        rows += encoder.transform(records).shape[0]
        seconds += time.perf_counter() - started
        if rows >= 500_000:
            break
    return rows, seconds


def one(what: str, folder: Path, threads: int) -> dict[str, float]:
    """Run `what` once: rows, seconds, bytes of its file, and the peak of this process."""
    from streamcut.foundation.systems import peak_bytes

    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    name = FILES.get(what, "big.parquet")
    source = folder / name
    works: dict[str, Callable[[Path, int], int]] = {
        "encode": lambda source, threads: encoded(source, threads, **ROLES),
        "csv": lambda source, threads: encoded(source, threads, **ROLES),
        "text": lambda source, threads: encoded(source, threads, labels="click", hash_bits=BITS, text="text", ngrams="1,2"),
        "convert": converted, "duckdb": duckdb_numpy, "vw": wabbit,
    }  # fmt: skip
    if what == "hasher":
        rows, seconds = hasher(source)
    else:
        works[what](folder / "small" / name, threads)
        started = time.perf_counter()
        rows = works[what](source, threads)
        seconds = time.perf_counter() - started
    return {"rows": rows, "seconds": seconds, "bytes": source.stat().st_size, "peak": peak_bytes()}


def tables(folder: Path, wanted: list[str], threads: list[int], repeat: int) -> None:
    """The table of encoders."""
    print(f"{'what':<10} {'threads':>7} {'s':>8} {'rows/s':>12} {'MB/s':>7} {'peak MB':>8} {'encode × faster':>16}")
    encode: dict[int, float] = {}
    for what in wanted:
        for count in threads if what not in ("hasher", "vw") else threads[:1]:
            command = [sys.executable, __file__, "--one", what, "--folder", str(folder), "--threads", str(count)]
            environment = {**os.environ, "OMP_NUM_THREADS": str(count), "ARROW_NUM_THREADS": str(count)}
            runs = []
            for _ in range(repeat + 1):
                done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
                if done.returncode:
                    print(f"{what:<10} {count:>7}  failed: {done.stderr.strip().splitlines()[-1]}", flush=True)
                    break
                runs.append(json.loads(done.stdout.splitlines()[-1]))
            if len(runs) <= repeat:
                continue
            middle = sorted(runs[1:], key=lambda run: run["seconds"])[repeat // 2]
            rate, speed = middle["rows"] / middle["seconds"], middle["bytes"] / middle["seconds"] / 1e6
            if what == "encode":
                encode[count] = rate
            times = f"{encode[count] / rate:16.2f}" if count in encode else ""
            print(
                f"{what:<10} {count:>7} {middle['seconds']:>8.2f} {rate:>12,.0f} {speed:>7.0f} "
                f"{max(run['peak'] for run in runs) / 1e6:>8.0f} {times}", flush=True,
            )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(("svmlight", *TABLES)))
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(one(args.one, Path(args.folder), int(args.threads))))
        return
    wanted, threads = args.only.split(","), [int(count) for count in args.threads.split(",")]
    with tempfile.TemporaryDirectory(prefix="bench-reading-") as name:
        if "svmlight" in wanted:
            svmlight(Path(name), args.megabytes * 10**6, threads, args.repeat)
        if of_tables := [what for what in wanted if what in TABLES]:
            small = Path(name) / "small"
            small.mkdir()
            write(small, 1000, of_tables)
            write(Path(name), args.rows, of_tables)
            tables(Path(name), of_tables, threads, args.repeat)


if __name__ == "__main__":
    main()
