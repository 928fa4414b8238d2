"""One array ↔ one Zarr v3 chunk file: bytes → blosc(lz4, shuffle) → crc32c. Uses numcodecs; knows no paths.

A chunk file is the *payload* (a Blosc 1 frame) and four bytes: the payload's CRC-32C, little-endian. Elsewhere
the file is guarded by the CRC of the payload, because the CRC of data followed by its own CRC is the same number for all data.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import google_crc32c
import numpy as np
from numcodecs import blosc

from streamcut.foundation.systems import map_nothing

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
