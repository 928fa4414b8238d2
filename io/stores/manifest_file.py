"""manifest.json: a Manifest as canonical JSON with its own SHA-256, so that no byte of it can change unnoticed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from streamcut.errors import CorruptError, NotFoundError
from streamcut.foundation.opened import read_file
from streamcut.io.manifest import ArrayInfo, Manifest, ShardInfo, Statistics
from streamcut.io.stores.guarded import damaged
from streamcut.io.stores.spec import DTYPES, FORMAT_VERSION, NEEDS, SHARDS, array_size, shard_name
from streamcut.io.stores.zarr_layout import chunk_length, chunk_name

MAX_MANIFEST = 1 << 28  # bytes: its length for a store of a trillion entries
_ARRAY_FIELDS = ("dtype", "size", "content_crc32c", "stored_bytes", "stored_crc32c")
_BY_LABEL = ("labels", "label_weights")  # lists of pairs, because keys are texts in JSON


def canonical_json(content: Any) -> bytes:
    """The one form of JSON that is compared or hashed: sorted keys, no spaces, ASCII, no nan."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def fingerprint(n_features: int, shards: Sequence[ShardInfo]) -> str:
    """SHA-256 of the content of the shards, regardless of backend, codec and name of the store."""
    digest = hashlib.sha256(b"%d" % n_features)
    for shard in shards:
        arrays = [[name, a.dtype, a.size, a.content_crc32c] for name, a in sorted(shard.arrays.items())]
        digest.update(canonical_json([shard.rows, shard.nnz, arrays]))
    return digest.hexdigest()


def manifest_bytes(manifest: Manifest) -> bytes:
    """The content of manifest.json."""
    statistics = asdict(manifest.statistics)
    statistics |= {name: None if statistics[name] is None else sorted(statistics[name].items()) for name in _BY_LABEL}
    fields = {name: getattr(manifest, name) for name in Manifest.__dataclass_fields__}
    shards = [shard_record(shard) for shard in manifest.shards]
    content = {**fields, "statistics": statistics, "shards": shards, "needs": NEEDS}
    return canonical_json({**content, "sha256": _digest(content)}) + b"\n"


def read_manifest(path: str | Path) -> Manifest:
    """The manifest in file `path`, or CorruptError."""
    where = str(path)
    try:
        content = read_file(path, MAX_MANIFEST)
    except FileNotFoundError:
        raise damaged(where, "missing") from None
    except PermissionError as error:
        raise NotFoundError(f"{where}: {error.strerror}; make it readable") from None
    except OSError as error:
        raise damaged(where, str(error.strerror)) from None
    return parse_manifest(content, where)


def parse_manifest(content: bytes, where: str) -> Manifest:
    """The Manifest in `content`, every byte of it checked.

    Raises CorruptError when it is not as written, NotFoundError for the format of a later streamcut.
    """
    try:
        record = json.loads(content)
        stated = record.pop("sha256")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise damaged(where, "is not a manifest") from None
    try:
        intact = stated == _digest(record) and content == canonical_json({**record, "sha256": stated}) + b"\n"
    except (ValueError, RecursionError):  # a nan is not JSON
        intact = False
    if not intact:
        raise damaged(where, "does not match its own checksum")
    if (version := record.get("format_version")) != FORMAT_VERSION:  # every version computes the digest the same way
        older = "was written by streamcut < 0.2, which reads it; convert the data again"
        newer = f"needs streamcut >= {str(record.get('needs'))[:20]}; upgrade streamcut"
        raise NotFoundError(f"{where}: format version {str(version)[:20]} {older if version == 1 else newer}")
    try:
        return _manifest(record)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CorruptError(f"{where}: {error}; it was not written by streamcut: convert the data again") from None


def guarded_files(manifest: Manifest) -> dict[str, tuple[int, int | None]]:
    """{name inside the store: (length, CRC-32C of the whole file, or None for chunks, which are checked when read)}."""
    files: dict[str, tuple[int, int | None]] = {**manifest.files, **manifest.extras}
    for k, shard in enumerate(manifest.shards):
        folder = SHARDS if manifest.backend == "hdf5" else f"{SHARDS}/{shard_name(k)}"
        files |= {f"{folder}/{path}": guard for path, guard in shard.files.items()}
        if manifest.backend == "zarr":
            files |= {chunk_name(k, name): (chunk_length(info), None) for name, info in shard.arrays.items() if info.size}
    return files


def shard_record(shard: ShardInfo) -> dict:
    """A shard in JSON types."""
    arrays = {name: [getattr(array, field) for field in _ARRAY_FIELDS] for name, array in shard.arrays.items()}
    return {"rows": shard.rows, "nnz": shard.nnz, "ones": shard.ones, "arrays": arrays, "files": shard.files}


def shard_from_record(record: dict) -> ShardInfo:
    """The inverse of `shard_record`. Raises ValueError for arrays that are not as long as its rows and entries say."""
    rows, nnz = record["rows"], record["nnz"]
    arrays = {name: ArrayInfo(*fields) for name, fields in record["arrays"].items()}
    for name, array in arrays.items():
        if array.dtype not in DTYPES[name] or array.size != array_size(name, rows, nnz):
            raise ValueError(f"array {name} of a shard of {rows} rows and {nnz} entries is {array.dtype} ({array.size})")
    return ShardInfo(rows, nnz, record["ones"], arrays, _guards(record["files"]))


def _manifest(record: dict) -> Manifest:
    """The inverse of what `manifest_bytes` writes."""
    statistics = record["statistics"]
    statistics |= {name: None if statistics[name] is None else dict(map(tuple, statistics[name])) for name in _BY_LABEL}
    parts: dict[str, Any] = {"statistics": Statistics(**statistics), "shards": tuple(map(shard_from_record, record["shards"]))}
    parts |= {name: _guards(record[name]) for name in ("files", "extras")}
    return Manifest(**{name: parts.get(name, record[name]) for name in Manifest.__dataclass_fields__})


def _guards(files: dict) -> dict[str, tuple[int, int]]:
    """{name: (length, CRC-32C)}."""
    return {name: (length, crc) for name, (length, crc) in files.items()}


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(canonical_json(content)).hexdigest()
