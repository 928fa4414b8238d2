"""Whether commands stay within --memory: peak resident memory over the ceiling, a line a run.

`convert` runs on inputs that are worst for it, `train` on 26 kinds of linear and 8 of kernel training, `predict`, `evaluate`,
`calibrate` and `verify` on models of two and 20 classes and of rankings, with 1, 4 and 16 times the rows.
Each is asked with 1MB, which is refused, then with the least that the refusal names; `train` also with the least that it names
after an option. Ends with code 1 when a peak is above its ceiling, when a command fails otherwise than by this refusal, or when
a refusal names no figure or one that does not do.

    python scripts/checks/check_memory.py [--only convert,train,commands] [--names NAME,…] [--features 12,17,22] [--classes 5]
                                          [--rows 20000] [--scale 1.0] [--most 16GB]
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp

import streamcut
from streamcut.foundation.units import format_bytes, parse_size

# The peak is the child's own: /proc/self/status begins anew with every program, ru_maxrss does not.
CHILD = """
import atexit, os
from streamcut.foundation.systems import peak_bytes
out = os.environ["STREAMCUT_PEAK_FILE"]
atexit.register(lambda: open(out, "w").write(str(peak_bytes())))
from streamcut.cli import main
main()
"""
FIRST, DAMAGED = "1MB", 200 * 10**6  # ceilings: of refusals, of input that is refused whatever the ceiling
NO_MEMORY, BAD_INPUT = 7, 3
_FIGURE = re.compile(r"(?:at least|--memory) (\d[\d.,]*\s?[kKMGT]?i?B)")
_OTHER = re.compile(r"The least is ([\d.]+ [kMG]B), with (--.*)$")
RBF = "--kernel rbf --gamma 0.1"
BUDGET = "--budget 20 --set epochs=0.5"
TRAININGS = {  # name: labels (0: numbers), options of `train`
    "hinge": (2, ""), "logistic": (2, "--loss logistic"), "squared-hinge": (2, "--loss squared-hinge"), "l1": (2, "--l1 1"),
    "std-scale": (2, "--scale std"), "newton": (2, "--solver newton --loss logistic"),
    "working-set": (2, "--loss logistic --l1-only 1%"), "ocas": (2, "--solver ocas"),
    "ocas-exact": (2, "--solver ocas --set cut=exact"), "cpa": (2, "--solver cpa"), "f1": (2, "--loss f1"),
    "prec@k": (2, "--loss prec@k --set k=10%"), "roc-area": (2, "--task roc-area"), "one-class": (1, "--task one-class"),
    "squared": (0, "--task regression"), "huber": (0, "--task regression --loss huber"),
    "quantile": (0, "--task regression --loss quantile"), "epsilon": (0, "--task regression --loss epsilon-insensitive"),
    "poisson": (5, "--task regression --loss poisson"), "crammer-singer": (5, "--task multiclass"),
    "softmax": (5, "--task multiclass --loss softmax"), "one-vs-rest": (5, "--task multiclass --strategy one-vs-rest"),
    "nystroem": (2, f"{RBF} --nystroem 50"), "fourier": (2, f"{RBF} --fourier 100"),
    "sampled-constant": (2, "--solver sampled-constant --set samples=50"),
    "sampled-linear": (2, f"--solver sampled-linear {RBF} --set samples=50"),
    "bsca": (2, f"--solver bsca {RBF} {BUDGET}"), "bsca-project": (2, f"--solver bsca --kernel poly --gamma 0.1 {BUDGET}"),
    "bsca-classes": (5, f"--task multiclass --solver bsca {RBF} {BUDGET}"),
    "bsca-numbers": (0, f"--task regression --solver bsca {RBF} {BUDGET}"), "bsgd": (2, f"--solver bsgd {RBF} {BUDGET}"),
    "smo": (2, f"--solver smo {RBF} --max-time 3s"), "sbp": (2, f"--solver sbp {RBF} --max-time 3s --bias 0"),
    "sdca": (2, f"--solver sdca {RBF} --max-time 3s --bias 0"),
}  # fmt: skip
PASSES = {name: [] if name[:4] in ("bsca", "bsgd", "smo", "sbp", "sdca") else ["--max-passes", "3"] for name in TRAININGS}
TIMES = (1, 4, 16)
TASKS = {"2 classes": (2, ()), "20 classes": (20, ()), "ranking": (4, ("--task", "ranking"))}
COMMANDS = {  # name: arguments; {out} is a file of its own
    "predict": ("{model}", "{data}", "--answer", "scores", "-o", "{out}.txt", "--force"),
    "evaluate": ("{model}", "{data}"),
    "calibrate": ("{model}", "{data}", "-o", "{out}.npz", "--force"),
    "verify": ("{model}", "{data}", "--force"),
}


class Ran(NamedTuple):
    """A command that has ended: exit code, the most memory it had in bytes, what it said."""

    code: int
    peak: int
    said: str


def run(*command: str) -> Ran:
    """Run `streamcut` with these arguments in a process of its own."""
    with tempfile.NamedTemporaryFile() as peak:
        environment = {**os.environ, "STREAMCUT_PEAK_FILE": peak.name}
        done = subprocess.run([sys.executable, "-c", CHILD, *command], capture_output=True, text=True, env=environment)
        return Ran(done.returncode, int(Path(peak.name).read_text() or 0), done.stderr.strip())


def figure(said: str) -> int | None:
    """The memory that a refusal names, in bytes; the largest of several is meant for what was asked."""
    return max((parse_size(text.replace(" ", "").replace(",", "")) for text in _FIGURE.findall(said)), default=None)


def least(name: str, command: list[str], most: int, codes: tuple[int, ...] = (0,), tries: int = 1) -> bool:
    """Ask for the least, run with it, and print both; whether all was kept. Input may take `tries`: a dictionary
    that is too large is seen as it grows, and its refusal names no figure."""
    runs: list[str] = []
    refused = run(*command, "--memory", FIRST)
    size = figure(refused.said) if codes == (0,) else DAMAGED
    if size is None or (codes == (0,) and refused.code != NO_MEMORY):
        print(f"{name:>44} WRONG code {refused.code} {refused.said[-300:]}", flush=True)
        return False
    asked, kept = [(size, [])], True
    if other := _OTHER.search(refused.said):
        asked.append((int(1.01 * parse_size(other[1].replace(" ", ""))), other[2].split()))  # the figure is rounded
    for size, more in asked:
        for left in reversed(range(tries)):
            if size > most:
                runs.append(f"{' '.join(more)} {format_bytes(size)} not run")
                break
            ran = run(*command, *more, "--memory", f"{size}B")
            if ran.peak > size:  # the first run compiled kernels, which may take more
                ran = run(*command, *more, "--memory", f"{size}B")
            larger = (figure(ran.said) or 2 * size) if ran.code == NO_MEMORY and left else None
            good = ran.peak <= size and (ran.code in codes or (larger is not None and larger > size))
            kept &= good
            said = f" WRONG code {ran.code} {ran.said[-300:]}" * (not good)
            runs.append(f"{' '.join(more)} {format_bytes(size)} peak {ran.peak / size:.2f}{said}")
            if not good or larger is None:
                break
            size = larger
    print(f"{name:>44} {' | '.join(runs)}", flush=True)
    return kept


# --- inputs that are worst for `convert` ------------------------------------------------------------------------------------


def long_strings(path: Path, scale: float, coded: bool = False) -> None:
    """A column of 200,000 different strings of 1 kB, each twice; `coded`: as numbers of a dictionary."""
    distinct = int(200_000 * scale)
    words = [f"{number:010d}" + "x" * 990 for number in range(distinct)]
    url = pa.DictionaryArray.from_arrays(pa.array(np.arange(2 * distinct) % distinct, pa.int32()), words)
    label = pa.array(np.arange(2 * distinct) % 3 == 0).cast(pa.int8())
    pq.write_table(pa.table({"label": label, "url": url if coded else url.cast(pa.string())}), path)


def many_keys(path: Path, scale: float, one_page: bool = False) -> None:
    """2 million keys; `one_page`: in one row group, each column one page."""
    rng, rows = np.random.default_rng(0), int(2_000_000 * scale)
    users = pa.array([f"user{number:012d}" for number in rng.permutation(rows)])
    table = pa.table({"user": users, "label": pa.array(rng.integers(0, 2, rows), pa.int8())})
    page = {"row_group_size": rows, "data_page_size": 1 << 30, "dictionary_pagesize_limit": 1 << 30, "write_batch_size": rows}
    pq.write_table(table, path, **page if one_page else {})


def wide_csv(path: Path, scale: float, columns: int) -> None:
    """600 rows of 20,000 columns of numbers, or as many cells of other columns."""
    rng, width = np.random.default_rng(0), int(columns * scale)
    with open(path, "w") as file:
        file.write("label," + ",".join(f"c{i}" for i in range(width)) + "\n")
        for row in range(12_000_000 // columns):
            file.write(f"{row % 2}," + ",".join([f"{value:.3f}" for value in rng.random(width)]) + "\n")


def npz_of(path: Path, scale: float, member: str, kind: str, count: int) -> None:
    """A CSR matrix as SciPy saves it, with zeros in the place of one member, or a header that says that it is so long."""
    sp.save_npz(path, sp.random_array((60, 20), density=0.2, format="csr", rng=np.random.default_rng(0)))
    path.with_suffix(".txt").write_text("".join(f"{row % 2}\n" for row in range(60)))
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    size = int(count * scale)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            if name != f"{member}.npy":
                archive.writestr(name, content)
                continue
            with archive.open(name, "w", force_zip64=True) as out:
                if kind == "header":
                    out.write(b"\x93NUMPY\x02\x00" + struct.pack("<I", size))
                else:
                    np.lib.format.write_array_header_1_0(out, {"descr": kind, "fortran_order": False, "shape": (size,)})
                    size *= np.dtype(kind).itemsize
                for start in range(0, size, 1 << 20):
                    out.write(bytes(min(1 << 20, size - start)))


def gzip_of_zeros(path: Path, scale: float) -> None:
    """One line of 1 GB."""
    with gzip.open(path, "wb") as file:
        for _ in range(int(1000 * scale)):
            file.write(bytes([48]) * 10**6)


_KEYS, _HASHED, _ALL = ("--label", "label", "--categorical", "user"), ("--hash-bits", "22"), ("--max-categories", "4000000")
_URL, _NPZ = ("--label", "label", "--categorical", "url"), ("--label", "{stem}.txt")
INPUTS: dict[str, tuple[str, Callable[[Path, float], None], tuple[str, ...], tuple[int, ...]]] = {
    "long-strings": ("parquet", long_strings, (*_URL, *_ALL), (0,)),
    "long-codes-hashed": ("parquet", partial(long_strings, coded=True), (*_URL, "--hash-bits", "20"), (0,)),
    "one-page-hashed": ("parquet", partial(many_keys, one_page=True), (*_KEYS, *_HASHED), (0,)),
    "many-keys": ("parquet", many_keys, (*_KEYS, *_ALL), (0,)),
    "columns-20000": ("csv", partial(wide_csv, columns=20_000), ("--label", "label"), (0,)),
    "npz-shape": ("npz", partial(npz_of, member="shape", kind="|i1", count=400 * 10**6), _NPZ, (BAD_INPUT,)),
    "npz-header": ("npz", partial(npz_of, member="data", kind="header", count=15 * 10**8), _NPZ, (BAD_INPUT,)),
    "gzip-line": ("svm.gz", gzip_of_zeros, (), (BAD_INPUT,)),
}  # fmt: skip


# --- what is run ------------------------------------------------------------------------------------------------------------


def store_of(path: Path, rows: int, labels: int, width: int, used: int) -> Path:
    """Rows of 30 features of `width`, of which `used` occur, those of a label more often among them; made if it is not there."""
    if path.exists():
        return path
    rng, block = np.random.default_rng(0), 5000
    features = np.sort(rng.choice(width, used, replace=False))
    with streamcut.create(path, width, shard_nnz=1 << 17, force=True) as out:
        for start in range(0, rows, block):
            n = min(block, rows - start)
            y = rng.standard_normal(n) if labels == 0 else rng.integers(0, labels, n).astype(float)
            columns = rng.integers(0, used, (n, 30))
            columns[:, :5] = np.minimum(np.clip(y, 0, 19).astype(int)[:, None] * 50 + rng.integers(0, 50, (n, 5)), used - 1)
            X = sp.csr_array((np.ones(n * 30, np.float32), features[columns.ravel()], np.arange(0, n * 30 + 1, 30)), (n, width))
            X.sum_duplicates()
            out.append(X, y)
    return path


def converts(folder: Path, args: argparse.Namespace) -> Iterator[bool]:
    for name, (suffix, make, options, codes) in INPUTS.items():
        if not args.names or name in args.names:
            source = folder / f"{name}.{suffix}"
            make(source, args.scale)
            more = [option.format(stem=source.with_suffix("")) for option in options]
            command = ["convert", str(source), str(folder / f"{name}.zarr"), "--force", "--quiet", *more]
            yield least(name, command, args.most, codes, tries=8)


def trains(folder: Path, args: argparse.Namespace) -> Iterator[bool]:
    for power, name in product(args.features, args.names or TRAININGS):
        labels, options = TRAININGS[name]
        for classes in args.classes if "multiclass" in options else [labels]:
            width = 1 << power
            store = store_of(folder / f"{power}-{classes}.zarr", args.rows, classes, width, max(30, width // 20))
            command = [
                "train",
                str(store),
                "--output",
                str(folder / "m.npz"),
                "--force",
                "--quiet",
                *options.split(),
                *PASSES[name],
            ]
            yield least(f"2^{power}, {classes} classes, {name}", command, args.most)


def commands(folder: Path, args: argparse.Namespace) -> Iterator[bool]:
    for task, (labels, options) in TASKS.items():
        stores = [store_of(folder / f"c-{labels}-{times}.zarr", times * args.rows, labels, 20_000, 20_000) for times in TIMES]
        model = folder / f"model-{labels}.npz"
        made = run("train", str(stores[0]), "--output", str(model), "--force", "--quiet", "--max-passes", "3", *options)
        if made.code:
            sys.exit(made.said)
        for (name, arguments), (times, store) in product(COMMANDS.items(), zip(TIMES, stores, strict=True)):
            if (name != "calibrate" or task != "ranking") and (not args.names or name in args.names):
                names = {"model": model, "data": store, "out": folder / f"out-{name}"}
                line = [name, *(argument.format(**names) for argument in arguments)]
                yield least(f"{name}, {task}, {times} × {args.rows:,} rows", line, args.most)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    whole = lambda text: [int(number) for number in text.split(",")]  # noqa: E731
    parser.add_argument("--only", type=lambda text: text.split(","), default=["convert", "train", "commands"])
    parser.add_argument("--names", type=lambda text: text.split(","), help="inputs, trainings or commands; default: all")
    parser.add_argument("--features", type=whole, default=[12, 17, 22], help="powers of 2, for `train`")
    parser.add_argument("--classes", type=whole, default=[5], help="of trainings that have several")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--scale", type=float, default=1.0, help="of the inputs of `convert`")
    parser.add_argument("--most", type=lambda text: parse_size(text, option="--most"), default="16GB", help="that a run may take")
    args, parts = parser.parse_args(), {"convert": converts, "train": trains, "commands": commands}
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        results = [kept for part in args.only for kept in parts[part](Path(folder), args)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
