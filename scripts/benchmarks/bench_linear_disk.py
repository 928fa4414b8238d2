"""The race on data larger than memory: streamcut, Vowpal Wabbit, scikit-learn's SGD and LIBLINEAR-cdblock's method, in one run.

Rows are text-like, made by make_data.py if they are not there; an eleventh of them are kept for the test. The others stand in two
stores: as they come, and with all rows of one label first. Every tool runs in a process of its own, for each loss, C and order,
until its objective is within 1 % of the best bound that streamcut proved, or its time is up. streamcut gets --memory, a part of
the decoded data; the others hold a shard, or what they read. Files are dropped from the page cache before each run, and twice a
second during it, so that every pass reads them from storage. With --cgroup each process has that memory and no more, page cache
included; a tool that the kernel kills for it has a line without figures.

A line of the table: passes, decoded bytes that they go through (Vowpal Wabbit: of its cache file), processor seconds, and the
most memory, of the whole process; objective and bound relative to the best bound; mean test loss. Writes results.json, too.

Usage: python scripts/benchmarks/bench_linear_disk.py --out FOLDER [--rows N] [--features D] [--C 1,10] [--losses hinge,logistic]
           [--orders shuffled,sorted] [--tools streamcut,…] [--part 0.25]
           [--least 250MB] [--seconds 60] [--cgroup]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from functools import cache
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # peers, too: LIBSVM spins on OpenMP threads

import numpy as np
import scipy.sparse as sp
from bench_linear_disk_peers import LOSSES, VW_KINDS, OutOfMemoryError, VowpalWabbit, drop, finished, memory_group, vw_lines

import streamcut
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.units import parse_size
from streamcut.io.dataset import Dataset, shard_bytes
from streamcut.io.opening import open_dataset
from streamcut.models.files import load_model

OURS = {"streamcut": [], "streamcut ocas exact": ["--solver", "ocas", "--set", "cut=exact"]}
BLOCKS = {"sgd averaged": "sgd", "cdblock": "cdblock"}
TOOLS = (*OURS, *VW_KINDS, *BLOCKS)
GAP = 0.01
_HELD_OUT = 11  # every such row is for the test
_PASSES = 64


def chunks(data: Dataset) -> Iterator[Chunk]:
    buffers = data.buffers()
    for shard in range(len(data.manifest.shards)):
        yield data.read(shard, buffers)


def files_of(store: Path) -> list[Path]:
    """The files that a pass reads, in the order of shards."""
    return sorted(path for path in (store / "shards").rglob("*") if path.name == "c.0" or path.suffix == ".h5")


def decoded_bytes(data: Dataset) -> int:
    return sum(shard_bytes(data.manifest, shard) for shard in data.manifest.shards)


def matrix(chunk: Chunk, d: int) -> sp.csr_array:
    values = np.ones(chunk.nnz, np.float32) if chunk.data is None else chunk.data
    return sp.csr_array((values, chunk.indices, chunk.indptr), (chunk.n_rows, d))


def objective(data: Dataset, w: np.ndarray, C: float, loss: str) -> float:
    """F(w) in float64; w (d + 1), the bias last."""
    return float(0.5 * (w @ w) + C * data.manifest.statistics.n_rows * mean_loss(data, w, loss))


def mean_loss(data: Dataset, w: np.ndarray, loss: str) -> float:
    total = 0.0
    for chunk in chunks(data):
        total += float(LOSSES[loss](chunk.y * (matrix(chunk, len(w) - 1) @ w[:-1] + w[-1])).sum())
    return total / data.manifest.statistics.n_rows


def make_stores(folder: Path, rows: int, features: int) -> dict[str, Path]:
    """{"shuffled", "sorted", "test": store}."""
    paths = {name: folder / f"{name}-{rows}-{features}.zarr" for name in ("shuffled", "sorted", "test")}
    if all(path.exists() for path in paths.values()):
        return paths
    whole = folder / "all.zarr"
    make = [sys.executable, str(Path(__file__).parents[1] / "tools" / "make_data.py"), str(whole)]
    subprocess.run([*make, "--rows", str(rows), "--features", str(features)], check=True)
    data = open_dataset(str(whole))
    for name, parts in {"shuffled": [None], "sorted": [-1.0, 1.0], "test": [None]}.items():
        with streamcut.create(paths[name], features, force=True) as out:
            for label in parts:
                for chunk in chunks(data):
                    test = (chunk.first_row + np.arange(chunk.n_rows)) % _HELD_OUT == _HELD_OUT - 1
                    kept = test if name == "test" else ~test
                    kept = np.flatnonzero(kept if label is None else kept & (np.sign(chunk.y) == label))
                    if len(kept):
                        out.append(matrix(chunk, features)[kept], np.where(chunk.y[kept] > 0.0, 1.0, -1.0))
    shutil.rmtree(whole)
    return paths


class Race:
    """Runs of one loss, C and order on the store `path`."""

    def __init__(self, path: Path, folder: Path, *, loss: str, C: float, memory: int, seconds: float) -> None:
        self.path, self.folder, self.loss, self.C, self.memory, self.seconds = path, folder, loss, C, memory, seconds
        self.data, self.bound = open_dataset(str(path)), 0.0
        self.decoded = decoded_bytes(self.data)

    def run(self, tool: str) -> dict:
        """What became of it; w among it."""
        if tool in OURS:
            return self._streamcut(tool)
        return self._wabbit(tool) if tool in VW_KINDS else self._blocks(tool)

    def _streamcut(self, tool: str) -> dict:
        files, model_path = files_of(self.path), self.folder / "model.npz"
        command = [sys.executable, "-c", "from streamcut.cli import main; main()", "train", str(self.path)]
        command += ["--output", str(model_path), "--force", "--quiet", "--loss", self.loss, "--C", repr(self.C), *OURS[tool]]
        command += ["--tol", "0", "--tol-relative", str(GAP), "--memory", f"{self.memory}B", "--max-time", f"{self.seconds:g}s"]
        drop(files)
        usage = finished(command, 2 * self.seconds + 20, lambda: drop(files))
        model = load_model(model_path)
        self.bound = max(self.bound, model.certificate.lower_bound)
        last = model.history[-1]
        result = self._result(tool, model.augmented_weights, usage, last["passes"], last["bytes_read"], model.resources["peak"])
        return result | {"bound": model.certificate.lower_bound}

    def _wabbit(self, tool: str) -> dict:
        folder = self.folder / f"vw-{self.path.stem}"
        folder.mkdir(exist_ok=True)
        statistics = self.data.manifest.statistics
        vw = VowpalWabbit(folder, statistics.n_rows, statistics.n_features, self.loss)
        if not vw.cache.exists():
            vw.convert(vw_lines(chunks(self.data), statistics.n_features))
        drop([vw.cache])
        run = vw.run(tool, self.C, _PASSES, self.seconds, lambda: drop([vw.cache]))
        passes = sorted(number for number in run.saved if number > 0)
        number, w = self._first_good(passes, lambda number: vw.weights(run.saved[number]))
        result = self._result(tool, w, run.usage, number, number * vw.cache.stat().st_size, run.peak)
        return result | {"processor": result["processor"] * number / passes[-1]}

    def _blocks(self, tool: str) -> dict:
        folder, files = self.folder / "blocks", files_of(self.path)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        program = [sys.executable, str(Path(__file__).with_name("bench_linear_disk_blocks.py")), BLOCKS[tool]]
        program += [str(self.path), str(folder)]
        program += ["--loss", self.loss, "--C", repr(self.C), "--passes", str(_PASSES), "--seconds", repr(self.seconds)]
        drop(files)
        usage = finished(program, self.seconds + 60.0, lambda: drop(files))
        saved = {int(path.stem.removeprefix("pass-")): np.load(path) for path in folder.glob("pass-*.npz")}
        number, w = self._first_good(sorted(saved), lambda number: saved[number]["w"])
        result = self._result(tool, w, usage, number, number * self.decoded, int(saved[number]["peak"]))
        return result | {"processor": float(saved[number]["seconds"]), "bound": float(saved[number]["bound"]) or None}

    def _first_good(self, passes: list[int], weights) -> tuple[int, np.ndarray]:
        """The first pass within GAP of the bound and its w, by powers of 2 and then by halving; else the best of those."""
        value = cache(lambda number: objective(self.data, weights(number), self.C, self.loss))
        doubled = [number for number in passes if number & (number - 1) == 0 or number == passes[-1]]
        good = next((number for number in doubled if value(number) <= (1.0 + GAP) * self.bound), None)
        if good is None:
            good = min(doubled, key=value)
            return good, weights(good)
        bad = max((number for number in doubled if number < good), default=0)
        while good - bad > 1:
            middle = (good + bad) // 2
            bad, good = (bad, middle) if value(middle) <= (1.0 + GAP) * self.bound else (middle, good)
        return good, weights(good)

    def _result(self, tool: str, w: np.ndarray, usage, passes: int, read: int, peak: int) -> dict:
        F = objective(self.data, w, self.C, self.loss)
        numbers = {"passes": passes, "bytes_read": read, "processor": usage.ru_utime + usage.ru_stime}
        return {"tool": tool, "w": w, "primal": F, "bound": None, "peak": peak, **numbers}


def table(results: list[dict]) -> str:
    head = "| loss | C | order | tool | passes | GB gone through | processor s | peak MB | F above | bound below | test loss |"
    lines = [head, "|---" * 11 + "|"]
    for r in results:
        best = r["best_bound"]
        if "primal" not in r:
            lines.append(f"| {r['loss']} | {r['C']:g} | {r['order']} | {r['tool']} | out of memory" + " | –" * 6 + " |")
            continue
        below = "–" if r["bound"] is None else f"{100 * (1 - r['bound'] / best):.2f} %"
        lines.append(
            f"| {r['loss']} | {r['C']:g} | {r['order']} | {r['tool']} | {r['passes']} | {r['bytes_read'] / 1e9:.2f} "
            f"| {r['processor']:.1f} | {r['peak'] / 1e6:.0f} | {100 * (r['primal'] / best - 1):.2f} % | {below} "
            f"| {r['test']:.4f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for stores, cache files and results")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--features", type=int, default=30_000)
    parser.add_argument("--C", default="1,10")
    parser.add_argument("--losses", default="hinge,logistic")
    parser.add_argument("--orders", default="shuffled,sorted")
    parser.add_argument("--part", type=float, default=0.25, help="memory as a part of the decoded data")
    parser.add_argument("--least", default="250MB", help="memory of streamcut where that part is less")
    parser.add_argument("--seconds", type=float, default=60.0, help="for one run of one tool")
    parser.add_argument("--cgroup", action="store_true", help="limit every tool to that memory by a cgroup")
    parser.add_argument("--tools", default=",".join(TOOLS))
    args = parser.parse_args()
    tools = args.tools.split(",")
    if unknown := [tool for tool in tools if tool not in TOOLS]:
        parser.error(f"{', '.join(unknown)} is not known; there are {', '.join(TOOLS)}")
    args.out.mkdir(parents=True, exist_ok=True)
    stores, results = make_stores(args.out, args.rows, args.features), []
    test = open_dataset(str(stores["test"]))
    decoded = decoded_bytes(open_dataset(str(stores["shuffled"])))
    memory = max(int(args.part * decoded), parse_size(args.least, option="--least"))
    for loss in args.losses.split(","):
        for C in map(float, args.C.split(",")):
            for order in args.orders.split(","):
                race = Race(stores[order], args.out, loss=loss, C=C, memory=memory, seconds=args.seconds)
                runs = []
                for tool in sorted(tools, key=lambda tool: tool not in OURS):  # ours first: they have the bound
                    try:
                        with memory_group(memory) if args.cgroup else nullcontext():
                            result = race.run(tool)
                        result["test"] = mean_loss(test, result.pop("w"), loss)
                    except OutOfMemoryError:
                        result = {"tool": tool}
                    runs.append(result | {"loss": loss, "C": C, "order": order})
                    print(json.dumps(runs[-1]), file=sys.stderr, flush=True)
                results += [run | {"best_bound": race.bound} for run in runs]
                (args.out / "results.json").write_text(json.dumps({"decoded": decoded, "results": results}, indent=1) + "\n")
    print(f"{args.rows:,} × {args.features:,}, decoded {decoded / 1e9:.2f} GB, streamcut's memory {memory / 1e6:.0f} MB\n")
    print(table(results))


if __name__ == "__main__":
    main()
