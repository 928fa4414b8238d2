"""Endless wrong input from a seed: bits flipped in files that have checksums, and files forged with checksums to match.

Every fuzzer is a generator: each step makes one input, shows it to the product, and yields what became of it. A finding is an
AssertionError, any exception that is no refusal, and the death of a child. tests/test_fuzzing.py takes the first steps of each,
scripts/fuzz.py as many as it is told.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import random
import shutil
import signal
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from fuzzing_text import TEXTS
from mutations import ODD, places
from test_hostile_model import contents
from test_hostile_store import manifest_of, sealed

import streamcut
from streamcut.config import CheckpointOptions
from streamcut.errors import CorruptError, NotFoundError
from streamcut.io.opening import open_dataset
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.stores import codec
from streamcut.io.stores.manifest_file import parse_manifest
from streamcut.io.stores.verify import verify_store
from streamcut.models.checkpoint import _MAGIC, open_checkpoint
from streamcut.models.files import _built, load_model

REFUSED = (CorruptError, NotFoundError)
_CHILD_INPUTS, _CHILD_SECONDS = 25, 120


def make(folder: Path) -> Path:
    """z.zarr and h.store of two shards, models of two kinds, a folder of checkpoints."""
    rng = np.random.default_rng(0)
    lines = []
    for k, x in enumerate(rng.random(120)):
        lines.append(f"{1 if k % 2 else -1}:{k % 3 + 1} qid:{k // 4} 1:{x if k % 2 else -x:.3f} {2 + k % 7}:1\n")
    (folder / "a.svm").write_text("".join(lines))
    for name, backend in (("z.zarr", "zarr"), ("h.store", "hdf5")):
        streamcut.convert(folder / "a.svm", folder / name, label_weights=True, shard_nnz=120, backend=backend)
    store = str(folder / "z.zarr")
    checkpoint = CheckpointOptions(str(folder / "run"), iterations=1)
    linear = streamcut.train(store, task="binary", solver="ocas", max_passes=4, checkpoint=checkpoint)
    streamcut.save_model(linear, folder / "linear.npz")
    streamcut.save_model(streamcut.train(store, task="binary", kernel="rbf", gamma=1.0, epochs=2), folder / "kernel.npz")
    return folder


# --- single bits ---


def flips(rng: random.Random, made: Path) -> Iterator[str]:
    """One bit of one file of a store, a model or a checkpoint: detected, or the same numbers."""
    stores = {name: [path for path in sorted((made / name).rglob("*")) if path.is_file()] for name in ("z.zarr", "h.store")}
    before = {name: _arrays(made / name) for name in stores}
    singles = {"linear.npz": load_model, "kernel.npz": load_model, "run": open_checkpoint}
    while True:
        what = rng.choice([*stores, *singles])
        if what in stores:
            file = rng.choice(stores[what])
        else:
            file = rng.choice(sorted((made / what).glob("*.checkpoint"))) if what == "run" else made / what
        content = file.read_bytes()
        place = rng.randrange(len(content))
        file.write_bytes(content[:place] + bytes([content[place] ^ 1 << rng.randrange(8)]) + content[place + 1 :])
        try:
            where = f"byte {place} of {file.name} of {what}"
            seen = _seen(singles[what], file, where) if what in singles else _store_seen(made / what, before[what], where)
            yield f"{what}: {seen}"
        finally:
            file.write_bytes(content)


def _seen(load: Callable[[Path], Any], file: Path, where: str) -> str:
    try:
        load(file)
    except REFUSED:
        return "refused"
    raise AssertionError(f"{where} was not noticed")


def _store_seen(store: Path, before: list[np.ndarray], where: str) -> str:
    try:
        assert not verify_store(store, read_data=True).sound, f"{where} was not noticed by check"
        found = _arrays(store)
    except REFUSED:
        return "refused"
    assert all(np.array_equal(a, b) for a, b in zip(found, before, strict=True)), where
    return "found by check, the same numbers in reading"


def _arrays(store: Path) -> list[np.ndarray]:
    data = open_dataset(store)
    chunks = [data.read(shard) for shard in range(len(data.manifest.shards))]
    return [np.array(array) for c in chunks for array in (c.indptr, c.indices, c.data, c.y, c.qid, c.weight)]


# --- documents with anything in them ---


def _forged(rng: random.Random, document: dict) -> dict:
    """A copy in which one to three values are others, or gone."""
    changed = copy.deepcopy(document)
    for _ in range(rng.randint(1, 3)):
        path = rng.choice(list(places(changed)) or [()])
        holder: Any = changed
        for step in path[:-1]:
            holder = holder[step]
        if not path:
            continue
        if rng.random() < 0.15:
            del holder[path[-1]]
        else:
            holder[path[-1]] = rng.choice([*ODD, rng.randrange(1 << 16), rng.random(), rng.randrange(-(1 << 40), 1 << 40)])
    return changed


def manifests(rng: random.Random, made: Path) -> Iterator[str]:
    records = [manifest_of(made / name) for name in ("z.zarr", "h.store")]
    while True:
        content = sealed(_forged(rng, rng.choice(records)))
        yield _outcome(parse_manifest, content, "here")


def recipes(rng: random.Random, made: Path) -> Iterator[str]:
    record = json.loads((made / "z.zarr/recipe.json").read_bytes())
    while True:
        content = json.dumps(_forged(rng, record)).encode()
        yield _outcome(Recipe.from_json, content, refused=(ValueError, TypeError, KeyError, AttributeError))  # as readers do


def models(rng: random.Random, made: Path) -> Iterator[str]:
    parts = [contents(made / f"{name}.npz") for name in ("linear", "kernel")]
    for meta, _ in parts:
        meta["history"] = meta["history"][-1:]
    while True:
        meta, arrays = rng.choice(parts)
        yield _outcome(_built, "m.npz", _forged(rng, meta), dict(arrays), refused=(*REFUSED, MemoryError))


def checkpoints(rng: random.Random, made: Path) -> Iterator[str]:
    content = sorted((made / "run").glob("*.checkpoint"))[0].read_bytes()
    start = len(_MAGIC) + 8
    end = start + int.from_bytes(content[len(_MAGIC) : start], "little")
    header, path = json.loads(content[start:end]), made / "forged.checkpoint"
    while True:
        forged = json.dumps(_forged(rng, header)).encode()
        body = _MAGIC + len(forged).to_bytes(8, "little") + forged + content[end:-32]
        path.write_bytes(body + hashlib.sha256(body).digest())
        yield _outcome(open_checkpoint, path)


def metadata(rng: random.Random, made: Path) -> Iterator[str]:
    """zarr.json of arrays that other software has written, read through zarr-python."""
    import zarr

    from streamcut.io.stores.zarr_fallback import ZarrPythonStore

    store = made / "others.zarr"
    shutil.copytree(made / "z.zarr", store, dirs_exist_ok=True)
    group = zarr.open_group(made / "z.zarr", mode="r")
    for shard in ("000000", "000001"):
        for name, array in group[f"shards/{shard}"].arrays():
            zarr.open_group(store / f"shards/{shard}").create_array(name, data=array[...], overwrite=True)
    files = sorted(store.glob("shards/*/*/zarr.json"))
    while True:
        file = rng.choice(files)
        content = file.read_bytes()
        file.write_text(json.dumps(_forged(rng, json.loads(content))))
        yield _outcome(lambda: ZarrPythonStore(str(store)).read(int(file.parts[-3])))  # noqa: B023
        file.write_bytes(content)


def _outcome(function: Callable, *arguments: Any, refused: tuple = REFUSED) -> str:
    try:
        function(*arguments)
        return "taken"
    except refused:
        return "refused"


# --- bytes for libraries in C, in children, as they may die of them ---


def hdf5(rng: random.Random, made: Path) -> Iterator[str]:
    """Bytes of a shard changed, with checksums to match."""
    store, name = made / "h.store", "000001.h5"
    file, manifest = store / "shards" / name, store / "manifest.json"
    content, stated, record = file.read_bytes(), manifest.read_bytes(), manifest_of(store)

    def one(rng: random.Random) -> str:
        forged = _scattered(rng, content)
        record["shards"][1]["files"] = {name: [len(forged), codec.crc32c(forged)]}
        file.write_bytes(forged)
        manifest.write_bytes(sealed(record))
        return _outcome(lambda: open_dataset(store).read(1))

    while True:
        try:
            yield from _in_child(one, rng)
        finally:
            file.write_bytes(content)
            manifest.write_bytes(stated)


def frames(rng: random.Random, made: Path) -> Iterator[str]:
    """Bytes of a Blosc frame changed."""
    array = np.random.default_rng(0).integers(0, 50, 4000).astype(np.int32)
    content, out = codec.encode(array), np.empty_like(array)

    def one(rng: random.Random) -> str:
        return _outcome(codec.decode, np.frombuffer(_scattered(rng, content), np.uint8), out, refused=(ValueError, MemoryError))

    while True:
        yield from _in_child(one, rng)


def _scattered(rng: random.Random, content: bytes) -> bytes:
    """A few bytes changed, half of them near the beginning or the end, where headers are; or some cut out or doubled."""
    forged = bytearray(content)
    for _ in range(rng.randint(1, 6)):
        reach = len(forged) if rng.random() < 0.5 else min(len(forged), 2048)
        at = rng.randrange(reach) if rng.random() < 0.8 else len(forged) - 1 - rng.randrange(reach)
        forged[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256), forged[at] ^ 1 << rng.randrange(8)])
    if rng.random() < 0.1:
        at, length = rng.randrange(len(forged)), rng.randrange(1, 64)
        forged[at : at + length] = forged[at : at + length] * rng.choice([0, 2])
    return bytes(forged)


def _in_child(one: Callable[[random.Random], str], rng: random.Random) -> Iterator[str]:
    """Some inputs in a forked child; what it says of each."""
    seed = rng.randrange(1 << 60)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(_CHILD_SECONDS)  # ends it by its signal
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


FUZZERS: dict[str, Callable[[random.Random, Path], Iterator[str]]] = {
    each.__name__: each
    for each in (flips, manifests, recipes, models, checkpoints, metadata, hdf5, frames)
} | TEXTS  # fmt: skip
