"""Model files: one self-contained `.npz` without pickles.

meta.json  uint8: JSON with format, version, streamcut_version and `model`, the fields of the model (streamcut.models.packing),
           which name the other arrays; NaN and infinity are written as Python writes them
recipe     uint8: the JSON of a Recipe, if there is one: how rows become the model's features
…          the arrays, float64 unless training has others

Each member has a checksum, which is compared as it is read. Arrays that are mostly zeros are deflated. Members have no dates: the
same model gives the same bytes.
"""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np

from streamcut import __version__
from streamcut.errors import CorruptError, NotFoundError
from streamcut.foundation.opened import opened_file, readable
from streamcut.foundation.shown import shown
from streamcut.io.outputs import output
from streamcut.io.recipe.recipe import NewerRecipeError
from streamcut.io.remote import is_url, read_object, size_of
from streamcut.models.packing import packed, unpacked

if TYPE_CHECKING:
    from streamcut.models.model import Model

FORMAT = "streamcut model"
FORMAT_VERSION = 7  # earlier ones name the proofs otherwise, or have no `problem`
_PIECE = 1 << 18  # numbers written at a time
_FIRST_MEMBER = b"meta.json.npy"
_HEAD = 64  # bytes of a file in which that name stands


def save_model(model: Model, path: str | os.PathLike[str], *, replace: bool = True) -> None:
    """Write `model` to `path` (or a URL), replacing a file only once all of it is on disk (streamcut.io.outputs).

    Raises NotFoundError when the folder does not exist, DiskFullError, and UsageError when the file exists, unless `replace`.
    """
    if not is_url(path) and not Path(path).parent.is_dir():
        raise NotFoundError(f"{Path(path).parent} is not a folder; create it first")
    arrays: dict[str, np.ndarray] = {}
    fields = packed(model, "", arrays)
    meta = {"format": FORMAT, "version": FORMAT_VERSION, "streamcut_version": __version__, "model": fields}
    described = np.frombuffer(json.dumps(meta, indent=1).encode(), np.uint8)
    with output(path, prefix="model", replace=replace) as file, zipfile.ZipFile(cast(IO[bytes], file), "w") as archive:
        for name, array in {"meta.json": described, **arrays}.items():
            _write(archive, name, np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")))


def _write(archive: zipfile.ZipFile, name: str, array: np.ndarray) -> None:
    member, flat = zipfile.ZipInfo(f"{name}.npy"), array.reshape(-1)
    if np.count_nonzero(flat) < 0.5 * flat.size:
        member.compress_type = zipfile.ZIP_DEFLATED
    with archive.open(member, "w", force_zip64=True) as file:
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
        for start in range(0, flat.size, _PIECE):
            file.write(flat[start : start + _PIECE].data)


def load_model(path: str | os.PathLike[str], expect: Callable[[int], None] = lambda size: None) -> Model:
    """The model in the file or behind the URL `path`. Nothing in it is ever unpickled.

    `expect` is called with the number of bytes before they are allocated, and may raise.
    Raises NotFoundError when there is no such file, it is not a model or a newer version wrote it; CorruptError when damaged.
    """
    try:
        file: BinaryIO = io.BytesIO(read_object(os.fspath(path))) if is_url(path) else opened_file(path)
    except NotFoundError as error:
        raise NotFoundError(f"cannot read this model: {error}") from None
    except OSError as error:
        raise NotFoundError(f"{path}: cannot read this model: {error.strerror}") from error
    with file:
        head = file.read(_HEAD)
        if head and not head.startswith(b"PK\x03\x04"):
            raise NotFoundError(f"{path} is not a streamcut model (it is not an .npz archive)")
        if len(head) == _HEAD and _FIRST_MEMBER not in head:
            raise NotFoundError(f"{path} is not a streamcut model (it does not begin with meta.json)")
        file.seek(0)
        with (
            readable(path, CorruptError, "damaged model file", "; train again or restore the file"),
            np.load(file, allow_pickle=False) as archive,
        ):
            meta = json.loads(archive["meta.json"].tobytes())
            _check_version(path, meta)
            expect(sum(member.file_size for member in archive.zip.infolist()))
            try:
                return unpacked(meta["model"], {name: archive[name] for name in archive.files if name != "meta.json"})
            except NewerRecipeError as error:
                raise NotFoundError(f"{path}: {error}") from None


def _check_version(path: str | os.PathLike[str], meta: dict[str, Any]) -> None:
    """Raise NotFoundError unless this version wrote the file."""
    if meta["format"] != FORMAT:
        raise NotFoundError(f"{path} is not a streamcut model")
    version, writer = meta["version"], shown(meta["streamcut_version"]).strip("'")
    if version > FORMAT_VERSION:
        raise NotFoundError(f"{path}: model format {version}: needs streamcut >= {writer}")
    if version < FORMAT_VERSION:
        raise NotFoundError(
            f"{path}: model format {version} is of an older streamcut; train again, or use the one that wrote it ({writer})"
        )


def as_model(model: Model | str | os.PathLike[str], expect: Callable[[int], None] = lambda size: None) -> Model:
    """`model`; if it is a path, the model read from it by `load_model`."""
    return load_model(model, expect) if isinstance(model, str | os.PathLike) else model


def is_model(path: str | os.PathLike[str]) -> bool:
    """Whether the file `path` begins like a model; `load_model` checks the rest."""
    if is_url(path):
        url = os.fspath(path)
        return size_of(url) is not None and _FIRST_MEMBER in read_object(url, _HEAD)
    if not os.path.isfile(path):
        return False
    with opened_file(path) as file:
        return _FIRST_MEMBER in file.read(_HEAD)


def plain(value: object) -> Any:
    """`value` in JSON types: NumPy numbers become Python's, nan and infinity (which JSON lacks) become None."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
