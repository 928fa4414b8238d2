"""The layout of a Zarr store: the content of its zarr.json files, and how an array becomes the bytes of its chunk file.

A chunk file is the *payload* (a Blosc 1 frame, by numcodecs) and four bytes: the payload's CRC-32C, little-endian. Elsewhere
the file is guarded by the CRC of the payload, because the CRC of data followed by its own CRC is the same number for all data.
"""

from __future__ import annotations

import json
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import google_crc32c
import numpy as np
from numcodecs import blosc

from streamcut.foundation.chunk import Chunk
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


def group_document(attributes: dict) -> bytes:
    return _document({"zarr_format": 3, "node_type": "group", "attributes": attributes})


def root_document() -> bytes:
    """zarr.json of the store; `streamcut` identifies a store that has lost its manifest."""
    return group_document({**DICT_ATTRIBUTES, "streamcut": FORMAT_VERSION})


def array_document(dtype: str, size: int) -> bytes:
    """zarr.json of an array of `size` elements in one chunk. An empty array has a grid but no chunk."""
    item = np.dtype(dtype).itemsize
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


def write(files: Files, shard: int, rows: Chunk, n_features: int) -> ShardInfo:
    """Encode and write a shard, but for its metadata; for HDF5 `n_features` is in its file, −1 while unknown."""
    from streamcut.io.stores.structure import narrowed  # Numba, not needed to show a store

    arrays: dict[str, ArrayInfo] = {}

    def chunks() -> Iterator[tuple[str, tuple[bytes, ...]]]:
        for name, array in narrowed(rows):
            payload = encode(array) if len(array) else b""
            arrays[name] = described(array, payload)
            if payload:
                yield chunk_name(shard, name), (payload, trailer(arrays[name].stored_crc32c))
            del payload  # otherwise held while the next one is made

    files.put(chunks())
    return ShardInfo(rows.n_rows, rows.nnz, bool(np.all(rows.data == 1)), arrays)


def described(array: np.ndarray, payload: bytes = b"") -> ArrayInfo:
    """What the manifest says of an array, and of the payload of its chunk file."""
    return ArrayInfo(array.dtype.name, len(array), crc32c(array), len(payload), crc32c(payload) if payload else 0)


def finish(files: Files, shards: Sequence[ShardInfo], n_features: int) -> tuple[tuple[ShardInfo, ...], dict[str, bytes]]:
    """(the shards, once their metadata are written to `files`; {path: content} of the metadata above them)."""
    documents = []
    for info in shards:
        below = {METADATA: group_document({**CSR_ATTRIBUTES, "shape": [info.rows, n_features]})}
        documents.append(below | {f"{name}/{METADATA}": array_document(a.dtype, a.size) for name, a in info.arrays.items()})
    files.put(
        (f"{SHARDS}/{shard_name(shard)}/{path}", (content,))
        for shard, below in enumerate(documents)
        for path, content in below.items()
    )
    above = {METADATA: root_document(), f"{SHARDS}/{METADATA}": group_document(DICT_ATTRIBUTES)}
    return tuple(replace(info, files=guards(below)) for info, below in zip(shards, documents, strict=True)), above


def guards(documents: dict[str, bytes]) -> dict[str, tuple[int, int]]:
    """(length, CRC-32C) of each document, as the manifest records them."""
    return {path: (len(content), crc32c(content)) for path, content in documents.items()}


def _document(content: dict) -> bytes:
    return json.dumps(content, indent=2).encode() + b"\n"
