"""The layout of a Zarr store and the content of its zarr.json files: everything but the bytes of the arrays."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from streamcut.io.manifest import ArrayInfo, ShardInfo, chunk_name
from streamcut.io.stores.codec import CODEC, crc32c, encode, trailer
from streamcut.io.stores.files import Files
from streamcut.io.stores.spec import CSR_ATTRIBUTES, DICT_ATTRIBUTES, FORMAT_VERSION, METADATA, SHARDS, shard_name

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


def described(array: np.ndarray, payload: bytes = b"") -> ArrayInfo:
    """What the manifest says of an array, and of the payload of its chunk file."""
    return ArrayInfo(array.dtype.name, len(array), crc32c(array), len(payload), crc32c(payload) if payload else 0)


def finished(files: Files, shards: Sequence[ShardInfo], n_features: int) -> tuple[tuple[ShardInfo, ...], dict[str, bytes]]:
    """(the shards, once their metadata are written to `files`; {path: content} of the metadata above them)."""
    documents = [_shard_documents(info, n_features) for info in shards]
    files.put(
        (f"{SHARDS}/{shard_name(shard)}/{path}", (content,))
        for shard, below in enumerate(documents)
        for path, content in below.items()
    )
    above = {METADATA: root_document(), f"{SHARDS}/{METADATA}": group_document(DICT_ATTRIBUTES)}
    return tuple(replace(info, files=guards(below)) for info, below in zip(shards, documents, strict=True)), above


def _shard_documents(info: ShardInfo, n_features: int) -> dict[str, bytes]:
    """The zarr.json files of a shard by their path inside its folder."""
    arrays = {f"{name}/{METADATA}": array_document(array.dtype, array.size) for name, array in info.arrays.items()}
    return {METADATA: group_document({**CSR_ATTRIBUTES, "shape": [info.rows, n_features]}), **arrays}


def guards(documents: dict[str, bytes]) -> dict[str, tuple[int, int]]:
    """(length, CRC-32C) of each document, as the manifest records them."""
    return {path: (len(content), crc32c(content)) for path, content in documents.items()}


def _document(content: dict) -> bytes:
    return json.dumps(content, indent=2).encode() + b"\n"
