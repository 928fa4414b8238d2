"""manifest.json: a Manifest as canonical JSON that carries its own SHA-256, so that no byte of it can change unnoticed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from streamcut.errors import CorruptError, NotFoundError
from streamcut.io.manifest import ArrayInfo, Manifest, ShardInfo, Statistics
from streamcut.io.stores.guarded import damaged
from streamcut.io.stores.spec import BACKENDS, DTYPES, EXTRAS, NEEDS, OPTIONAL, READABLE, array_size

_ARRAY_FIELDS = ("dtype", "size", "content_crc32c", "stored_bytes", "stored_crc32c")


def canonical_json(content: Any) -> bytes:
    """The one way in which we write JSON that is compared or digested: sorted keys, no spaces, ASCII, no nan."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def fingerprint(n_features: int, shards: Sequence[ShardInfo]) -> str:
    """SHA-256 of what the shards hold; the same whatever the backend, the codec or the name of the store."""
    digest = hashlib.sha256(b"%d" % n_features)
    for shard in shards:
        arrays = [[name, a.dtype, a.size, a.content_crc32c] for name, a in sorted(shard.arrays.items())]
        digest.update(canonical_json([shard.rows, shard.nnz, arrays]))
    return digest.hexdigest()


def manifest_bytes(manifest: Manifest) -> bytes:
    """The content of manifest.json."""
    content = {
        "format_version": manifest.format_version,
        "needs": NEEDS,
        "backend": manifest.backend,
        "fingerprint": manifest.fingerprint,
        "statistics": _statistics_record(manifest.statistics),
        "shards": [shard_record(shard) for shard in manifest.shards],
        "files": manifest.files,
        "extras": manifest.extras,
        "source": manifest.source,
        "streamcut_version": manifest.streamcut_version,
    }
    return canonical_json({**content, "sha256": _digest(content)}) + b"\n"


def read_manifest(path: str | Path) -> Manifest:
    """The manifest in file `path`, or CorruptError."""
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise damaged(path, "missing") from None
    except OSError as error:
        raise NotFoundError(f"{path}: {error.strerror}") from None
    return parse_manifest(content, str(path))


def parse_manifest(content: bytes, where: str) -> Manifest:
    """The Manifest in `content`, every byte of it checked.

    Raises CorruptError when it is not what was written, NotFoundError when a later streamcut wrote it in a later format.
    """
    try:
        record = json.loads(content)
        stated = record.pop("sha256")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise damaged(where, "is not a manifest") from None
    try:
        intact = stated == _digest(record) and content == canonical_json({**record, "sha256": stated}) + b"\n"
    except ValueError:  # a nan, which is no JSON
        intact = False
    if not intact:
        raise damaged(where, "does not have its own checksum")
    if record.get("format_version") not in READABLE:  # the digest is made the same way in every version, this one included
        raise NotFoundError(
            f"{where}: format version {record.get('format_version')} needs streamcut >= {record.get('needs')}; upgrade streamcut"
        )
    try:
        manifest = Manifest(
            statistics=_statistics(record["statistics"]),
            shards=tuple(shard_from_record(shard) for shard in record["shards"]),
            fingerprint=record["fingerprint"],
            backend=record["backend"],
            source=record["source"],
            format_version=record["format_version"],
            streamcut_version=record["streamcut_version"],
            files=_guards(record["files"]),
            extras=_guards(record["extras"] if record["format_version"] > 1 else {}),
        )
        problem = _contradiction(manifest)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        problem = f"lacks something or has it in the wrong type ({error})"
    if problem:
        raise CorruptError(f"{where}: {problem}; it was not written by streamcut: convert the data again")
    return manifest


def shard_record(shard: ShardInfo) -> dict:
    """A shard in JSON types."""
    arrays = {name: [getattr(array, field) for field in _ARRAY_FIELDS] for name, array in shard.arrays.items()}
    return {"rows": shard.rows, "nnz": shard.nnz, "ones": shard.ones, "arrays": arrays, "files": shard.files}


def shard_from_record(record: dict) -> ShardInfo:
    arrays = {name: ArrayInfo(*values) for name, values in record["arrays"].items()}
    return ShardInfo(record["rows"], record["nnz"], record["ones"], arrays, _guards(record["files"]))


def _guards(record: dict) -> dict[str, tuple[int, int]]:
    return {name: (int(length), int(crc)) for name, (length, crc) in record.items()}


def _statistics_record(statistics: Statistics) -> dict:
    labels = None if statistics.labels is None else sorted(statistics.labels.items())  # JSON has no numbers as keys
    return {**asdict(statistics), "labels": labels}


def _statistics(record: dict) -> Statistics:
    if set(record) != {field.name for field in fields(Statistics)}:
        raise ValueError("statistics")
    labels = None if record["labels"] is None else {float(label): int(rows) for label, rows in record["labels"]}
    return Statistics(**{**record, "labels": labels})


def _digest(content: dict) -> str:
    return hashlib.sha256(canonical_json(content)).hexdigest()


def _contradiction(manifest: Manifest) -> str | None:
    """What in a manifest contradicts itself: kernels and buffers rely on these numbers."""
    statistics = manifest.statistics
    if manifest.backend not in BACKENDS:
        return f"unknown backend {manifest.backend!r}"
    if set(manifest.extras) - set(EXTRAS) or any(length < 0 for length, _ in manifest.extras.values()):
        return f"it names the files {sorted(manifest.extras)}"
    if sum(shard.rows for shard in manifest.shards) != statistics.n_rows or statistics.n_rows < 1:
        return "its shards do not add up to its rows"
    if sum(shard.nnz for shard in manifest.shards) != statistics.nnz:
        return "its shards do not add up to its entries"
    for k, shard in enumerate(manifest.shards):
        if set(shard.arrays) - set(OPTIONAL) != set(DTYPES) - set(OPTIONAL) or shard.rows < 1 or shard.nnz < 0:
            return f"shard {k} has the arrays {sorted(shard.arrays)}, {shard.rows} rows and {shard.nnz} entries"
        if set(shard.arrays) != set(manifest.shards[0].arrays):
            return f"shard {k} has other arrays than shard 0"
        for name, array in shard.arrays.items():
            sound = array.dtype in DTYPES[name] and array.size == array_size(name, shard.rows, shard.nnz)
            if not sound or array.stored_bytes < 0:
                return f"array {name} of shard {k} cannot have {array.size} elements of {array.dtype}"
    if manifest.fingerprint != fingerprint(statistics.n_features, manifest.shards):
        return "its fingerprint is not that of its shards"
    return None
