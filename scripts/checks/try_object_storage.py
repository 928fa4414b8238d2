"""Text on an S3 server → store there → certified model there, on two Dask workers that share no folder, one of which is killed.

The text is that of scripts/tools/make_data.py. The model must have the bits of one that is trained from local files. Each worker
sees an empty folder of its own in the place of the client's scratch folder (a mount namespace: `unshare -Urm` must work here).
The first worker is killed (-9) at its N-th shard.

Prints a line for each step with its seconds, and ends with code 1 when the bits differ or nothing was killed. The server is that
of scripts/tools/s3_server.py. With --size 3GB it takes about 12 GB of disk.
Usage: python scripts/checks/try_object_storage.py [--size 30MB] [--files 8] [--features 30000] [--folder DIR] [--kill-at 20]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import distributed

import streamcut
from streamcut.foundation.units import format_bytes, parse_size
from streamcut.io.places.remote import object_written, objects_below

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from make_data import DEFAULTS, Recipe, Source, ordered, text_of
from s3_server import s3_server

STREAMCUT = [sys.executable, "-c", "from streamcut.cli import main; main()"]
DASK = [sys.executable, "-m", "dask"]
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
TRAIN = ["--C", "1", "--tol-relative", "0.01", "--set", "lanes=4", "--quiet"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="30MB", help="of the text")
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--features", type=int, default=30_000, help="with more than 45,000 rows make a single block")
    parser.add_argument("--folder", help="where the server's files, local ones and scratch go (default: TMPDIR)")
    parser.add_argument("--kill-at", type=int, default=20, metavar="N", help="the shard at which the first worker dies")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder, s3_server(folder) as server:
        print(server.name)
        size = parse_size(options.size, option="--size")
        return run(Path(folder), server.bucket, size, options.files, options.features, options.kill_at)


def make_text(folder: Path, bucket: str, size: int, files: int, features: int) -> tuple[int, int]:
    """(bytes, entries) of about `size` bytes of text in `files` files, in `folder` and in the bucket."""
    nnz_per_row, noise = DEFAULTS["text"]

    def source(rows: int) -> Source:
        return Source(Recipe("text", rows, features, nnz_per_row, noise, seed=0))

    block_rows = source(1).recipe.block_rows
    of_block = len(text_of(source(block_rows).block, True, 0)[1])
    rows = max(files, size * block_rows // of_block)
    blocks = -(-rows // block_rows)
    text = ordered(partial(text_of, source(rows).block, True), blocks, os.cpu_count() or 1)
    written = entries = 0
    for number in range(files):
        path = folder / f"{number:03}.svm"
        with open(path, "wb") as file:
            for _ in range(blocks * number // files, blocks * (number + 1) // files):
                nnz, lines = next(text)
                entries += nnz
                written += file.write(lines)
        with open(path, "rb") as file, object_written(f"{bucket}/text/{path.name}") as there:
            shutil.copyfileobj(file, there, 1 << 20)
    return written, entries


def run(folder: Path, bucket: str, size: int, files: int, features: int, kill_at: int) -> int:
    began = time.monotonic()

    def done(what: str) -> None:
        nonlocal began
        print(f"{what:<100} {time.monotonic() - began:8.1f} s", flush=True)
        began = time.monotonic()

    (folder / "text").mkdir()
    written, entries = make_text(folder / "text", bucket, size, files, features)
    done(f"{format_bytes(written)} of text, {entries:,} entries, made and uploaded, {files} files")
    shard_nnz = min(1 << 22, max(1 << 16, entries // 64))
    streamcut.convert(folder / "text" / "*.svm", folder / "local.zarr", shard_nnz=shard_nnz)
    done("the same converted on this disk")
    shutil.rmtree(folder / "text")
    command([*STREAMCUT, "train", str(folder / "local.zarr"), "--output", str(folder / "local.npz"), *TRAIN], folder)
    local = streamcut.load_model(folder / "local.npz")
    passes = len(local.history)
    done(f"trained there: {local.certificate.primal:.9g}, gap {local.certificate.gap:.2g}, {passes} iterations")
    with cluster(folder, kill_at) as (address, workers):
        text, store, model = f"{bucket}/text/*.svm", f"{bucket}/data.zarr", f"{bucket}/m.npz"
        command([*STREAMCUT, "convert", text, store, "--shard-nnz", str(shard_nnz), "--quiet"], folder)
        shards = len(streamcut.open(store).manifest.shards)
        done(f"converted from S3 to S3, {shards} shards, {format_bytes(sum(objects_below(store).values()))}")
        command(
            [*STREAMCUT, "train", store, "--output", model, "--scheduler", address, "--checkpoint", f"{bucket}/run", *TRAIN],
            folder,
        )
        killed = workers[0].poll() == -9
        done(f"trained from S3 to S3, {'one worker of two killed' if killed else 'AND NO WORKER DIED: lower --kill-at'}")
    there = streamcut.load_model(model)
    same = there.weights.tobytes() == local.weights.tobytes() and there.certificate == local.certificate
    print(f"same data {there.fingerprint == local.fingerprint}, same bits {same}, one worker killed {killed}")
    return 0 if same and killed else 1


def command(line: list[str], folder: Path) -> None:
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    environment = {**os.environ, "TMPDIR": str(scratch), "PYTHONUNBUFFERED": "1"}
    told = []
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment) as running:
        assert running.stdout is not None
        for each in running.stdout:
            told.append(each)
            if "lost" in each or "has memory for" in each:
                print(f"    {each}", end="", flush=True)
    if running.returncode:
        raise SystemExit(f"{' '.join(line[3:])}\n{''.join(told)}")


class cluster:  # noqa: N801  used as a context
    """(address, processes) of a scheduler's two workers, each with an empty folder where the client's scratch folder is."""

    def __init__(self, folder: Path, kill_at: int) -> None:
        self._folder, self._kill_at = folder, kill_at
        self._processes: list[subprocess.Popen] = []

    def __enter__(self) -> tuple[str, list[subprocess.Popen]]:
        told = self._folder / "scheduler.json"
        where = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(told)]
        self._processes.append(subprocess.Popen([*DASK, "scheduler", *where], **QUIET))
        while not told.exists():
            time.sleep(0.05)
        address = json.loads(told.read_text())["address"]
        scratch = self._folder / "scratch"
        scratch.mkdir(exist_ok=True)
        for number in range(2):
            own = self._folder / f"worker{number}"
            own.mkdir()
            worker = [*DASK, "worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--memory-limit", "3GB"]
            alone = ["unshare", "-Urm", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(scratch), *worker]
            point = f"train.shard:{self._kill_at}:kill" if number == 0 else ""
            environment = {**os.environ, "STREAMCUT_FAILPOINT": point, "TMPDIR": str(own)}
            self._processes.append(subprocess.Popen([*alone, "--local-directory", str(own)], env=environment, **QUIET))
        with distributed.Client(address, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=120)
        return address, self._processes[1:]

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()


if __name__ == "__main__":
    raise SystemExit(main())
