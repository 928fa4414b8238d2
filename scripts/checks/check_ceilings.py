"""Whether commands stay within --memory on the inputs that are worst for it: peak resident memory over the ceiling, a line a run.

`convert` runs on each table first with 1MB, then with what its refusal names until it is done (a figure that would not do is told
as such), and once more with half as much again. `predict`, `evaluate`, `calibrate`, `report`, `verify` and `export` run on 1, 4
and 16 times the rows, of two and of 20 classes and of a ranking, with 1MB and then with what their refusal names.
Ends with code 1 when a peak is above its ceiling, when a command fails otherwise than with code 7, names no figure, or one that
would not do.

Usage: python scripts/checks/check_ceilings.py [--folder DIR] [--only NAME …] [--scale 1.0] [--rows 20000]
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp

from streamcut.foundation.units import format_bytes, parse_size

# The peak is the child's own: /proc/self/status begins anew with every program, ru_maxrss does not.
CHILD = """
import atexit, os, sys
from streamcut.foundation.systems import peak_bytes
out = os.environ["STREAMCUT_PEAK_FILE"]
atexit.register(lambda: open(out, "w").write(str(peak_bytes())))
from streamcut.cli import main
main()
"""
FIRST, DAMAGED, ABOVE = "1MB", "200MB", 1.5  # DAMAGED: for what is refused whatever the ceiling
_FIGURE = re.compile(r"(?:at least|--memory) (\d[\d.,]*\s?[kKMGT]?i?B)")


class Ran(NamedTuple):
    """A command that has ended: exit code, the most memory it had in bytes, its seconds of processor time, what it said."""

    code: int
    peak: int
    seconds: float
    said: str


def run(*command: str) -> Ran:
    """Run `streamcut` with these arguments in a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.NamedTemporaryFile() as peak:
        done = subprocess.run(
            [sys.executable, "-c", CHILD, *command],
            capture_output=True, text=True, env={**os.environ, "STREAMCUT_PEAK_FILE": peak.name},
        )  # fmt: skip
        most = int(Path(peak.name).read_text() or 0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Ran(done.returncode, most, seconds, done.stderr.strip())


def figure(said: str) -> int | None:
    """The memory that a refusal names, in bytes; the largest of several is meant for what was asked."""
    found = [parse_size(text.replace(" ", "").replace(",", "")) for text in _FIGURE.findall(said)]
    return max(found, default=None)


# --- the tables -----------------------------------------------------------------------------------------------------------


def long_strings(path: Path, scale: float, coded: bool = False) -> None:
    """A column of 200,000 different strings of 1 kB, each twice; `coded`: as numbers of a dictionary."""
    distinct = int(200_000 * scale)
    words = [f"{number:010d}" + "x" * 990 for number in range(distinct)]
    codes = pa.array(np.arange(2 * distinct) % distinct, pa.int32())
    url = pa.DictionaryArray.from_arrays(codes, words)
    label = pa.array(np.arange(2 * distinct) % 3 == 0).cast(pa.int8())
    pq.write_table(pa.table({"label": label, "url": url if coded else url.cast(pa.string())}), path)


def one_page(path: Path, scale: float) -> None:
    """One row group, each column one page, of 2 million keys."""
    table = _keys(int(2_000_000 * scale))
    pq.write_table(table, path, row_group_size=len(table), data_page_size=1 << 30, dictionary_pagesize_limit=1 << 30,
                   write_batch_size=len(table))  # fmt: skip


def many_keys(path: Path, scale: float) -> None:
    pq.write_table(_keys(int(2_000_000 * scale)), path)


def _keys(rows: int) -> pa.Table:
    rng = np.random.default_rng(0)
    users = pa.array([f"user{number:012d}" for number in rng.permutation(rows)])
    return pa.table({"user": users, "label": pa.array(rng.integers(0, 2, rows), pa.int8())})


def wide_csv(columns: int) -> Callable[[Path, float], None]:
    """600 rows of 20,000 columns of numbers, or as many cells of other columns."""

    def make(path: Path, scale: float) -> None:
        rng = np.random.default_rng(0)
        width = int(columns * scale)
        with open(path, "w") as file:
            file.write("label," + ",".join(f"c{i}" for i in range(width)) + "\n")
            for row in range(12_000_000 // columns):
                file.write(f"{row % 2}," + ",".join([f"{value:.3f}" for value in rng.random(width)]) + "\n")

    return make


def zeros_h5ad(path: Path, scale: float) -> None:
    """X/data is one chunk of gzip, 1.5 GB of zeros unpacked."""
    import h5py

    entries, rows = int(187_500_000 * scale) * 2, 1000
    with h5py.File(path, "w") as file:
        X = file.create_group("X")
        X.attrs["encoding-type"], X.attrs["shape"] = "csr_matrix", (rows, 1000)
        X.create_dataset("indptr", data=np.arange(rows + 1, dtype=np.int64))
        X.create_dataset("indices", data=np.zeros(rows, np.int32))
        data = X.create_dataset("data", (rows,), "f4", maxshape=(None,), chunks=(entries,), compression="gzip")
        data.id.write_direct_chunk((0,), _deflated_zeros(4 * entries))
        obs = file.create_group("obs")
        obs.attrs["column-order"] = ["label"]
        obs.create_dataset("label", data=np.arange(rows) % 2)
        file.create_group("var")


def _deflated_zeros(size: int) -> bytes:
    import zlib

    packer = zlib.compressobj(6)
    piece = bytes(1 << 20)
    whole = [packer.compress(piece) for _ in range(size >> 20)]
    return b"".join([*whole, packer.compress(bytes(size % (1 << 20))), packer.flush()])


def npz_of(**bombs: tuple[str, tuple[int, ...]]) -> Callable[[Path, float], None]:
    """A CSR matrix as SciPy saves it, with members of zeros in the place of some of its own: {name: (type, shape)}."""

    def make(path: Path, scale: float) -> None:
        X = sp.random_array((60, 20), density=0.2, format="csr", rng=np.random.default_rng(0))
        sp.save_npz(path, X)
        rows = path.with_suffix(".txt")
        rows.write_text("".join(f"{row % 2}\n" for row in range(60)))
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                kind, shape = bombs.get(name.removesuffix(".npy"), ("", ()))
                if not kind:
                    archive.writestr(name, content)
                    continue
                size = int(shape[0] * scale)
                with archive.open(name, "w", force_zip64=True) as member:
                    if kind == "header":  # which says that it is as long as this
                        member.write(b"\x93NUMPY\x02\x00" + struct.pack("<I", size))
                    else:
                        np.lib.format.write_array_header_1_0(member, {"descr": kind, "fortran_order": False, "shape": (size,)})
                        size *= np.dtype(kind).itemsize
                    for start in range(0, size, 1 << 20):
                        member.write(bytes(min(1 << 20, size - start)))

    return make


def gzip_of_zeros(path: Path, scale: float) -> None:
    """One line of 1 GB."""
    with gzip.open(path, "wb") as file:
        for _ in range(int(1000 * scale)):
            file.write(bytes([48]) * 10**6)


@dataclass(frozen=True)
class Table:
    """An input: its suffix, what makes it, the options of `convert`, and exit codes that may end it."""

    suffix: str
    make: Callable[[Path, float], None]
    options: tuple[str, ...]
    codes: tuple[int, ...] = (0,)


_USER = ("--label", "label", "--categorical", "user")
_URL = ("--label", "label", "--categorical", "url")
_ALL = ("--max-categories", "4000000")
_NPZ = ("--label", "{stem}.txt")
TABLES = {
    "long-strings": Table("parquet", long_strings, (*_URL, *_ALL)),
    "long-strings-hashed": Table("parquet", long_strings, (*_URL, "--hash-bits", "20")),
    "long-codes": Table("parquet", partial(long_strings, coded=True), (*_URL, *_ALL)),
    "long-codes-hashed": Table("parquet", partial(long_strings, coded=True), (*_URL, "--hash-bits", "20")),
    "one-page-hashed": Table("parquet", one_page, (*_USER, "--hash-bits", "22")),
    "one-page": Table("parquet", one_page, (*_USER, *_ALL)),
    "many-keys-hashed": Table("parquet", many_keys, (*_USER, "--hash-bits", "22")),
    "many-keys": Table("parquet", many_keys, (*_USER, *_ALL)),
    "columns-20000": Table("csv", wide_csv(20_000), ("--label", "label")),
    "columns-100000": Table("csv", wide_csv(100_000), ("--label", "label")),
    "h5ad-chunk": Table("h5ad", zeros_h5ad, ("--label", "label")),
    "npz-shape": Table("npz", npz_of(shape=("|i1", (400 * 10**6,))), _NPZ, (3,)),
    "npz-header": Table("npz", npz_of(data=("header", (1500 * 10**6,))), _NPZ, (3,)),
    "npz-indptr": Table("npz", npz_of(indptr=("<i4", (200 * 10**6,))), _NPZ, (3,)),
    "gzip-line": Table("svm.gz", gzip_of_zeros, (), (3,)),
}


def convert(folder: Path, name: str, scale: float, table: Table) -> bool:
    """Print what becomes of `table`; whether the promises were kept."""
    source = folder / f"{name}.{table.suffix}"
    if not source.exists():
        table.make(source, scale)
    options = [option.format(stem=source.with_suffix("")) for option in table.options]
    size, kept, done = parse_size(DAMAGED if table.codes == (3,) else FIRST), True, 0
    for _ in range(8):
        ran = run("convert", str(source), str(folder / f"{name}.zarr"), "--force", "--quiet", *options, "--memory", f"{size}B")
        larger = figure(ran.said) if ran.code == 7 else None
        within = ran.peak <= size or (ran.code == 7 and size == parse_size(FIRST))
        good = within and (ran.code in table.codes or (larger is not None and larger > size))
        kept &= good
        print(
            f"{name:>20} {format_bytes(source.stat().st_size):>8} ceiling {format_bytes(size):>8} "
            f"peak {format_bytes(ran.peak):>8} {ran.peak / size:7.2f} code {ran.code} {ran.seconds:6.1f} s "
            f"{'' if good else 'WRONG'}"
            f"{'' if ran.code == 0 else '  ' + ran.said.splitlines()[-1][-230:] if ran.said else ''}",
            flush=True,
        )
        if ran.code == 7 and larger is not None and larger > size:
            size = larger
        elif ran.code in table.codes and not done:
            done, size = 1, int(ABOVE * size)
            if ran.code != 0:
                break
        else:
            break
    return kept


# --- commands that use a model --------------------------------------------------------------------------------------------

TIMES = (1, 4, 16)
TASKS = {"2 classes": (2, ()), "20 classes": (20, ()), "ranking": (4, ("--task", "ranking"))}  # labels, options of `train`
COMMANDS = {  # name: arguments; {out} is a file of its own
    "predict": ("{model}", "{data}", "--answer", "scores", "-o", "{out}.txt"),
    "evaluate": ("{model}", "{data}"),
    "calibrate": ("{model}", "{data}", "-o", "{out}.npz"),
    "report": ("{model}", "--data", "{data}", "-o", "{out}.html"),
    "verify": ("{model}", "{data}"),
    "export": ("{model}", "{out}.json"),
}


def store_of(path: Path, rows: int, classes: int) -> None:
    """Rows of 30 features of 20,000, those of a class more often among them."""
    from streamcut import create

    rng, block = np.random.default_rng(0), 5000
    with create(path, 20_000, shard_nnz=1 << 18, force=True) as out:
        for start in range(0, rows, block):
            y = rng.integers(0, classes, min(block, rows - start)).astype(float)
            columns = np.sort(rng.integers(0, 20_000, (len(y), 30)), axis=1)
            columns[:, :5] = (y[:, None] * 50 + rng.integers(0, 50, (len(y), 5))).astype(int)
            X = sp.csr_array(
                (np.ones(columns.size, np.float32), columns.ravel(), np.arange(0, columns.size + 1, 30)), (len(y), 20_000)
            )
            X.sum_duplicates()
            out.append(X, y)


def commands(folder: Path, rows: int, task: str) -> bool:
    """Print the ceiling that each command asks for, and its peak under it, for more and more rows; whether all were kept."""
    labels, options = TASKS[task]
    stores = {times: folder / f"rows-{labels}-{times}.zarr" for times in TIMES}
    for times, path in stores.items():
        if not path.exists():
            store_of(path, times * rows, labels)
    model, kept = folder / f"model-{labels}.npz", True
    trained = run("train", str(stores[1]), "--output", str(model), "--force", "--quiet", "--max-passes", "3", *options)
    if trained.code:
        sys.exit(trained.said)
    for name, arguments in COMMANDS.items():
        if name == "calibrate" and task == "ranking":  # which has no probabilities
            continue
        shown = []
        for times, path in stores.items():
            names = {"model": model, "data": path, "out": folder / f"out-{name}-{labels}"}
            line = [name, *(argument.format(**names) for argument in arguments), *["--force"] * (name != "evaluate")]
            refused = run(*line, "--memory", FIRST)
            ceiling = figure(refused.said)
            if refused.code != 7 or ceiling is None:
                sys.exit(f"{name}: {refused.said}")
            ran = run(*line, "--memory", f"{ceiling}B")
            good = ran.code == 0 and ran.peak <= ceiling
            kept &= good
            shown.append(f"{times}x {format_bytes(ran.peak)} of {format_bytes(ceiling)}{'' if good else f' WRONG {ran.said}'}")
        print(f"{name:>12} {task:>10}, {rows:,} rows: {'  '.join(shown)}", flush=True)
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="for the tables; otherwise a temporary one")
    parser.add_argument("--only", nargs="+", choices=[*TABLES, "commands"])
    parser.add_argument("--rows", type=int, default=20_000, help="of the smallest data for commands that use a model")
    parser.add_argument("--scale", type=float, default=1.0)
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(dir="/var/tmp"))
    folder.mkdir(parents=True, exist_ok=True)
    kept = True
    try:
        for name in given.only or [*TABLES, "commands"]:
            if name == "commands":
                for task in TASKS:
                    kept &= commands(folder, given.rows, task)
            else:
                kept &= convert(folder, name, given.scale, TABLES[name])
    finally:
        if given.folder is None:
            shutil.rmtree(folder)
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
