"""`kill -9` at random moments: conversion and training must end, after --resume, with the bytes of an undisturbed run.

For each seed a conversion of the same text is killed after a random part of the time that an undisturbed one takes, resumed,
killed again, and so on, three times; then it is resumed to its end. Whatever bears its final name after a kill must be whole. The
same with training and its checkpoints. Children are forked, so that imports don't take most of their time.

Prints one line of JSON with how many kills hit their process at work, and ends with code 1 at the first difference.
Usage: python scripts/checks/kill_test.py [--seeds 50] [--folder DIR]
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from streamcut.config import CheckpointOptions
from streamcut.io.conversion.convert import convert
from streamcut.io.opening import open_dataset
from streamcut.models.files import load_model, save_model
from streamcut.training import train

KILLS = 3  # of each run
SHARD_NNZ = 5000
LIMITS = {"C": 0.1, "max_passes": 60, "tol": 1e-9, "tol_relative": None, "workers": 2, "lanes": 4}


def make_text(path: Path, rows: int = 6000, features: int = 60, nnz: int = 10) -> None:
    rng = np.random.default_rng(0)
    planted = rng.standard_normal(features)
    with open(path, "w") as file:
        for _ in range(rows):
            columns = np.sort(rng.choice(features, nnz, replace=False))
            values = rng.standard_normal(nnz)
            label = 1 if values @ planted[columns] + rng.standard_normal() > 0 else -1
            file.write(f"{label} " + " ".join(f"{j + 1}:{v:.6f}" for j, v in zip(columns, values, strict=True)) + "\n")


def killed(work: Callable[[], object], after: float) -> bool:
    """Do `work` in a forked child that is killed `after` so many seconds; whether it was still at work. Raises when it failed."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code not in (0, -signal.SIGKILL):
        raise SystemExit(f"a child ended with code {code}")
    return code != 0


def content(store: Path) -> dict[str, bytes]:
    return {str(path.relative_to(store)): path.read_bytes() for path in sorted(store.rglob("*")) if path.is_file()}


def bits(model: Path) -> tuple:
    found = load_model(str(model))
    return found.weights.tobytes(), found.certificate


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # that a folder holds no checkpoint yet is what we expect
    root = Path(tempfile.mkdtemp(dir=options.folder, prefix="streamcut-kill-"))
    text, store, model = root / "a.svm", root / "a.zarr", root / "m.npz"
    make_text(text)

    def conversion(target: Path) -> None:
        convert(text, target, shard_nnz=SHARD_NNZ, resume=True)

    def training(folder: Path) -> None:
        keep = CheckpointOptions(str(folder / "run"), iterations=1, resume=True)
        save_model(train(open_dataset(str(store)), checkpoint=keep, **LIMITS), str(folder / "m.npz"))

    conversion(root / "first.zarr")  # compiles
    takes = {"convert": seconds(lambda: conversion(store))}
    whole = content(store)
    training(root)
    shutil.rmtree(root / "run")
    takes["train"] = seconds(lambda: training(root))
    expected = bits(model)
    hits = {"convert": 0, "train": 0}
    for seed in range(options.seeds):
        chance, folder = random.Random(seed), root / f"{seed}"
        folder.mkdir()
        for what, work in (("convert", lambda f=folder: conversion(f / "a.zarr")), ("train", lambda f=folder: training(f))):
            for _ in range(KILLS):
                hits[what] += killed(work, chance.uniform(0.0, takes[what]))
                same = not (folder / "a.zarr").exists() or content(folder / "a.zarr") == whole
                if not same or ((folder / "m.npz").exists() and bits(folder / "m.npz") != expected):
                    sys.exit(f"seed {seed}: what bears its final name after a kill of {what} is not whole: {folder}")
            work()
        if content(folder / "a.zarr") != whole or bits(folder / "m.npz") != expected:
            sys.exit(f"seed {seed}: resuming did not come to the same bytes: {folder}")
        shutil.rmtree(folder)
    shutil.rmtree(root)
    print(json.dumps({"seeds": options.seeds, "kills": options.seeds * KILLS * 2, "hits": hits, "differences": 0}))


if __name__ == "__main__":
    main()
