"""NumPy arrays in untrusted files: `.npy` files, and zip files of them (`.npz`).

Nothing is unpickled, and everything checkable is checked: an array is as long as its member, whose method and flags are
those of plain zip files; names are unique; and neither the directory of an archive nor the header of an array takes more
memory than plausible. ValueError says what is wrong.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Iterable
from typing import Any, BinaryIO, cast

import numpy as np

_DIRECTORY = 1 << 20  # bytes that zipfile reads at once; its objects are ten times as large
_HEADER = 1 << 14  # bytes of the description of an array
_FLAGS = {0x1: "encrypted", 0x20: "patched data", 0x40: "encrypted", 0x2000: "encrypted"}
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_PIECE = 1 << 20
SUFFIX = ".npy"


def array_header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
    """(shape, Fortran order, dtype) of the .npy array that begins here; `file` is then positioned at its numbers.

    Raises ValueError if it is not one, and for object arrays.
    """
    version = np.lib.format.read_magic(file)
    width = 2 if version == (1, 0) else 4
    head = _exactly(file, width)
    size = int.from_bytes(head, "little")
    if size > _HEADER:
        raise ValueError(f"an array header of {size:,} bytes")
    content = io.BytesIO(head + _exactly(file, size))
    read = np.lib.format.read_array_header_1_0 if width == 2 else np.lib.format.read_array_header_2_0
    try:
        shape, by_columns, dtype = read(content)
    except Exception:  # including errors of the tokenizer: the header is a Python literal
        raise ValueError("not the header of an array") from None
    if dtype.hasobject:
        raise ValueError("it holds objects, which allow_pickle=False refuses")
    if not all(type(side) is int and side >= 0 for side in shape):
        raise ValueError(f"an array of shape {shape}")
    return shape, by_columns, dtype


def _exactly(file: Any, count: int) -> bytes:
    found = file.read(count)
    if len(found) != count:
        raise ValueError("ends early")
    return found


class Member:
    """One array of an archive, read from front to back."""

    def __init__(self, file: BinaryIO, about: zipfile.ZipInfo) -> None:
        self._file, size = file, about.file_size
        self.stored = about.compress_type == zipfile.ZIP_STORED and about.compress_size == size
        self.shape, self.by_columns, self.dtype = array_header(file)
        if file.tell() + math.prod(self.shape) * self.dtype.itemsize != size:
            raise ValueError(f"is not as long as it says: {self.dtype} of shape {self.shape} in {size:,} bytes")

    def __enter__(self) -> Member:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    def skip(self, count: int) -> None:
        while count > 0:
            count -= len(self.read(min(count, _PIECE)))

    def read(self, count: int) -> np.ndarray:
        """The next `count` numbers. Raises ValueError where there are fewer."""
        out = np.empty(count, self.dtype)
        view = out.view(np.uint8).data if out.nbytes else memoryview(b"")
        while view:
            got = self._file.readinto(view)  # type: ignore[attr-defined]
            if not got:
                raise ValueError("ends early")
            view = view[got:]
        return out

    def expect_end(self) -> None:
        """Raise ValueError unless all was read and the archive's checksum matches."""
        if self._file.read(1):
            raise ValueError("is longer than it says")

    def whole(self) -> np.ndarray:
        """The whole array; must be the first call."""
        flat = self.read(math.prod(self.shape))
        self.expect_end()
        return flat.reshape(self.shape, order="F" if self.by_columns else "C")


class Archive:
    """The arrays of an .npz file; `names` are theirs. The file closes with the archive."""

    def __init__(self, file: BinaryIO) -> None:
        try:
            self._zip = zipfile.ZipFile(cast(BinaryIO, _Frugal(file)))
            self._zip.fp = file
            self._members: dict[str, zipfile.ZipInfo] = {}
            for member in self._zip.infolist():
                name = member.filename.removesuffix(SUFFIX)
                if name in self._members:
                    raise ValueError(f"{name[:80]!r} occurs twice in it")
                self._members[name] = member
        except BaseException:
            file.close()
            raise
        self._file = file
        self.names = tuple(self._members)

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()
        self._file.close()

    def member(self, name: str) -> Member:
        """The array of that name, not read yet. Raises KeyError if there is none."""
        found = self._members[name]
        odd = next((what for flag, what in _FLAGS.items() if found.flag_bits & flag), None)
        if odd is None and found.compress_type not in _METHODS:
            odd = f"compressed by method {found.compress_type}"
        if odd is not None:
            raise ValueError(f"{name[:80]!r} is {odd}; only stored or deflated arrays are read")
        try:
            return Member(cast(BinaryIO, self._zip.open(found)), found)
        except ValueError as error:
            raise ValueError(f"{name[:80]!r}: {error}") from None

    def small(self, name: str, most: int) -> np.ndarray:
        """The array of that name, if it has at most `most` numbers of at most 64 bytes each."""
        with self.member(name) as found:
            if math.prod(found.shape) > most or found.dtype.itemsize > 64:
                raise ValueError(f"{name!r} is {found.dtype} of shape {found.shape}; {most} numbers is the maximum")
            return found.whole()


def plain_arrays(content: bytes, names: Iterable[str] | None = None) -> dict[str, np.ndarray]:
    """The arrays of an .npz file in memory (all, or those in `names`), none of which may be compressed, so they take no
    more memory than the file. Raises ValueError, KeyError, and the errors of zipfile."""
    with Archive(io.BytesIO(content)) as archive:
        found = {}
        for name in archive.names if names is None else names:
            with archive.member(name) as member:
                if not member.stored or math.prod(member.shape) * member.dtype.itemsize > len(content):
                    raise ValueError(f"{name[:80]!r} is compressed, or is not as long as it says")
                found[name] = member.whole()
    return found


class _Frugal:
    """The part of a file that zipfile needs to read the directory of an archive, unless that is too long."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.seek, self.tell, self.close, self.seekable = file.seek, file.tell, file.close, file.seekable

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            here = self._file.tell()
            size = self._file.seek(0, io.SEEK_END) - here
            self._file.seek(here)
        if size > _DIRECTORY:
            raise ValueError(f"its directory takes {size:,} bytes; {_DIRECTORY:,} is the maximum")
        return self._file.read(size)
