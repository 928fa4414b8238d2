"""Linear SVMs from a disk: bytes read and time of bundle-dca, OCAS exact and Vowpal Wabbit, all from files that stay cold.

The store is made by make_data.py (kind text) if it is not there, and Vowpal Wabbit's cache file beside it. All files are dropped
from the page cache before each run and twice a second during it, so that every pass reads them from storage, as data larger than
memory would be. streamcut runs in a process of its own under `--memory` = a quarter of the decoded data (--part), to a gap of 1
%. Vowpal Wabbit runs as many passes as it takes to come within 1 % of the objective (judged against streamcut's lower bound, from
the model that it keeps after each pass), with its default steps and with --sgd.

Prints a table in Markdown and writes results.json into --out. bytes read: decoded, as counted by streamcut's certificate history;
from storage: as counted by the kernel for the whole process.

Usage: python scripts/benchmarks/bench_linear_disk.py --out FOLDER [--rows N] [--features D] [--C 1] [--seconds 120]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # peers, too: LIBSVM spins on OpenMP threads

import numpy as np
import scipy.sparse as sp
from bench_cold import drop, files_of
from bench_linear_tools import VW_KINDS, VowpalWabbit, finished, vw_lines

from streamcut.foundation.chunk import Chunk
from streamcut.io.dataset import Dataset, shard_bytes
from streamcut.io.opening import open_dataset
from streamcut.models.files import load_model

SOLVERS = {"bundle-dca": ["--solver", "bundle-dca"], "ocas exact": ["--solver", "ocas", "--cut", "exact"]}
GAP = 0.01
_BLOCK_512 = 512  # bytes of a block in a process's resource usage


def chunks(data: Dataset) -> Iterator[Chunk]:
    buffers = data.buffers()
    for shard in range(len(data.manifest.shards)):
        yield data.read(shard, buffers)


def objective(data: Dataset, w: np.ndarray, C: float) -> float:
    """F(w) in float64; w (d + 1), the bias last."""
    loss = 0.0
    for chunk in chunks(data):
        values = np.ones(chunk.nnz) if chunk.data is None else chunk.data
        X = sp.csr_array((values, chunk.indices, chunk.indptr), (chunk.n_rows, len(w) - 1))
        loss += np.maximum(0.0, 1.0 - chunk.y * (X @ w[:-1] + w[-1])).sum()
    return float(0.5 * (w @ w) + C * loss)


def streamcut(store: Path, solver: str, C: float, memory: int, seconds: float, folder: Path) -> dict:
    """One training in a process of its own."""
    files, path = files_of(store), folder / "model.npz"
    command = [sys.executable, "-c", "from streamcut.cli import main; main()", "train", str(store), "--model", str(path)]
    command += ["--force", "--quiet", "--C", repr(C), "--tol", "0", "--tol-relative", str(GAP), "--memory", f"{memory}B"]
    command += ["--max-time", f"{seconds:g}s", *SOLVERS[solver]]
    drop(files)
    started = time.time()
    usage = finished(command, 2 * seconds, lambda: drop(files))
    wall, model = time.time() - started, load_model(path)
    last = model.history[-1]
    return {
        "tool": solver,
        "passes": last["passes"],
        "wall": wall,
        "training": last["seconds"],
        "processor": usage.ru_utime + usage.ru_stime,
        "bytes_read": last["bytes_read"],
        "from_storage": _BLOCK_512 * usage.ru_inblock,
        "primal": model.certificate.primal,
        "bound": model.certificate.lower_bound,
        "converged": model.converged,
        "peak": model.resources["peak"],
    }


def wabbit(tool: VowpalWabbit, kind: str, data: Dataset, C: float, bound: float, seconds: float) -> dict:
    """As many passes as it takes to come within GAP, or as many as there is time for."""
    drop([tool.cache])
    run = tool.run(kind, C, 64, seconds, lambda: drop([tool.cache]))
    best, passes = np.inf, 0
    for number in sorted(number for number in run.saved if number > 0):
        F = objective(data, tool.weights(run.saved[number]), C)
        if best > F:
            best, passes = F, number
        if best <= (1.0 + GAP) * bound:
            break
        if number - passes >= 4:  # it has been further from the optimum for four passes
            break
    size = tool.cache.stat().st_size
    return {
        "tool": kind,
        "passes": passes,
        "wall": run.when[passes],
        "bytes_read": passes * size,
        "from_storage": _BLOCK_512 * run.usage.ru_inblock * passes // max(run.saved),
        "primal": best,
        "converged": best <= (1.0 + GAP) * bound,
    }


def table(results: list[dict], bound: float) -> str:
    lines = ["| tool | passes | wall s | decoded GB read | GB from storage | F above the bound | within 1 % |", "|---" * 7 + "|"]
    for r in results:
        above = 100 * (r["primal"] / bound - 1)
        lines.append(
            f"| {r['tool']} | {r['passes']} | {r['wall']:.1f} | {r['bytes_read'] / 1e9:.2f} | {r['from_storage'] / 1e9:.2f} "
            f"| {above:.2f} % | {'yes' if r['converged'] else 'no'} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for store, cache file and results")
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--features", type=int, default=100_000)
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--part", type=float, default=0.25, help="memory as a part of the decoded data")
    parser.add_argument("--seconds", type=float, default=120.0, help="for one run of one tool")
    parser.add_argument("--tools", default=",".join([*SOLVERS, *VW_KINDS]))
    options = parser.parse_args()
    tools, folder = options.tools.split(","), options.out
    if unknown := [tool for tool in tools if tool not in (*SOLVERS, *VW_KINDS)]:
        parser.error(f"{', '.join(unknown)} is not known; there are {', '.join([*SOLVERS, *VW_KINDS])}")
    folder.mkdir(parents=True, exist_ok=True)
    store = folder / f"text-{options.rows}-{options.features}.zarr"
    if not store.exists():
        make = [sys.executable, str(Path(__file__).parents[1] / "tools" / "make_data.py"), str(store)]
        subprocess.run([*make, "--rows", str(options.rows), "--features", str(options.features)], check=True)
    data, results = open_dataset(str(store)), []

    def note(result: dict) -> None:
        print(json.dumps(result), file=sys.stderr, flush=True)
        results.append(result)

    decoded = sum(shard_bytes(data.manifest, shard) for shard in data.manifest.shards)
    for solver in (tool for tool in tools if tool in SOLVERS):
        note(streamcut(store, solver, options.C, int(options.part * decoded), options.seconds, folder))
    bound = max(result["bound"] for result in results)
    kinds = [tool for tool in tools if tool in VW_KINDS]
    if kinds:
        (folder / "vw").mkdir(exist_ok=True)
        vw = VowpalWabbit(folder / "vw", options.rows, options.features)
        if not vw.cache.exists():
            vw.convert(vw_lines(chunks(data), options.features))
        for kind in kinds:
            note(wabbit(vw, kind, data, options.C, bound, options.seconds))
    (folder / "results.json").write_text(json.dumps({"decoded": decoded, "results": results}, indent=1) + "\n")
    print(
        f"{options.rows:,} × {options.features:,}, decoded {decoded / 1e9:.2f} GB, C = {options.C:g}, memory {options.part:.0%}\n"
    )
    print(table(results, bound))


if __name__ == "__main__":
    main()
