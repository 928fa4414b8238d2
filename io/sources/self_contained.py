"""Files of other programs that lead elsewhere: HDF5 and Zarr can name other files, and codecs that run what they read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from streamcut.errors import BadInputError, StreamcutError
from streamcut.io.zarr_codecs import expect_plain

_MOST_CHUNK = 1 << 31  # bytes


def expect_self_contained(group: Any, path: str) -> None:
    """Raise BadInputError when an array below `group`, of h5py or zarr, lies in another file or is not plainly encoded."""
    for name, item in _members(group, path):
        where = f"{path}: {name}"
        if getattr(item, "is_virtual", False) or getattr(item, "external", None):
            raise BadInputError(f"{where} lies in another file; save the data as one file")
        if hasattr(item, "metadata") and hasattr(item, "chunks"):
            try:
                expect_plain(item, _MOST_CHUNK)
            except ValueError as error:
                raise BadInputError(f"{where}: {error}; save the data with another codec") from None


def _members(group: Any, path: str, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name in list(group):
        if hasattr(group, "file") and type(group.get(name, getlink=True)).__name__ == "ExternalLink":
            raise BadInputError(f"{path}: {prefix}{name} lies in another file; save the data as one file")
        item = group[name]
        yield prefix + name, item
        if not hasattr(item, "shape"):
            yield from _members(item, path, f"{prefix}{name}/")


@contextmanager
def readable(path: str) -> Iterator[None]:
    """Turn whatever the libraries that read `path` raise on damaged or forged content into BadInputError."""
    try:
        yield
    except (StreamcutError, MemoryError):
        raise
    except Exception as error:
        raise BadInputError(f"{path}: cannot be read ({type(error).__name__}: {error})") from error
