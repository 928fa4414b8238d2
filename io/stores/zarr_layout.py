"""The layout of a Zarr store and the content of its zarr.json files: everything but the bytes of the arrays."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from streamcut.io.manifest import ArrayInfo, ShardInfo
from streamcut.io.stores.codec import CODEC, TRAILER, crc32c, encode, trailer
from streamcut.io.stores.spec import CSR_ATTRIBUTES, DICT_ATTRIBUTES, FORMAT_VERSION, SHARDS, shard_name

METADATA = "zarr.json"
CHUNK = "c.0"  # the key of the only chunk under separator ".": saves a directory
ITEM_BYTES = {"int8": 1, "int32": 4, "int64": 8, "float32": 4, "float64": 8}


def group_document(attributes: dict) -> bytes:
    return _document({"zarr_format": 3, "node_type": "group", "attributes": attributes})


def root_document() -> bytes:
    """zarr.json of the store; `streamcut` identifies a store that has lost its manifest."""
    return group_document({**DICT_ATTRIBUTES, "streamcut": FORMAT_VERSION})


def array_document(dtype: str, size: int) -> bytes:
    """zarr.json of an array of `size` elements in one chunk. An empty array has a grid but no chunk."""
    item = ITEM_BYTES[dtype]
    return _document(
        {
            "zarr_format": 3,
            "node_type": "array",
            "shape": [size],
            "data_type": dtype,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [max(1, size)]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
            "fill_value": 0.0 if dtype.startswith("float") else 0,
            "codecs": [
                {"name": "bytes", "configuration": {"endian": "little"}} if item > 1 else {"name": "bytes"},
                {"name": "blosc", "configuration": {"typesize": item, **CODEC}},
                {"name": "crc32c"},
            ],
            "attributes": {},
        }
    )


def chunk_name(shard: int, name: str) -> str:
    """The path of an array's chunk inside its store."""
    return f"{SHARDS}/{shard_name(shard)}/{name}/{CHUNK}"


def chunk_length(info: ArrayInfo) -> int:
    """Length of the chunk file; 0 when there is none."""
    return info.stored_bytes + TRAILER if info.size else 0


def shard_documents(info: ShardInfo, n_features: int) -> dict[str, bytes]:
    """The zarr.json files of a shard by their path inside its folder."""
    arrays = {f"{name}/{METADATA}": array_document(array.dtype, array.size) for name, array in info.arrays.items()}
    return {METADATA: group_document({**CSR_ATTRIBUTES, "shape": [info.rows, n_features]}), **arrays}


def encoded(
    shard: int,
    arrays: Iterable[tuple[str, np.ndarray]],
    rows: int,
    n_features: int,
    found: dict[str, ArrayInfo],
    guards: dict[str, tuple[int, int]],
) -> Iterator[tuple[str, tuple[bytes, ...]]]:
    """(name, parts) of each file of a shard, one after the other, but those of `finished`; describes the arrays in `found`."""
    for name, array in arrays:
        payload = encode(array) if len(array) else b""
        found[name] = described(array, payload)
        if payload:
            yield chunk_name(shard, name), (payload, trailer(found[name].stored_crc32c))
        del payload  # otherwise held while the next one is made
        yield f"{SHARDS}/{shard_name(shard)}/{name}/{METADATA}", (array_document(array.dtype.name, len(array)),)


def described(array: np.ndarray, payload: bytes = b"") -> ArrayInfo:
    """What the manifest says of an array, and of the payload of its chunk file."""
    return ArrayInfo(array.dtype.name, len(array), crc32c(array), len(payload), crc32c(payload) if payload else 0)


def finished(files: Any, shard: int, info: ShardInfo, n_features: int) -> ShardInfo:
    """The shard, once the file that depends on the number of features is written to `files`, a Folder or Objects."""
    documents = shard_documents(info, n_features)
    files.put([(f"{SHARDS}/{shard_name(shard)}/{METADATA}", (documents[METADATA],))])
    return replace(info, files=guards(documents))


def shard_lengths(shard: int, info: ShardInfo) -> dict[str, int]:
    """{name: length} of the files of a shard that hold its arrays."""
    return {chunk_name(shard, name): chunk_length(array) for name, array in info.arrays.items() if array.size}


def store_documents() -> dict[str, bytes]:
    """The zarr.json files above the shards by their path inside the store."""
    return {METADATA: root_document(), f"{SHARDS}/{METADATA}": group_document(DICT_ATTRIBUTES)}


def guards(documents: dict[str, bytes]) -> dict[str, tuple[int, int]]:
    """(length, CRC-32C) of each document, as the manifest records them."""
    return {path: (len(content), crc32c(content)) for path, content in documents.items()}


def _document(content: dict) -> bytes:
    return json.dumps(content, indent=2).encode() + b"\n"
