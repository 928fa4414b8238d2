"""NumPy arrays in files: `.npy`, and zip files of them (`.npz`). Nothing is unpickled; an array is as long as its member."""

from __future__ import annotations

import io
import math
import tokenize
import zipfile
from collections.abc import Iterable
from typing import IO, Any, BinaryIO

import numpy as np

SUFFIX = ".npy"


def array_header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
    """(shape, Fortran order, dtype) of the .npy array that begins here; `file` is then positioned at its numbers.

    Raises ValueError if it is not one, and for object arrays.
    """
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    try:
        shape, by_columns, dtype = read(file)
    except (tokenize.TokenError, SyntaxError, MemoryError, RecursionError) as error:  # NumPy reads it as Python
        raise ValueError(f"its header is damaged ({type(error).__name__})") from error
    if dtype.hasobject:
        raise ValueError("it holds objects, which allow_pickle=False refuses")
    return shape, by_columns, dtype


class Member:
    """One array of an archive."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self.shape, self.by_columns, self.dtype = array_header(file)
        if file.tell() + math.prod(self.shape) * self.dtype.itemsize != size:
            raise ValueError(f"is not as long as it says: {self.dtype} of shape {self.shape} in {size:,} bytes")

    def __enter__(self) -> Member:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def whole(self) -> np.ndarray:
        """The array; zipfile compares its checksum. Raises ValueError where numbers are missing."""
        out = np.empty(math.prod(self.shape), self.dtype)
        view = out.view(np.uint8).data if out.nbytes else memoryview(b"")
        while view:
            got = self._file.readinto(view)  # type: ignore[attr-defined]
            if not got:
                raise ValueError("ends early")
            view = view[got:]
        return out.reshape(self.shape, order="F" if self.by_columns else "C")


class Archive:
    """The arrays of an .npz file; `names` are theirs. The file closes with the archive."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        try:
            self._zip = zipfile.ZipFile(file)
        except BaseException:
            file.close()
            raise
        self.names = tuple(name.removesuffix(SUFFIX) for name in self._zip.namelist())

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()
        self._file.close()

    def member(self, name: str) -> Member:
        """The array of that name, not read yet. Raises KeyError if there is none."""
        about = self._zip.getinfo(f"{name}{SUFFIX}")
        try:
            return Member(self._zip.open(about), about.file_size)
        except ValueError as error:
            raise ValueError(f"{name[:80]!r}: {error}") from None


def plain_arrays(content: bytes, names: Iterable[str]) -> dict[str, np.ndarray]:
    """These arrays of an .npz file in memory. Raises ValueError, KeyError, and the errors of zipfile."""
    found = {}
    with Archive(io.BytesIO(content)) as archive:
        for name in names:
            with archive.member(name) as member:
                found[name] = member.whole()
    return found
