"""The layout of a Zarr store: the content of its zarr.json files, and how an array becomes the bytes of its chunk file.

A chunk file is the *payload* (a Blosc 1 frame, by numcodecs) and four bytes: the payload's CRC-32C, little-endian. Elsewhere
the file is guarded by the CRC of the payload, because the CRC of data followed by its own CRC is the same number for all data.
"""

from __future__ import annotations

import json
import struct
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import google_crc32c
import numpy as np
from numcodecs import blosc

from streamcut.foundation.systems import map_nothing
from streamcut.io.manifest import ArrayInfo, ShardInfo, chunk_name
from streamcut.io.stores.files import Files
from streamcut.io.stores.spec import CSR_ATTRIBUTES, DICT_ATTRIBUTES, FORMAT_VERSION, METADATA, SHARDS, shard_name

# Blosc's own thread pool takes one global lock; without it each lane decodes in its own thread.
blosc.use_threads = False

CODEC: dict[str, Any] = {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "blocksize": 0}
MAX_BYTES = blosc.MAX_BUFFERSIZE  # per decoded array: a limit of Blosc 1
_scarce = threading.Lock()
HEADER = struct.Struct("<4BIII")


def crc32c(data: np.ndarray | bytes) -> int:
    """CRC-32C (Castagnoli) of the bytes of `data`, which must be contiguous."""
    return google_crc32c.value(data if isinstance(data, bytes) else data.view(np.uint8))


def trailer(crc: int) -> bytes:
    return struct.pack("<I", crc)


def read_trailer(data: np.ndarray) -> int:
    return struct.unpack("<I", data.tobytes())[0]


def encode(array: np.ndarray) -> bytes:
    """The payload for a contiguous little-endian `array` of at most MAX_BYTES. The same array always gives the same bytes."""
    return blosc.compress(array, CODEC["cname"].encode(), CODEC["clevel"], blosc.SHUFFLE, CODEC["blocksize"])


def decode(payload: np.ndarray, out: np.ndarray) -> None:
    """Decompress `payload` (uint8) into `out`, contiguous and of the right size. Raises ValueError when they don't fit.

    The lengths in the frame's header are checked first: Blosc trusts the header for the input length.
    """
    if len(payload) < HEADER.size:
        raise ValueError(f"{len(payload)} bytes are not a Blosc frame")
    _, _, _, _, decoded, block, encoded = HEADER.unpack(payload[: HEADER.size].tobytes())
    if decoded != out.nbytes or encoded != len(payload):
        raise ValueError(f"holds {decoded} bytes in {encoded}, not {out.nbytes} in {len(payload)}")
    with _room_for(4 * min(block, out.nbytes) + (1 << 16)):
        try:
            blosc.decompress(payload, out)
        except RuntimeError as error:
            raise ValueError(f"does not decompress ({error})") from None


@contextmanager
def _room_for(size: int) -> Iterator[None]:
    """Raise MemoryError unless `size` bytes are free: Blosc does not check its allocations, and would crash.

    Where memory is scarce, threads decode one at a time, so that none takes memory promised to another.
    """
    with nullcontext() if _can_have(8 * size) else _scarce:
        if not _can_have(size):
            raise MemoryError(f"{size:,} bytes for decompression cannot be allocated")
        yield


def _can_have(size: int) -> bool:
    try:
        map_nothing(size)
    except OSError:
        return False
    return True


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
