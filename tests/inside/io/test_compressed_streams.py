"""Compressed streams one behind the other, and bombs."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tracemalloc

import pytest
import zstandard

from streamcut.io.text.inputs import open_bytes

COMPRESS = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
}


class Pipe(io.BytesIO):
    """Bytes that arrive in small pieces and can't be sought."""

    def seekable(self) -> bool:
        return False

    def read(self, size=-1) -> bytes:
        return super().read(min(size, 3) if size > 0 else size)

    def readinto(self, target) -> int:
        return super().readinto(memoryview(target)[:7])


def decompressed(data: bytes, piece: int = 1 << 16, kind=io.BytesIO) -> bytes:
    stream, _ = open_bytes(kind(data), "name")
    out, buffer = [], bytearray(piece)
    while n := stream.readinto(buffer):
        out.append(bytes(buffer[:n]))
    return b"".join(out)


TEXT = os.urandom(3000) + b"1 1:1\n" * 30_000


@pytest.mark.parametrize("kind", COMPRESS)
def test_streams_one_behind_the_other(kind):
    compress = COMPRESS[kind]
    assert open_bytes(io.BytesIO(compress(b"")), "name")[1] == kind
    assert decompressed(compress(TEXT)) == TEXT
    assert decompressed(compress(TEXT), piece=1000, kind=Pipe) == TEXT
    assert decompressed(compress(TEXT) + compress(b"") + compress(b"end")) == TEXT + b"end"
    if kind in ("gzip", "bzip2"):
        assert decompressed(compress(TEXT) + bytes(512)) == TEXT  # blocks of a tape
    assert decompressed(compress(b"")) == b""


def test_zstd_bombs_take_bounded_memory():
    data = COMPRESS["zstd"](bytes(1 << 30))
    tracemalloc.start()
    stream, _ = open_bytes(io.BytesIO(data), "name")
    buffer = bytearray(1 << 20)
    assert sum(iter(lambda: stream.readinto(buffer), 0)) == 1 << 30
    assert tracemalloc.get_traced_memory()[1] < 100_000_000
    tracemalloc.stop()
