"""Endless wrong input from a seed: bits flipped in files that have checksums, and files forged with checksums to match.

Every fuzzer is a generator: each step makes one input, shows it to the product, and yields what became of it. A finding is an
AssertionError, any exception that is no refusal, and the death of a child. test_fuzzing takes the first steps of each,
scripts/checks/fuzz.py as many as it is told.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from kit.mutations import ELSEWHERE

import streamcut
from streamcut import CheckpointOptions
from streamcut.errors import CorruptError, NotFoundError

REFUSED = (CorruptError, NotFoundError)
_CHILD_INPUTS, _CHILD_SECONDS, _CHILD_BYTES = 25, 120, 2 << 30
_seen_by_hook: list[str] = []


def _hook(event: str, arguments: tuple) -> None:
    """What no input may bring about: a file elsewhere is opened, a program of the system is named in a pickle or run."""
    harm = event == "open" and isinstance(arguments[0], str | bytes) and os.fsdecode(arguments[0]).endswith(ELSEWHERE)
    harm = harm or event == "os.system" or (event == "pickle.find_class" and arguments[0] in ("os", "posix", "subprocess"))
    if harm:
        _seen_by_hook.append(f"{event} {arguments}")


sys.addaudithook(_hook)


def make(folder: Path) -> Path:
    """z.zarr and h.store of two shards, models of some kinds, a folder of checkpoints, a table and its recipe."""
    rng = np.random.default_rng(0)
    lines = []
    for k, x in enumerate(rng.random(120)):
        lines.append(f"{1 if k % 2 else -1}:{k % 3 + 1} qid:{k // 4} 1:{x if k % 2 else -x:.3f} {2 + k % 7}:1\n")
    (folder / "a.svm").write_text("".join(lines))
    for name, backend in (("z.zarr", "zarr"), ("h.store", "hdf5")):
        streamcut.convert(folder / "a.svm", folder / name, label_weights=True, shard_nnz=120, backend=backend)
    store = str(folder / "z.zarr")
    checkpoint = CheckpointOptions(str(folder / "run"), every=0.0)
    linear = streamcut.train(store, task="binary", solver="ocas", max_passes=4, checkpoint=checkpoint)
    streamcut.save_model(linear, folder / "linear.npz")
    streamcut.save_model(streamcut.train(store, task="binary", kernel="rbf", gamma=1.0, epochs=2), folder / "kernel.npz")
    streamcut.save_model(streamcut.train(store, task="multiclass", max_passes=2), folder / "classes.npz")
    mapped = streamcut.train(store, task="binary", kernel="rbf", gamma=1.0, nystroem=4, max_passes=2)
    streamcut.save_model(mapped, folder / "mapped.npz")
    words = [
        "click,site,price,when,text",
        *(f"{'yes' if k % 3 else 'no'},s{k % 5},{k / 4},2024-01-{k + 1:02d},some w{k % 3}" for k in range(20)),
    ]
    (folder / "t.csv").write_text("\n".join(words) + "\n")
    options = {"labels": "click", "categorical": "site", "numeric": "price:bin3", "text": "text", "cross": "site*price"}
    streamcut.convert(folder / "t.csv", folder / "t.zarr", **options)
    return folder


def _seen(load: Callable[[Path], Any], file: Path, where: str) -> str:
    try:
        load(file)
    except REFUSED:
        return "refused"
    raise AssertionError(f"{where} was not noticed")


def _arrays(store: Path) -> list[np.ndarray]:
    data = streamcut.open(store)
    chunks = [data.read(shard) for shard in range(len(data.manifest.shards))]
    return [np.array(array) for c in chunks for array in (c.indptr, c.indices, c.data, c.y, c.qid, c.weight)]


def _outcome(function: Callable, *arguments: Any, refused: tuple = REFUSED) -> str:
    try:
        function(*arguments)
        return "taken"
    except refused:
        return "refused"
    finally:
        assert not _seen_by_hook, _seen_by_hook


# --- what training makes of them ---

_TASKS: list[dict[str, Any]] = [
    *({"task": "binary", "solver": solver} for solver in ("ocas", "cpa", "bundle-dca")),
    {"task": "binary", "loss": "logistic"},
    {"task": "multiclass"},
    {"task": "multiclass", "loss": "softmax"},
    {"task": "multiclass", "strategy": "one-vs-rest"},
    {"task": "ranking"},
    {"task": "regression"},
    {"task": "roc-area"},
    {"task": "binary", "kernel": "rbf", "gamma": 1.0, "solver": "smo"},
    {"task": "binary", "kernel": "rbf", "gamma": 1.0, "solver": "bsca", "budget": 20, "epochs": 1},
    {"task": "multiclass", "kernel": "rbf", "gamma": 1.0, "solver": "sampled-linear", "samples": 20},
]


def _in_child(one: Callable[[random.Random], str], rng: random.Random) -> Iterator[str]:
    """Some inputs in a forked child; what it says of each."""
    seed = rng.randrange(1 << 60)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(_CHILD_SECONDS)  # ends it by its signal
        resource.setrlimit(resource.RLIMIT_DATA, (_data_bytes() + _CHILD_BYTES,) * 2)
        own, code = random.Random(seed), 1
        try:
            for _ in range(_CHILD_INPUTS):
                os.write(writing, one(own).encode() + b"\n")
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writing)
    with open(reading) as said:
        found = said.read().split()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status == 0, f"child of seed {seed} ended with {status} after {len(found)} inputs"
    yield from found


def _data_bytes() -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmData"))
