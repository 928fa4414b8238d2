"""HDF5 and Zarr files of other programs, read without following anything outside them.

HDF5 can refer to other files: by links, by virtual data sets, by external storage. No such link is followed: all links of a
file are inspected, and none is needed. An array is opened on demand and inspected before its size is read, since the
size of a virtual data set depends on the files behind it. One of Zarr's codecs unpickles, which runs code from the file.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from streamcut.errors import BadInputError, CorruptError, NotFoundError
from streamcut.foundation.opened import readable, regular
from streamcut.io.stores.guarded import expect_files_only

_CODECS = ("codecs", "filters", "compressor", "compressors")  # in the description of a Zarr array
CHUNK_COPIES = 3  # of a chunk being decompressed: HDF5 doubles its buffer until all fits, and keeps the chunk


class Members:
    """A group: names of its members, each a group or an array, opened on demand."""

    def __init__(self, group: Any, path: str, name: str = "") -> None:
        self._group, self._path, self._name = group, path, name
        self.attrs = group.attrs

    def __iter__(self) -> Iterator[str]:
        return iter(self._group)

    def __contains__(self, name: str) -> bool:
        return name in self._group

    def get(self, name: str, default: Any = None) -> Any:
        """The member of that name ("a/b" is one of `a`): Members or an Array; `default` if there is none.

        Raises BadInputError for an array in another file, or with an encoding that is not plain.
        """
        first, _, rest = name.partition("/")
        if first not in self._group:
            return default
        found, where = self._group[first], f"{self._name}{first}"
        if getattr(found, "is_virtual", False) or getattr(found, "external", None):
            raise BadInputError(f"{self._path}: {where} lies in another file; save the data as one file")
        if hasattr(found, "chunks"):
            return default if rest else Array(found, f"{self._path}: {where}")
        inside = Members(found, self._path, f"{where}/")
        return inside.get(rest, default) if rest else inside

    def __getitem__(self, name: str) -> Any:
        found = self.get(name)
        if found is None:
            raise KeyError(f"{self._name}{name}")
        return found

    def groups(self) -> Iterator[tuple[str, Members]]:
        """The groups in it, opened one by one."""
        import h5py

        for name in self:
            if h5py.h5o.get_info(self._group.id, name.encode()).type == h5py.h5o.TYPE_GROUP:
                yield name, self[name]


class Array:
    """An array of h5py or zarr, read by ranges of its first dimension. Raises BadInputError for one that is unpickled."""

    def __init__(self, array: Any, where: str) -> None:
        self._array, self._where = array, where
        self.shape, self.dtype, self.attrs = array.shape, array.dtype, array.attrs
        item = self.dtype.itemsize * (2 if self.dtype.hasobject else 1)  # a string of any length: 8 bytes here, 16 in HDF5
        self.chunk_bytes = item * math.prod(int(side) for side in array.chunks or (0,))  # None: contiguous
        if hasattr(array, "metadata"):
            described = array.metadata.to_dict()
            if "pickle" in str([described.get(name) for name in _CODECS]).lower():
                raise BadInputError(f"{where}: holds pickled objects, which could run code; save the data with another codec")

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: slice) -> np.ndarray:
        return np.asarray(self._array[rows])


def opened_hdf5(path: str) -> Members:
    """The root of the HDF5 file `path`. Raises BadInputError for a file that is not HDF5 or has links, NotFoundError."""
    import h5py

    try:
        place = regular(path)
    except OSError as error:
        raise NotFoundError(f"{path}: {error.strerror}") from None
    with readable(path, what="not a readable HDF5 file"):
        file = h5py.File(place, "r")  # from `regular`
        _expect_no_links(file, path)
    return Members(file, path)


def opened_zarr(path: str) -> Members:
    """The same for a Zarr group in the folder `path`."""
    import zarr

    try:
        expect_files_only(path)
    except CorruptError as error:
        raise BadInputError(str(error)) from None
    with readable(path, what="not a readable Zarr group"):
        return Members(zarr.open_group(path, mode="r"), path)


def opened_members(path: str) -> Members:
    """Either of the two, by the kind of `path`."""
    return opened_zarr(path) if os.path.isdir(path) else opened_hdf5(path)


def _expect_no_links(file: Any, path: str) -> None:
    """Raise BadInputError for a soft or external link anywhere; links are inspected, not followed, and arrays are not opened."""
    from h5py import h5g, h5l, h5o

    seen, pending = set(), [("", file.id)]
    while pending:
        prefix, group = pending.pop()
        for name in group:
            shown = prefix + name.decode("utf-8", "surrogateescape")
            kind = group.links.get_info(name).type
            if kind != h5l.TYPE_HARD:
                what = "is a link" if kind == h5l.TYPE_SOFT else "lies in another file"
                raise BadInputError(f"{path}: {shown} {what}; save the data as one file, without links")
            about = h5o.get_info(group, name)
            if about.type == h5o.TYPE_GROUP and about.addr not in seen:
                seen.add(about.addr)
                pending.append((f"{shown}/", h5g.open(group, name)))
