"""Which codecs an untrusted array may have been written with: those that only turn bytes into bytes.

zarr-python accepts any codec that numcodecs knows, and one of them unpickles, which runs code from the file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

KNOWN = {
    "bytes", "transpose", "sharding_indexed", "vlen-utf8", "vlen-bytes", "vlen-array",
    "blosc", "zstd", "gzip", "zlib", "bz2", "lzma", "lz4",
    "shuffle", "bitshuffle", "delta", "fixedscaleoffset", "quantize", "bitround", "astype", "packbits",
    "crc32", "crc32c", "adler32", "fletcher32", "jenkins_lookup3",
}  # fmt: skip


def expect_plain(array: Any, most: int) -> None:
    """Raise ValueError for a zarr.Array with a codec that is not in KNOWN, or with chunks of more than `most` bytes."""
    metadata = array.metadata.to_dict()
    for name in _codecs(metadata):
        if name.removeprefix("numcodecs.") not in KNOWN:
            raise ValueError(f"codec {name!r} is not allowed")
    size = getattr(array.dtype, "itemsize", 8) * math.prod(int(side) for side in array.chunks)
    if size > most:
        raise ValueError(f"a chunk would take {size:,} bytes; {most:,} is the maximum")


def _codecs(metadata: dict[str, Any]) -> Iterator[str]:
    """Names of all codecs, nested ones included."""
    for key in ("codecs", "index_codecs", "filters", "compressor", "compressors"):
        found = metadata.get(key) or ()
        for codec in found if isinstance(found, list | tuple) else (found,):
            config = codec if isinstance(codec, dict) else codec.get_config() if hasattr(codec, "get_config") else codec.to_dict()
            yield str(config.get("id", config.get("name")))
            if isinstance(config.get("configuration"), dict):
                yield from _codecs(config["configuration"])
