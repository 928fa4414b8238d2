"""manifest.json: a Manifest as canonical JSON with its own SHA-256, so that no byte of it can change unnoticed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from streamcut.errors import CorruptError, NotFoundError
from streamcut.foundation.fields import Fields, shown
from streamcut.io.manifest import MAX_DISTINCT_LABELS, ArrayInfo, Manifest, ShardInfo, Statistics
from streamcut.io.stores.codec import MAX_BYTES
from streamcut.io.stores.guarded import damaged, read_small
from streamcut.io.stores.spec import BACKENDS, DTYPES, EXTRAS, NEEDS, OPTIONAL, READABLE, SHARDS, array_size, shard_name
from streamcut.io.stores.zarr_layout import ITEM_BYTES, METADATA, chunk_length, chunk_name, store_documents

MAX_MANIFEST = 1 << 28  # bytes: its length for a store of a trillion entries
_ARRAY_FIELDS = ("dtype", "size", "content_crc32c", "stored_bytes", "stored_crc32c")
_CRC = 2**32 - 1
_VERSION = re.compile(r"[\w.+-]{1,20}")
_MOST = 2**31  # rows or entries of one shard: decoded arrays are shorter
_OVERHEAD = 1 << 20  # bytes that compression, metadata or HDF5 may add


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
    content = {
        "format_version": manifest.format_version,
        "needs": NEEDS,
        "backend": manifest.backend,
        "fingerprint": manifest.fingerprint,
        "statistics": _statistics_record(manifest.statistics, manifest.format_version),
        "shards": [shard_record(shard) for shard in manifest.shards],
        "files": manifest.files,
        "extras": manifest.extras,
        "source": manifest.source,
        "streamcut_version": manifest.streamcut_version,
    }
    return canonical_json({**content, "sha256": _digest(content)}) + b"\n"


def read_manifest(path: str | Path) -> Manifest:
    """The manifest in file `path`, or CorruptError."""
    where = str(path)
    try:
        content = read_small(Path(path).parent, Path(path).name, MAX_MANIFEST)
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
    if record.get("format_version") not in READABLE:  # every version computes the digest the same way
        version, needs = shown(record.get("format_version")), str(record.get("needs"))
        needs = needs if _VERSION.fullmatch(needs) else "a later version"
        raise NotFoundError(f"{where}: format version {version} needs streamcut >= {needs}; upgrade streamcut")
    try:
        return _manifest(Fields(record, "manifest"))
    except ValueError as error:
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


def shard_from_record(record: dict, backend: str | None = None, number: int = 0) -> ShardInfo:
    """The inverse of `shard_record`, for a store of this `backend`; None: of an incomplete store, which has no files yet.

    Raises ValueError for records that it cannot have returned.
    """
    given = Fields(record, f"shard {number}")
    rows, nnz = given.integer("rows", 1, _MOST), given.integer("nnz", 0, _MOST)
    arrays = {}
    for name in given.object("arrays").names():
        stated = given.object("arrays").list(name)
        if name not in DTYPES or len(stated) != len(_ARRAY_FIELDS):
            raise ValueError(f"{given.where}: array {shown(name)} is {shown(stated)}")
        array = Fields(dict(zip(_ARRAY_FIELDS, stated, strict=True)), f"{given.where}, array {name}")
        dtype, size = array.text("dtype", DTYPES[name]), array_size(name, rows, nnz)
        most = size * ITEM_BYTES[dtype]
        if most > MAX_BYTES:
            raise ValueError(f"{array.where} has {size:,} elements, more than one shard holds")
        crcs = (array.integer("content_crc32c", 0, _CRC), array.integer("stored_crc32c", 0, _CRC))
        stored = array.integer("stored_bytes", 0, most + most // 64 + _OVERHEAD)
        arrays[name] = ArrayInfo(dtype, array.integer("size", size, size), crcs[0], stored, crcs[1])
    if set(arrays) - set(OPTIONAL) != set(DTYPES) - set(OPTIONAL):
        raise ValueError(f"{given.where} has the arrays {sorted(arrays)}")
    decoded = sum(info.size * ITEM_BYTES[info.dtype] for info in arrays.values())
    files = _guards(given.object("files"), decoded + decoded // 64 + _OVERHEAD)
    known = {"zarr": {METADATA, *(f"{name}/{METADATA}" for name in arrays)}, "hdf5": {f"{shard_name(number)}.h5"}}
    if backend is not None and set(files) != known[backend]:
        raise ValueError(f"{given.where} has the files {shown(sorted(files))}")
    return ShardInfo(rows, nnz, given.flag("ones"), arrays, files)


def _guards(files: Fields, most: int) -> dict[str, tuple[int, int]]:
    """{name: (length, CRC-32C)}, no length above `most`."""
    found = {}
    for name in files.names():
        stated = files.list(name)
        if len(stated) != 2:
            raise files.wrong(name, "a length and a checksum")
        guard = Fields({"length": stated[0], "checksum": stated[1]}, f"{files.where}, {shown(name)}")
        found[name] = guard.integer("length", 0, most), guard.integer("checksum", 0, _CRC)
    return found


def _statistics_record(statistics: Statistics, version: int) -> dict:
    by_label = {"labels": statistics.labels, "label_weights": statistics.label_weights}
    listed = {name: None if found is None else sorted(found.items()) for name, found in by_label.items()}  # JSON keys are texts
    record = {**asdict(statistics), **listed}
    if version == 1:  # which did not have them
        del record["label_weights"]
    return record


def _manifest(record: Fields) -> Manifest:
    """The manifest that `record` describes. Kernels and buffers rely on its numbers: ValueError for impossible ones."""
    backend, version = record.text("backend", BACKENDS), record.integer("format_version")
    shards = tuple(shard_from_record(shard, backend, k) for k, shard in enumerate(record.list("shards")))
    if not shards:
        raise ValueError("manifest: there are no shards")
    for k, shard in enumerate(shards):
        if set(shard.arrays) != set(shards[0].arrays):
            raise ValueError(f"shard {k} has other arrays than shard 0")
    statistics = _statistics(record.object("statistics"), shards, version)
    if record.text("fingerprint") != fingerprint(statistics.n_features, shards):
        raise ValueError("its fingerprint is not that of its shards")
    files = _guards(record.object("files"), _OVERHEAD)
    if set(files) != (set(store_documents()) if backend == "zarr" else set()):
        raise ValueError(f"it names the files {shown(sorted(files))}")
    extras = _guards(record.object("extras"), MAX_BYTES) if version > 1 else {}
    if set(extras) - set(EXTRAS):
        raise ValueError(f"it names the files {shown(sorted(extras))}")
    return Manifest(
        statistics=statistics,
        shards=shards,
        fingerprint=record.text("fingerprint"),
        backend=backend,
        source=_source(record.object("source")),
        format_version=version,
        streamcut_version=record.text("streamcut_version"),
        files=files,
        extras=extras,
    )


def _statistics(given: Fields, shards: Sequence[ShardInfo], version: int) -> Statistics:
    """Statistics that are consistent with `shards`."""
    given.expect_only([field.name for field in fields(Statistics) if version > 1 or field.name != "label_weights"])
    rows, nnz = sum(shard.rows for shard in shards), sum(shard.nnz for shard in shards)
    n_features = given.integer("n_features", 0)
    longest = min(n_features, max(shard.nnz for shard in shards))
    if given.integer("n_rows") != rows:
        raise ValueError(f"its shards do not add up to its rows: {rows} and {given.integer('n_rows')}")
    if given.integer("nnz") != nnz:
        raise ValueError(f"its shards do not add up to its entries: {nnz} and {given.integer('nnz')}")
    low, high = given.number("label_min"), given.number("label_max")
    labels = label_weights = None
    if not given.is_null("labels"):
        pairs = _by_label(given, "labels")
        labels = {each.number("label", low, high): each.integer("value", 1, rows) for each in pairs}
        if sum(labels.values()) != rows or len(labels) != len(pairs) or len(labels) > MAX_DISTINCT_LABELS:
            raise ValueError("its labels do not add up to its rows")
        if list(labels) != sorted(labels) or (min(labels), max(labels)) != (low, high):
            raise ValueError("its labels are not those of its range, increasing")
    grouped, weighted = ("qid" in shards[0].arrays), ("weight" in shards[0].arrays)
    for name, there in (("groups", grouped), ("weight_sum", weighted)):
        if given.is_null(name) == there:
            raise ValueError(f"{given.where}: {name} is {shown(given.any(name))}, which does not go with the arrays")
    if version > 1 and not given.is_null("label_weights"):
        label_weights = {each.number("label"): each.number("value", 0.0) for each in _by_label(given, "label_weights")}
    if (label_weights is None) == (weighted and labels is not None and version > 1):
        raise given.wrong("label_weights", "what goes with the arrays")
    if label_weights is not None and list(label_weights) != list(labels or ()):
        raise given.wrong("label_weights", "the weight of each label")
    if low > high:
        raise ValueError(f"{given.where}: label_min is above label_max")
    return Statistics(
        n_rows=rows,
        n_features=n_features,
        nnz=nnz,
        labels=labels,
        label_min=low,
        label_max=high,
        groups=given.integer("groups", 1, rows) if grouped else None,
        weight_sum=given.number("weight_sum", 0.0) if weighted else None,
        max_abs_value=given.number("max_abs_value", 0.0),
        max_squared_norm=given.number("max_squared_norm", 0.0),
        max_row_nnz=given.integer("max_row_nnz", -(-nnz // rows), longest),
        label_weights=label_weights,
    )


def _by_label(given: Fields, name: str) -> list[Fields]:
    """The pairs (label, value) of a list."""
    found = given.list(name)
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in found):
        raise given.wrong(name, "pairs of label and number")
    return [Fields({"label": pair[0], "value": pair[1]}, f"{given.where}, {name}") for pair in found]


def _source(given: Fields) -> dict:
    """The origin of the data: informative, so only the fields that are shown are checked."""
    if "made_from" in given:
        made_from = given.object("made_from")
        for pair in made_from.list("inputs") if "inputs" in made_from else ():
            if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
                raise made_from.wrong("inputs", "pairs of name and bytes")
    if "counters" in given:
        counters = given.object("counters")
        for name in counters.names():
            counters.integer(name)
    return given.plain()


def _digest(content: dict) -> str:
    return hashlib.sha256(canonical_json(content)).hexdigest()
