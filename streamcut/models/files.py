"""Model files: one self-contained `.npz` without pickles, in which every changed bit is detected.

meta.json     uint8: JSON with format, version, kind of model, task, parameters, history, sha256 of the arrays below, and the
              `parts` of this kind of model
recipe        uint8: the JSON of a Recipe, if there is one: how rows become the model's features
…             the arrays of that kind: `weights` float64 (n_features,) and, if kept, `witness` float64 (n_features, + 1 with a
              bias feature) of a linear model. One that is mostly zeros is stored as NAME.indices, int32 or int64, the nonzero
              positions when flattened, and NAME.values; meta.json's `sparse` has its shape. Arrays that float32 holds exactly are
              stored so, and meta.json's `narrow` names them. Loading gives the same array, to the last bit

The archive's comment holds the SHA-256 of all bytes before the digest, so a damaged file is refused before anything in it is
parsed. Members are stored without compression and dates: the same model gives the same bytes, regardless of the zlib version.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import zipfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streamcut import __version__
from streamcut.errors import CorruptError, NotFoundError
from streamcut.foundation.fields import Fields, shown
from streamcut.foundation.opened import opened_file, read_file, readable
from streamcut.foundation.redaction import redacted
from streamcut.io.places.archives import plain_arrays
from streamcut.io.places.outputs import output
from streamcut.io.places.remote import is_url, read_object, size_of
from streamcut.io.recipe.recipe import NewerRecipeError, Recipe
from streamcut.models.stated import MOST_FEATURES

if TYPE_CHECKING:
    from streamcut.models.model import Model

FORMAT = "streamcut model"
FORMAT_VERSION = 3  # 1 had no recipes, 2 no sparse and narrow arrays and no penalties
_SPARSE = 0.5  # of its dense size: an array that is smaller than this as indices and values is stored so
_MARK = b"streamcut sha256:"
_DIGEST = 64  # hexadecimal digits
_PIECE = 1 << 18  # numbers inspected, or written, at a time
_FIRST_MEMBER = b"meta.json.npy"
_KINDS = {  # name of a class in files, and its location
    "linear": ("streamcut.models.linear", "LinearModel"),
    "multiclass": ("streamcut.models.multiclass", "MulticlassModel"),
    "kernel": ("streamcut.models.kernel", "KernelModel"),
    "sequence": ("streamcut.models.sequence", "SequenceModel"),
    "mapped": ("streamcut.models.mapped", "MappedModel"),
    "kernel-sequence": ("streamcut.models.sequence", "KernelSequenceModel"),
}


def save_model(model: Model, path: str | os.PathLike, *, replace: bool = True) -> None:
    """Write `model` to `path` (or a URL), replacing a file only once all of it is on disk (streamcut.io.places.outputs).

    Raises NotFoundError when the folder does not exist, DiskFullError, and UsageError when the file exists, unless `replace`.
    """
    if not is_url(path) and not Path(path).parent.is_dir():
        raise NotFoundError(f"{Path(path).parent} is not a folder; create it first")
    arrays = _arrays(model)
    seen = _Seen()
    _write(arrays, seen)
    digest = seen.digest.hexdigest().encode()
    with output(path, prefix="model", size=seen.size + _DIGEST, replace=replace) as file:
        _write(arrays, _Through(file.write))
        file.write(digest)


def model_bytes(model: Model) -> bytes:
    """The content of the model file of `model`."""
    content, seen, arrays = io.BytesIO(), _Seen(), _arrays(model)
    _write(arrays, seen)
    _write(arrays, _Through(content.write))
    content.write(seen.digest.hexdigest().encode())
    return content.getvalue()


class _Through:
    """A sequential output: models may be large, so none is copied to be written."""

    def __init__(self, write: Callable[[Any], Any]) -> None:
        self._give = write
        self._kept = b""

    def write(self, part: Any) -> int:
        """Pass on everything but the last bytes, the place of the digest, which the caller writes."""
        view, kept = memoryview(part).cast("B"), self._kept
        beyond = len(kept) + len(view) - _DIGEST  # bytes passed on now, held ones first
        if beyond > 0:
            self._give(kept[:beyond])
            if len(kept) < beyond:
                self._give(view[: beyond - len(kept)])
        self._kept = (kept + bytes(view[-_DIGEST:]))[-_DIGEST:]
        return len(view)

    def flush(self) -> None:
        """Nothing to do: only the digest's bytes are held back."""


class _Seen(_Through):
    """The length of a file without its digest, and the digest."""

    def __init__(self) -> None:
        super().__init__(self._see)
        self.size, self.digest = 0, hashlib.sha256()

    def _see(self, part: bytes) -> None:
        self.size += len(part)
        self.digest.update(part)


def _write(arrays: dict[str, np.ndarray], file: Any) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array_header_1_0(member, np.lib.format.header_data_from_array_1_0(array))
                flat = array.reshape(-1)
                for start in range(0, flat.size, _PIECE):
                    member.write(flat[start : start + _PIECE].data)
        archive.comment = _MARK + b"0" * _DIGEST


def _arrays(model: Model) -> dict[str, np.ndarray]:
    """The arrays of its file, by name."""
    own, parts = model.parts()
    if model.recipe is not None:
        parts = {"recipe": np.frombuffer(model.recipe.to_json(), np.uint8), **parts}
    dense = {name: np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")) for name, array in parts.items()}
    own["sparse"], own["narrow"], arrays = _packed(dense)
    meta = json.dumps(_meta(model, own, arrays), indent=1, allow_nan=False).encode()
    return {"meta.json": np.frombuffer(meta, np.uint8), **arrays}


def load_model(path: str | os.PathLike, expect: Callable[[int], None] = lambda size: None) -> Model:
    """The model in the file or behind the URL `path`. Nothing in it is ever unpickled.

    `expect` is called with the number of bytes before they are allocated, and may raise.
    Raises NotFoundError when there is no such file, it is not a model or a newer version wrote it; CorruptError when damaged.
    """
    return _built(path, *_read(path, expect))


def _built(path: str | os.PathLike, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> Model:
    """The model made of these parts, which are unchecked."""
    with _well_formed(path):
        given = Fields(meta, "model")
        module, name = _KINDS[given.text("kind", _KINDS) if "kind" in given else "linear"]
        try:
            recipe = Recipe.from_json(arrays.pop("recipe").tobytes()) if "recipe" in arrays else None
        except NewerRecipeError as error:
            raise NotFoundError(f"{path}: {error}") from None
        return replace(getattr(import_module(module), name).from_parts(meta, arrays), recipe=recipe)


def _well_formed(path: str | os.PathLike) -> AbstractContextManager[None]:
    """Turn any error in the content of a file with a valid checksum into CorruptError."""
    return readable(path, CorruptError, "not a well-formed model", "; train again or restore the file")


def as_model(model: Model | str | os.PathLike, expect: Callable[[int], None] = lambda size: None) -> Model:
    """`model`; if it is a path, the model read from it by `load_model`."""
    return load_model(model, expect) if isinstance(model, str | os.PathLike) else model


def is_model(path: str | os.PathLike) -> bool:
    """Whether the file `path` begins like a model; `load_model` checks the rest."""
    if is_url(path):
        url = os.fspath(path)
        return size_of(url) is not None and _FIRST_MEMBER in read_object(url, 64)
    if not os.path.isfile(path):
        return False
    with opened_file(path) as file:
        return _FIRST_MEMBER in file.read(64)


def describe_model(path: str | os.PathLike) -> dict[str, Any]:
    """The description in the model file `path` (JSON types), without arrays; raises as `load_model` does."""
    model = load_model(path)
    return plain(
        {
            "path": redacted(os.fspath(path)),
            "bytes": size_of(os.fspath(path)) if is_url(path) else os.path.getsize(path),
            "kind": model.kind,
            "task": model.task,
            "solver": model.solver,
            **model.describe(),
            **({} if model.link is None else {f"probabilities_{name}": v for name, v in asdict(model.link).items()}),
            "iterations": len(model.history),
            "parameters": model.parameters,
            "fingerprint": model.fingerprint,
            "resources": model.resources,
        }
    )


def _packed(arrays: dict[str, np.ndarray]) -> tuple[dict[str, list[int]], list[str], dict[str, np.ndarray]]:
    """(shapes of the float64 arrays that are mostly zeros, names of those stored as float32, all arrays as stored)."""
    shapes: dict[str, list[int]] = {}
    narrow: list[str] = []
    packed: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        if array.dtype == np.float64:
            flat = array.reshape(-1)
            index, bits = np.dtype("<i4" if len(flat) <= 2**31 else "<i8"), flat.view(np.int64)  # bitwise: −0 is not 0
            if (index.itemsize + 8) * np.count_nonzero(bits) < _SPARSE * array.nbytes:
                where = np.flatnonzero(bits).astype(index)
                shapes[name] = list(array.shape)
                packed[f"{name}.indices"] = where
                name, array = f"{name}.values", flat[where]
            if _is_narrow(array):
                narrow.append(name)
                array = array.astype("<f4")
        packed[name] = array
    return shapes, narrow, packed


def _is_narrow(array: np.ndarray) -> bool:
    """Whether float32 holds all its numbers exactly, and there are enough for that to matter."""
    flat = array.reshape(-1)
    with np.errstate(over="ignore"):
        pieces = (flat[start : start + _PIECE] for start in range(0, flat.size, _PIECE))
        return flat.size > 16 and all(bool((piece.astype(np.float32) == piece).all()) for piece in pieces)


def _unpack(given: Fields, narrow: list[Any], arrays: dict[str, np.ndarray], expect: Callable[[int], None]) -> None:
    """Undo `_packed` in place; `given` are its shapes. Raises ValueError or KeyError unless all fits."""
    expect(sum(2 * arrays[name].nbytes for name in narrow if name in arrays))
    for name in narrow:
        if arrays[name].dtype != np.float32:
            raise ValueError(f"{name} is {arrays[name].dtype}, expected float32")
        arrays[name] = arrays[name].astype(np.float64)
    for name in given.names():
        shape = given.list(name)
        if not all(isinstance(n, int) and 0 <= n <= MOST_FEATURES for n in shape) or math.prod(shape) > MOST_FEATURES:
            raise given.wrong(name, "a shape")
        where, values = arrays.pop(f"{name}.indices"), arrays.pop(f"{name}.values")
        size = math.prod(shape)
        fit = where.ndim == 1 and where.shape == values.shape and values.dtype == np.float64 and where.dtype.kind == "i"
        if not fit or (len(where) and not (where[0] >= 0 and where[-1] < size and (np.diff(where) > 0).all())):
            raise ValueError(f"{name}: its indices do not fit {shape}")
        expect(8 * size)
        try:
            flat = np.zeros(size)
        except MemoryError:
            raise ValueError(f"{name}: {size:,} numbers fit in no memory") from None
        flat[where] = values
        arrays[name] = flat.reshape(shape)


def _meta(model: Model, own: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    return plain(
        {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "streamcut_version": __version__,
            "kind": model.kind,
            **model.common_meta(),
            **own,
            "sha256": {name: hashlib.sha256(array.data).hexdigest() for name, array in arrays.items()},
        }
    )


def plain(value: Any) -> Any:
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


def _read(path: str | os.PathLike, expect: Callable[[int], None]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """meta.json and the other arrays of an intact model file."""
    try:
        expect(2 * ((size_of(os.fspath(path)) or 0) if is_url(path) else os.path.getsize(path)))  # the file, and its arrays
        raw = read_object(os.fspath(path)) if is_url(path) else read_file(path)
    except NotFoundError as error:
        raise NotFoundError(f"cannot read this model: {error}") from None
    except OSError as error:
        raise NotFoundError(f"{path}: cannot read this model: {error.strerror}") from error
    _check_whole(path, raw)
    with _well_formed(path):
        arrays = plain_arrays(raw)
        meta = json.loads(arrays.pop("meta.json").tobytes())
        given = Fields(meta, "model")
        version = given.integer("version", 1)
        if given.text("format") != FORMAT:
            raise NotFoundError(f"{path} is not a streamcut model")
        if version > FORMAT_VERSION:
            wanted = shown(meta.get("streamcut_version", "a newer version")).strip("'")
            raise NotFoundError(f"{path}: model format {version}: needs streamcut >= {wanted}")
        for name in given.object("sha256").names():
            if hashlib.sha256(np.ascontiguousarray(arrays[name]).data).hexdigest() != given.object("sha256").text(name):
                raise CorruptError(f"{path}: array {name!r} differs from its SHA-256; train again or restore the file")
        if "sparse" in given:  # not in older versions
            _unpack(given.object("sparse"), given.list("narrow") if "narrow" in given else [], arrays, expect)
    return meta, arrays


def _check_whole(path: str | os.PathLike, raw: bytes) -> None:
    """Raise unless `raw` is a model file with no bit missing or changed."""
    if raw and not raw.startswith(b"PK\x03\x04"):
        raise NotFoundError(f"{path} is not a streamcut model (it is not an .npz archive)")
    if _FIRST_MEMBER not in raw and zipfile.is_zipfile(io.BytesIO(raw)):
        raise NotFoundError(f"{path} is not a streamcut model (it holds no meta.json)")
    body, digest = raw[:-_DIGEST], raw[-_DIGEST:]
    if not body.endswith(_MARK) or hashlib.sha256(body).hexdigest().encode() != digest:
        raise CorruptError(f"{path}: damaged model file ({len(raw):,} bytes, SHA-256 differs); train again or restore the file")
