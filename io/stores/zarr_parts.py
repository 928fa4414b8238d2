"""A local native store whose shards are read in parts: the same rows, in the memory of a few Blosc blocks per array.

A chunk file is one Blosc frame, whose blocks (512 KiB decoded, mostly) are compressed independently. So any range of an array
needs only the frame's header and the blocks that contain it: they are read, put after a header of their own, and decoded. On
first use the whole file is read and compared with its checksum. The checksums of its blocks are kept, and each block is compared
with its own whenever it is read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace

import google_crc32c
import numpy as np

from streamcut.io.manifest import ShardInfo
from streamcut.io.stores.buffers import Buffers
from streamcut.io.stores.codec import HEADER, TRAILER, decode
from streamcut.io.stores.guarded import damaged, fetch_ahead, read_exactly
from streamcut.io.stores.parts import PART, Parts
from streamcut.io.stores.zarr_layout import chunk_length, chunk_name, chunk_path
from streamcut.io.stores.zarr_store import ZarrStore

_COPIED = 2  # bit of a frame's flags: the content is not compressed
_BLOCK = 1 << 17  # most elements of a decoded block, with our options


@dataclass(frozen=True, slots=True)
class _Frame:
    """The block structure of a verified chunk file.

    flags   the first four bytes of its header; size: decoded bytes, `block` of them in a block
    bounds  int64 (blocks, 2): where each block begins and ends in the file; checksums: CRC-32C of each
    """

    flags: bytes
    size: int
    block: int
    bounds: np.ndarray
    checksums: tuple[int, ...]


class PartBuffers(Buffers):
    """Buffers for parts that keep the last, partly used blocks of each array: a part begins where the previous one ends."""

    def __init__(self, shards: Iterable[ShardInfo]) -> None:
        super().__init__(shards)
        self._held: dict[str, tuple[tuple[int, int], np.ndarray]] = {}

    def held(self, name: str, place: tuple[int, int]) -> np.ndarray | None:
        """The decoded blocks of array `name` at `place` (shard, block), if they were kept last."""
        known = self._held.get(name)
        return known[1] if known is not None and known[0] == place else None

    def hold(self, name: str, place: tuple[int, int], size: int, most: int) -> np.ndarray:
        """Memory, uint8 (size,), for what `held` will return, never more than `most` bytes."""
        room = self._held[name][1].base if name in self._held else None
        if room is None or len(room) < size:
            room = np.empty(most, np.uint8)
        self._held[name] = place, room[:size]
        return self._held[name][1]

    def forget(self, name: str) -> None:
        """Discard memory from `hold` that was not filled."""
        self._held.pop(name, None)


class ZarrParts(Parts):
    """Parts of a native store on a local disk."""

    def __init__(self, store: ZarrStore, entries: int = PART) -> None:
        self._frames = dict[tuple[int, str], _Frame]()
        super().__init__(store, entries)

    def indptr(self, shard: int) -> np.ndarray:
        info = self._store.manifest.shards[shard]
        out = np.empty(info.rows + 1, info.arrays["indptr"].dtype)
        alone = replace(info, arrays={"indptr": info.arrays["indptr"]}, files={})
        self._store.fill(shard, {"indptr": out}, Buffers([alone]))
        return out

    def room(self, info: ShardInfo, sizes: dict[str, int]) -> int:
        """Memory for the parts of a chunk that are read, and for the blocks that buffers hold."""
        whole = {name: array.size * np.dtype(array.dtype).itemsize for name, array in info.arrays.items()}
        needed = {name: (sizes[name] + 2 * _BLOCK) * np.dtype(array.dtype).itemsize for name, array in info.arrays.items()}
        read = max((min(needed[name], size) for name, size in whole.items()), default=0)
        held = sum(min(2 * _BLOCK * np.dtype(info.arrays[name].dtype).itemsize, size) for name, size in whole.items())
        return read + read // 64 + 1024 + held

    def read_range(self, shard: int, name: str, first: int, out: np.ndarray, buffers: Buffers) -> None:
        assert isinstance(buffers, PartBuffers)
        frame = self._frame(shard, name, buffers.raw)
        try:
            self._decode(shard, name, frame, first * out.itemsize, out.view(np.uint8), buffers)
        except ValueError as error:
            raise damaged(chunk_path(str(self.path), shard, name), str(error)) from None

    def buffers(self, shards: Iterable[ShardInfo] | None = None) -> PartBuffers:
        return PartBuffers(self.manifest.shards if shards is None else shards)

    def expect(self, *shards: int) -> None:
        for number in shards[:2]:
            for name, info in self.manifest.shards[number].arrays.items():
                part = self._parts[number]
                if (frame := self._frames.get((part.shard, name))) is not None and info.size:
                    at = part.first(name) * np.dtype(info.dtype).itemsize
                    last = min(at + info.size * np.dtype(info.dtype).itemsize - 1, frame.size - 1) // frame.block
                    begin, end = int(frame.bounds[at // frame.block, 0]), int(frame.bounds[last, 1])
                    fetch_ahead(str(self.path), chunk_name(part.shard, name), end - begin, begin)

    def _decode(self, shard: int, name: str, frame: _Frame, at: int, out: np.ndarray, buffers: PartBuffers) -> None:
        """Decode the bytes from `at` on of an array into `out`: whole blocks directly, partial ones through the buffers."""
        start, stop = at, at + len(out)
        while start < stop:
            block = start // frame.block
            left = block * frame.block
            blocks = min(stop, frame.size) // frame.block - block + (stop == frame.size and frame.size % frame.block > 0)
            alone = blocks == 1 and left + frame.block > frame.size and block > 0
            if start == left and blocks > 0 and not alone:
                end = min(left + blocks * frame.block, frame.size)
                self._blocks(shard, name, frame, block, blocks, out[start - at : end - at], buffers)
            else:
                held, left = self._held(shard, name, frame, block, buffers)
                end = min(left + len(held), stop)
                out[start - at : end - at] = held[start - left : end - left]
            start = end

    def _held(self, shard: int, name: str, frame: _Frame, block: int, buffers: PartBuffers) -> tuple[np.ndarray, int]:
        """A decoded block and its first byte in the array. A short last block is decoded with its predecessor: a Blosc frame is
        no shorter than its blocks."""
        short = block > 0 and (block + 1) * frame.block > frame.size
        first, count = block - short, 1 + short
        left = first * frame.block
        held = buffers.held(name, (shard, first + count))
        if held is None:
            held = buffers.hold(
                name, (shard, first + count), min(left + count * frame.block, frame.size) - left, min(2 * frame.block, frame.size)
            )
            try:
                self._blocks(shard, name, frame, first, count, held, buffers)
            except BaseException:
                buffers.forget(name)
                raise
        return held, left

    def _blocks(
        self, shard: int, name: str, frame: _Frame, first: int, count: int, out: np.ndarray, buffers: PartBuffers
    ) -> None:
        """Decode `count` blocks of a chunk from `first` on into `out`. Raises ValueError."""
        bounds, header = frame.bounds[first : first + count], HEADER.size + 4 * count
        begin, end = int(bounds[:, 0].min()), int(bounds[:, 1].max())
        payload = buffers.raw[: header + end - begin]
        if len(payload) < header + end - begin:
            raise ValueError("has longer blocks than streamcut writes")
        length = chunk_length(self._store.manifest.shards[shard].arrays[name])
        content = read_exactly(str(self.path), chunk_name(shard, name), length, payload[header:], begin)
        for (start, stop), checksum in zip((bounds - begin).tolist(), frame.checksums[first : first + count], strict=True):
            if google_crc32c.value(content[start:stop]) != checksum:
                raise ValueError("changed while it was in use")
        if frame.flags[2] & _COPIED:
            out[:] = content
            return
        payload[: HEADER.size] = np.frombuffer(HEADER.pack(*frame.flags, len(out), frame.block, len(payload)), np.uint8)
        payload[HEADER.size : header] = (bounds[:, 0] - begin + header).astype("<u4").view(np.uint8)
        decode(payload, out)

    def _frame(self, shard: int, name: str, raw: np.ndarray) -> _Frame:
        """The frame of a chunk, which is read to the end the first time. Raises CorruptError."""
        if (known := self._frames.get((shard, name))) is None:
            known = self._frames[shard, name] = self._examined(shard, name, raw)
        return known

    def _examined(self, shard: int, name: str, raw: np.ndarray) -> _Frame:
        info = self._store.manifest.shards[shard].arrays[name]
        root = str(self.path)
        file, length, path = chunk_name(shard, name), chunk_length(info), chunk_path(root, shard, name)

        def read(start: int, stop: int) -> np.ndarray:
            return read_exactly(root, file, length, raw[: stop - start], start)

        end = length - TRAILER
        try:
            *flags, size, block, encoded = HEADER.unpack(read(0, HEADER.size).tobytes())
            expected = info.size * np.dtype(info.dtype).itemsize
            if size != expected or encoded != end or block <= 0:
                raise ValueError(f"holds {size} bytes in {encoded}, not {expected} in {end}")
            blocks = -(-size // block)
            if flags[2] & _COPIED:
                starts = HEADER.size + block * np.arange(blocks)
            else:
                starts = read(HEADER.size, HEADER.size + 4 * blocks).view("<u4").astype(np.int64)
            ordered = np.append(np.unique(starts), end)
            if (
                len(ordered) != blocks + 1
                or ordered[0] < HEADER.size
                or (np.diff(ordered) > min(block + 64, len(raw))).any()
                or ordered[-2] >= end
            ):
                raise ValueError("has invalid blocks")
        except (ValueError, struct.error) as error:
            raise damaged(path, str(error)) from None
        crc = google_crc32c.value(read(0, int(ordered[0])))
        checksums = {}
        for start, stop in zip(ordered[:-1].tolist(), ordered[1:].tolist(), strict=True):
            content = read(start, stop)
            checksums[start] = google_crc32c.value(content)
            crc = google_crc32c.extend(crc, content)
        if struct.pack("<I", crc) != read(end, length).tobytes():
            raise damaged(path, "does not have the checksum at its end")
        if crc != info.stored_crc32c:
            raise damaged(path, "is sound, but not the file that the manifest describes")
        stops = ordered[np.searchsorted(ordered, starts) + 1]
        return _Frame(
            bytes(flags), size, block, np.stack([starts, stops], axis=1), tuple(checksums[each] for each in starts.tolist())
        )
