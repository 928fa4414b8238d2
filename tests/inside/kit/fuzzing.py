"""Endless wrong input from a seed: bits flipped in files that have checksums, and damaged text (fuzzing_text.py).

Every fuzzer is a generator: each step makes one input, shows it to the product, and yields what became of it. A finding is an
AssertionError, or any exception that is no refusal. test_fuzzing takes the first steps of each, scripts/checks/fuzz.py as many as
it is told.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import streamcut
from inside.kit.fuzzing_text import TEXTS
from streamcut import CheckpointOptions
from streamcut.errors import CorruptError, NotFoundError
from streamcut.io.stores.verify import verify_store
from streamcut.models.checkpoint import open_checkpoint

REFUSED = (CorruptError, NotFoundError)


def make(folder: Path) -> Path:
    """z.zarr and h.store of two shards, and a folder of checkpoints."""
    rng = np.random.default_rng(0)
    lines = []
    for k, x in enumerate(rng.random(120)):
        lines.append(f"{1 if k % 2 else -1}:{k % 3 + 1} qid:{k // 4} 1:{x if k % 2 else -x:.3f} {2 + k % 7}:1\n")
    (folder / "a.svm").write_text("".join(lines))
    for name, backend in (("z.zarr", "zarr"), ("h.store", "hdf5")):
        streamcut.convert(folder / "a.svm", folder / name, label_weights=True, shard_nnz=120, backend=backend)
    checkpoint = CheckpointOptions(str(folder / "run"), every=0.0)
    streamcut.train(str(folder / "z.zarr"), task="binary", solver="ocas", max_passes=4, checkpoint=checkpoint)
    return folder


def flips(rng: random.Random, made: Path) -> Iterator[str]:
    """One bit of one file of a store or a checkpoint: detected, or the same numbers."""
    stores = {name: [path for path in sorted((made / name).rglob("*")) if path.is_file()] for name in ("z.zarr", "h.store")}
    before = {name: _arrays(made / name) for name in stores}
    files = {**stores, "run": sorted((made / "run").glob("*.checkpoint"))}
    while True:
        what = rng.choice([*files])
        file = rng.choice(files[what])
        content = file.read_bytes()
        place = rng.randrange(len(content))
        file.write_bytes(content[:place] + bytes([content[place] ^ 1 << rng.randrange(8)]) + content[place + 1 :])
        where = f"byte {place} of {file.name} of {what}"
        try:
            yield f"{what}: {_store_seen(made / what, before[what], where) if what in stores else _checkpoint_seen(file, where)}"
        finally:
            file.write_bytes(content)


def _store_seen(store: Path, before: list[np.ndarray], where: str) -> str:
    try:
        assert not verify_store(store, read_data=True).sound, f"{where} was not noticed by check"
        found = _arrays(store)
    except REFUSED:
        return "refused"
    assert all(np.array_equal(a, b) for a, b in zip(found, before, strict=True)), where
    return "found by check, the same numbers in reading"


def _checkpoint_seen(file: Path, where: str) -> str:
    try:
        open_checkpoint(file)
    except REFUSED:
        return "refused"
    raise AssertionError(f"{where} was not noticed")


def _arrays(store: Path) -> list[np.ndarray]:
    data = streamcut.open(store)
    chunks = [data.read(shard) for shard in range(len(data.manifest.shards))]
    return [np.array(array) for c in chunks for array in (c.indptr, c.indices, c.data, c.y, c.qid, c.weight)]


FUZZERS: dict[str, Callable[[random.Random, Path], Iterator[str]]] = {"flips": flips} | TEXTS
