"""Endless wrong input from a seed: bits flipped in files that have checksums, and files forged with checksums to match.

Every fuzzer is a generator: each step makes one input, shows it to the product, and yields what became of it. A finding is an
AssertionError, any exception that is no refusal, and the death of a child. test_fuzzing takes the first steps of each,
scripts/checks/fuzz.py as many as it is told.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from kit.fuzzing import _TASKS, REFUSED, _arrays, _in_child, _outcome, _seen
from kit.hostile_store import manifest_of
from kit.mutations import forged_array, forged_document, scattered

import streamcut
from inside.kit.forging import forge
from inside.kit.fuzzing_doors import DOORS
from inside.kit.fuzzing_text import TEXTS
from inside.kit.hostile_store import sealed
from streamcut.errors import StreamcutError
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.formats.registry import FORMATS
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.stores import codec
from streamcut.io.stores.manifest_file import parse_manifest
from streamcut.io.stores.verify import verify_store
from streamcut.io.tables.opening import OpenedTables
from streamcut.models.checkpoint import _MAGIC, open_checkpoint

# --- single bits ---


def flips(rng: random.Random, made: Path) -> Iterator[str]:
    """One bit of one file of a store or a checkpoint: detected, or the same numbers."""
    stores = {name: [path for path in sorted((made / name).rglob("*")) if path.is_file()] for name in ("z.zarr", "h.store")}
    before = {name: _arrays(made / name) for name in stores}
    singles = {"run": open_checkpoint}
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


def _store_seen(store: Path, before: list[np.ndarray], where: str) -> str:
    try:
        assert not verify_store(store, read_data=True).sound, f"{where} was not noticed by check"
        found = _arrays(store)
    except REFUSED:
        return "refused"
    assert all(np.array_equal(a, b) for a, b in zip(found, before, strict=True)), where
    return "found by check, the same numbers in reading"


# --- documents with anything in them ---


def manifests(rng: random.Random, made: Path) -> Iterator[str]:
    records = [manifest_of(made / name) for name in ("z.zarr", "h.store")]
    while True:
        content = sealed(forged_document(rng, rng.choice(records)))
        yield _outcome(parse_manifest, content, "here")


def recipes(rng: random.Random, made: Path) -> Iterator[str]:
    """What is taken for a recipe makes rows of a table, or says what the table lacks."""
    records = [json.loads((made / name / "recipe.json").read_bytes()) for name in ("z.zarr", "t.zarr", "t.zarr", "t.zarr")]

    def used(content: bytes) -> None:
        recipe = Recipe.from_json(content)
        if recipe.table is not None:
            source = OpenedTables([FORMATS["csv"].table(str(made / "t.csv"))], ConvertOptions(recipe=recipe)).rows(
                1 << 10, 1 << 16, 1, grouped=True
            )
            for chunk, _ in source.blocks():
                assert chunk.nnz == 0 or chunk.indices.max() < source.n_features

    while True:
        content = json.dumps(forged_document(rng, rng.choice(records))).encode()
        yield _outcome(used, content, refused=(ValueError, StreamcutError))


def checkpoints(rng: random.Random, made: Path) -> Iterator[str]:
    content = sorted((made / "run").glob("*.checkpoint"))[0].read_bytes()
    start = len(_MAGIC) + 8
    end = start + int.from_bytes(content[len(_MAGIC) : start], "little")
    header, path = json.loads(content[start:end]), made / "forged.checkpoint"
    while True:
        forged = json.dumps(forged_document(rng, header)).encode()
        body = _MAGIC + len(forged).to_bytes(8, "little") + forged + content[end:-32]
        path.write_bytes(body + hashlib.sha256(body).digest())
        yield _outcome(open_checkpoint, path)


def stores(rng: random.Random, made: Path) -> Iterator[str]:
    """A store with a forged manifest, or with forged arrays under right sums, is checked, read and trained on."""
    store = made / "forged.zarr"
    shutil.copytree(made / "z.zarr", store, dirs_exist_ok=True)
    before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    chunks = [streamcut.open(store).read(shard) for shard in (0, 1)]
    names = ("indptr", "indices", "data", "y", "qid", "weight")
    arrays = [{name: np.array(getattr(chunk, name)) for name in names} for chunk in chunks]

    def used(options: dict[str, Any]) -> None:
        verify_store(store, read_data=True)
        streamcut.train(str(store), scheduler="sync", max_passes=2, **options)

    for options in _TASKS:
        _outcome(used, options, refused=(StreamcutError,))  # so that children have the kernels

    def one(rng: random.Random) -> str:
        try:
            if rng.random() < 0.3:
                (store / "manifest.json").write_bytes(sealed(forged_document(rng, manifest_of(store))))
            else:
                shard, wrong = rng.randrange(2), rng.sample(names, rng.randint(1, 2))
                forge(store, shard, {name: forged_array(rng, arrays[shard][name]) for name in wrong})
            options = dict(rng.choice(_TASKS))
            options |= {} if "epochs" in options else {"tol": 1e-9}
            return _outcome(used, options, refused=(StreamcutError, MemoryError))
        finally:
            for path, content in before.items():
                path.write_bytes(content)

    while True:
        yield from _in_child(one, rng)


# --- bytes for libraries in C, in children, as they may die of them ---


def hdf5(rng: random.Random, made: Path) -> Iterator[str]:
    """Bytes of a shard changed, with checksums to match."""
    store, name = made / "h.store", "000001.h5"
    file, manifest = store / "shards" / name, store / "manifest.json"
    content, stated, record = file.read_bytes(), manifest.read_bytes(), manifest_of(store)

    def one(rng: random.Random) -> str:
        forged = scattered(rng, content)
        record["shards"][1]["files"] = {name: [len(forged), codec.crc32c(forged)]}
        file.write_bytes(forged)
        manifest.write_bytes(sealed(record))
        return _outcome(lambda: streamcut.open(store).read(1))

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
        return _outcome(codec.decode, np.frombuffer(scattered(rng, content), np.uint8), out, refused=(ValueError, MemoryError))

    while True:
        yield from _in_child(one, rng)


FUZZERS: dict[str, Callable[[random.Random, Path], Iterator[str]]] = {
    each.__name__: each
    for each in (flips, manifests, recipes, checkpoints, stores, hdf5, frames)
} | DOORS | TEXTS  # fmt: skip
