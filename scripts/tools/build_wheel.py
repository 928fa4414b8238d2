"""A wheel that compiles nothing for everyday work: the plain wheel, and the machine code that the commands below need.

  PYTHON scripts/tools/build_wheel.py dist/streamcut-0.1.0-py3-none-any.whl [--into dist] [--kinds 1]
  PYTHON scripts/tools/build_wheel.py --check

PYTHON is that of an environment in which the plain wheel is installed. The commands run there once for each kind of processor
(KINDS), on small data that is made for it; what they compile travels in the folder `streamcut/_kernels`. A
kernel is used where the sources, the versions of Python and Numba, and the processor fit; where they do not, it is compiled as
before. Machine code calls nothing but what llvmlite, Numba and Python bring, so the wheel has the tags of this Python and of the
llvmlite next to it.

`--check` runs the commands with the installed package and an empty cache instead, and fails if anything is compiled: for an
environment in which the new wheel is installed.
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import io
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import numpy as np

from streamcut.compiler.jit import TARGET as DESCRIPTION
from streamcut.compiler.numba_parts import cpu_target


class Kind(NamedTuple):
    """A kind of processor: its LLVM name, and the features (LLVM names) that a processor of that kind must have."""

    cpu: str
    needs: tuple[str, ...] = ()


_V2 = ("+cx16", "+popcnt", "+sahf", "+sse3", "+sse4.1", "+sse4.2", "+ssse3")
KINDS = {  # by machine, best first
    "x86_64": (
        Kind("x86-64-v3", (*_V2, "+avx", "+avx2", "+bmi", "+bmi2", "+f16c", "+fma", "+lzcnt", "+movbe")),
        Kind("x86-64-v2", _V2),
    ),
    "other": (Kind("generic"),),
}
TARGET = "--label label"
# Lines in order; those of one list do not wait for another list's.
COMMANDS = {
    "stores": (
        "convert two.svm two.zarr",
        "convert ones.svm ones.zarr",
        "convert wide.svm wide.zarr --shuffle 1",
        "convert three.svm three.zarr",
        "convert real.svm real.zarr",
        "convert weighted.csv weighted.zarr --label label --weights weight",
        "convert table.csv table.zarr --label label",
        "convert table.csv hashed.zarr --label label --hash-bits 12",
        "info two.zarr",
    ),
    "two": (
        "train two.zarr -o two.npz",
        "predict two.npz two.svm -o two.txt",
        "predict two.npz two.zarr -o stored.txt",
        "evaluate two.npz two.svm",
        "evaluate two.npz two.zarr",
        "verify two.npz two.zarr",
        "verify two.npz two.zarr --max-passes 3",
        "explain two.npz --top 3",
        "export two.npz two.json",
        "train two.zarr -o late.npz --loss logistic",
        "evaluate late.npz two.zarr",
        "predict late.npz two.svm --answer probabilities -o late.txt",
        "verify late.npz two.zarr --max-passes 3",
        "train two.zarr -o late1.npz --loss logistic --intercept free",
        "train two.zarr -o squared.npz --loss squared-hinge",
        "train two.zarr -o squared1.npz --loss squared-hinge --intercept free",
        "train two.zarr -o free.npz --intercept free",
        "train two.zarr -o ascent.npz --solver bundle-dca",
        "train two.zarr -o ascent1.npz --solver bundle-dca --intercept free",
        "train two.zarr -o path.npz --C 0.1,1 --validation two.zarr",
        "train two.zarr -o tuned.npz --C 0.1,1 --folds 2",
        "train two.zarr -o tuned1.npz --C 0.1,1 --folds 2 --loss logistic",
    ),
    "ones": (
        "train ones.zarr -o ones.npz",
        "evaluate ones.npz ones.zarr",
        "verify ones.npz ones.zarr",
        "train ones.zarr -o ones1.npz --loss logistic",
        "train ones.zarr -o ones2.npz --loss squared-hinge",
        "train ones.zarr -o ones3.npz --solver bundle-dca",
    ),
    "wide": (
        "train wide.zarr -o wide.npz",
        "evaluate wide.npz wide.svm",
        "verify wide.npz wide.zarr",
        "train wide.zarr -o wide1.npz --loss logistic",
        "verify wide1.npz wide.zarr",
        "train wide.zarr -o wide2.npz --loss squared-hinge",
        "train wide.zarr -o wide3.npz --loss logistic --intercept free",
        "train wide.zarr -o wide4.npz --memory 250MB",
    ),
    "three": (
        "train three.zarr -o three.npz",
        "evaluate three.npz three.svm",
        "predict three.npz three.svm -o three.txt",
        "verify three.npz three.zarr",
        "train three.zarr -o soft.npz --loss softmax",
        "evaluate soft.npz three.zarr",
        "train three.zarr -o rest.npz --strategy one-vs-rest",
        "evaluate rest.npz three.zarr",
        "verify rest.npz three.zarr",
        "train three.zarr -o rest1.npz --strategy one-vs-rest --loss logistic",
        "train three.zarr -o rest2.npz --strategy one-vs-rest --loss squared-hinge",
    ),
    "real": (
        "train real.zarr -o real.npz --task regression --loss squared",
        "evaluate real.npz real.svm",
        "verify real.npz real.zarr",
        "train real.zarr -o real1.npz --task regression --loss squared --intercept free",
        "train real.zarr -o real2.npz --task regression --loss epsilon-insensitive",
        "train real.zarr -o real3.npz --task regression --loss epsilon-insensitive --solver bundle-dca",
    ),
    "tables": (
        "train weighted.zarr -o weighted.npz",
        "train weighted.zarr -o weighted1.npz --loss logistic",
        "train weighted.zarr -o weighted2.npz --solver bundle-dca",
        "train hashed.zarr -o hashed.npz --loss logistic",
        "predict hashed.npz table.csv -o hashed.txt",
        f"fit table.csv {TARGET} -o fit.npz --store fit.zarr",
        "predict fit.npz table.csv --answer probabilities -o fit.txt",
        "evaluate fit.npz table.csv",
        "verify fit.npz fit.zarr",
        f"fit words.csv {TARGET} -o words.npz",
        "evaluate words.npz words.csv",
        f"fit three.csv {TARGET} -o classes.npz",
        "evaluate classes.npz three.csv",
    ),
}
FIRST, LINE = "stores", "import sys; from streamcut.cli import main; main(sys.argv[1:])"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path, nargs="?")
    parser.add_argument("--into", type=Path, default=Path("dist"))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--kinds", type=int, help="so many kinds of processors, best first  [default: all]")
    parser.add_argument("--check", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if chosen.check:
            check(Path(scratch), chosen.workers)
        elif chosen.wheel is None:
            parser.error("which wheel?")
        else:
            build(
                chosen.wheel,
                chosen.into,
                KINDS.get(platform.machine(), KINDS["other"])[: chosen.kinds],
                Path(scratch),
                chosen.workers,
            )


def build(plain: Path, into: Path, kinds: Sequence[Kind], scratch: Path, workers: int) -> None:
    """Write the wheel to `into`."""
    kernels = scratch / "kernels"
    kernels.mkdir()
    for kind in kinds:
        cache = scratch / kind.cpu
        environment = {"NUMBA_CPU_NAME": kind.cpu, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(cache)}
        spent = everyday({**environment, "STREAMCUT_KERNELS": str(cache)}, scratch / f"data-{kind.cpu}", workers)
        compiled = sorted(cache.rglob("*.nbc"))
        for file in compiled:
            shutil.copy(file, kernels)
        size = sum(file.stat().st_size for file in compiled) / 1e6
        print(f"{kind.cpu}: {len(compiled)} kernels, {size:.1f} MB, {spent:.0f} s of processors", flush=True)
    triple = cpu_target.target_context.codegen().magic_tuple()[0]
    described = [{"triple": triple, "cpu": kind.cpu, "needs": kind.needs} for kind in kinds]
    (kernels / DESCRIPTION).write_text(json.dumps(described))
    into.mkdir(exist_ok=True)
    made = packed(plain, kernels, into)
    print(f"{made}: {made.stat().st_size / 1e6:.1f} MB")


def check(scratch: Path, workers: int) -> None:
    """Run the commands from an empty cache, and end with an error if anything was compiled."""
    cache = scratch / "cache"
    spent = everyday({"NUMBA_CACHE_DIR": str(cache)}, scratch / "data", workers)
    kernels = sorted(file.name for file in cache.rglob("*.nbc"))
    print(f"{sum(map(len, COMMANDS.values()))} commands, {spent:.0f} s of processors, {len(kernels)} kernels compiled")
    if kernels:
        raise SystemExit("compiled all the same: " + ", ".join(kernels))


def everyday(environment: dict[str, str], folder: Path, workers: int) -> float:
    """Run all commands in a new `folder`; seconds of processor time."""
    folder.mkdir()
    write(folder)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)

    def run(name: str) -> None:
        for line in COMMANDS[name]:
            command = [sys.executable, "-P", "-c", LINE, *line.split()]
            done = subprocess.run(command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(f"streamcut {line}: exit code {done.returncode}\n{done.stderr}")

    run(FIRST)
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(run, [name for name in COMMANDS if name != FIRST]))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def write(folder: Path) -> None:
    """Data of the kinds that commands meet: few features and many, ones and numbers, tables with words and gaps."""
    rng = np.random.default_rng(0)
    X, w = rng.random((300, 9)).round(3), rng.standard_normal((9, 3))
    scores = (X - 0.5) @ w
    labels = {"two": np.where(scores[:, 0] > 0, 1, -1), "three": scores.argmax(axis=1), "real": scores[:, 0].round(3)}
    for name, y in labels.items():
        lines = (
            f"{label} " + " ".join(f"{j + 1}:{value}" for j, value in enumerate(row)) for label, row in zip(y, X, strict=True)
        )
        (folder / f"{name}.svm").write_text("\n".join(lines) + "\n")
    with (folder / "ones.svm").open("w") as file:
        for label, row in zip(labels["two"], X, strict=True):
            file.write(f"{label} " + " ".join(f"{j + 1}:1" for j in np.flatnonzero(row > 0.5)) + "\n")
    with (folder / "wide.svm").open("w") as file:
        for touched in np.sort(rng.integers(1, 30_000, (6_000, 20)), axis=1):
            columns = np.unique(touched)
            file.write(f"{1 if (columns % 7).sum() % 2 else -1} " + " ".join(f"{j}:{0.1 + j % 5:.1f}" for j in columns) + "\n")
    tables: dict[str, list[list[object]]] = {name: [["label"]] for name in ("table", "weighted", "words", "three")}
    tables["table"] = [["label", "site", "price", "count", "when", "ok"]]
    tables["weighted"] = [["label", "weight", "site", "price"]]
    tables["words"] = [["label", "text"]]
    tables["three"] = [["label", "site", "price"]]
    for row in range(300):
        word, site, price = ("no", "yes")[int(labels["two"][row] > 0)], "abcdef"[row % 6], X[row, 0] if row % 9 else ""
        tables["table"].append([word, site, price, row % 17, f"2001-0{row % 9 + 1}-03 1{row % 9}:00:00", row % 3 == 0])
        tables["weighted"].append([word, 1 + row % 3, site, X[row, 0]])
        tables["words"].append([word, " ".join(f"word{int(10 * value)}" for value in X[row])])
        tables["three"].append([("red", "green", "blue")[labels["three"][row]], site, X[row, 1]])
    for name, lines_of in tables.items():
        with (folder / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows(lines_of)


def packed(plain: Path, kernels: Path, into: Path) -> Path:
    """The plain wheel with the folder of kernels, under its true name."""
    name, version, *_ = plain.name.split("-")
    text = metadata.distribution("llvmlite").read_text("WHEEL") or ""
    tags = [line.split(": ")[1] for line in text.splitlines() if line.startswith("Tag: ")]
    python, abi = tags[0].split("-")[:2]
    platforms = ".".join(sorted(tag.split("-", 2)[2] for tag in tags))
    made = into / f"{name}-{version}-{python}-{abi}-{platforms}.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as target:
        contents = {entry: source.read(entry) for entry in source.namelist() if entry != f"{info}/RECORD"}
        lines = contents[f"{info}/WHEEL"].decode().splitlines()
        kept = [line for line in lines if line and not line.startswith(("Tag:", "Root-Is-Purelib:"))]
        contents[f"{info}/WHEEL"] = "\n".join([*kept, "Root-Is-Purelib: false", *(f"Tag: {tag}" for tag in tags), ""]).encode()
        contents |= {f"{name}/_kernels/{file.name}": file.read_bytes() for file in sorted(kernels.iterdir())}
        record = io.StringIO()
        for entry, content in contents.items():
            target.writestr(entry, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            csv.writer(record, lineterminator="\n").writerow([entry, f"sha256={digest}", len(content)])
        csv.writer(record, lineterminator="\n").writerow([f"{info}/RECORD", "", ""])
        target.writestr(f"{info}/RECORD", record.getvalue())
    return made


if __name__ == "__main__":
    main()
