"""A data set's description of itself: counts, statistics and, for each shard, the form of every stored array.

In a store it is manifest.json: canonical JSON with its own SHA-256, so that no byte of it can change unnoticed.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path

import numpy as np

from streamcut.errors import CorruptError, NotFoundError
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.opened import read_file
from streamcut.io.stores.spec import CHUNK, DTYPES, FORMAT_VERSION, NEEDS, SHARDS, TRAILER, array_size, shard_name

MAX_DISTINCT_LABELS = 4096
MAX_MANIFEST = 1 << 28  # bytes: its length for a store of a trillion entries
_BY_LABEL = ("labels", "label_weights")  # lists of pairs, because keys are texts in JSON


def damaged(where: str | os.PathLike, what: str) -> CorruptError:
    """The error for a damaged `where`: the fault and the remedy."""
    return CorruptError(f"{where}: {what}; restore it from a copy, or convert the data again")


@dataclass(frozen=True, slots=True)
class ArrayInfo:
    """One array of one shard: dtype (NumPy name), number of elements, and its checksums.

    stored_bytes, stored_crc32c   the chunk file without its own trailing checksum (a CRC over data + CRC is constant)
    content_crc32c                the decoded little-endian bytes, of which the fingerprint is made
    """

    dtype: str
    size: int
    content_crc32c: int
    stored_bytes: int = 0
    stored_crc32c: int = 0


@dataclass(frozen=True, slots=True)
class ShardInfo:
    """One shard: rows, stored entries, whether every value is 1, its arrays, and (length, crc32c) of its metadata files."""

    rows: int
    nnz: int
    ones: bool
    arrays: dict[str, ArrayInfo] = field(default_factory=dict)
    files: dict[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Statistics:
    """What training and `info` need to know about the rows without reading them.

    labels is {label: rows} or None when there are more than MAX_DISTINCT_LABELS; groups counts runs of equal qid. label_weights
    is {label: sum of weights} of weighted rows, where their labels are listed.
    """

    n_rows: int = 0
    n_features: int = 0
    nnz: int = 0
    labels: dict[float, int] | None = field(default_factory=dict)
    label_min: float = 0.0
    label_max: float = 0.0
    groups: int | None = None
    weight_sum: float | None = None
    max_abs_value: float = 0.0
    max_squared_norm: float = 0.0
    max_row_nnz: int = 0
    label_weights: dict[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """The whole data set. `source` records what `convert` was given and what it counted (JSON types only).

    `extras` are (length, CRC-32C) of files that are read on demand.
    """

    statistics: Statistics
    shards: tuple[ShardInfo, ...]
    fingerprint: str
    backend: str
    source: dict = field(default_factory=dict)
    format_version: int = 2
    streamcut_version: str = ""
    files: dict[str, tuple[int, int]] = field(default_factory=dict)
    extras: dict[str, tuple[int, int]] = field(default_factory=dict)


class StatisticsBuilder:
    """Collects Statistics over chunks that arrive in row order."""

    def __init__(self) -> None:
        self.n_rows = self.nnz = self.n_features = self.max_row_nnz = 0
        self.labels: Counter[float] | None = Counter()
        self.label_min, self.label_max = np.inf, -np.inf
        self.groups: int | None = None
        self.weight_sum: float | None = None
        self.label_weights: dict[float, float] | None = None
        self.max_abs_value = self.max_squared_norm = 0.0
        self._last_qid: int | None = None

    def add(self, chunk: Chunk) -> None:
        if chunk.n_rows == 0:
            return
        from streamcut.io.stores.structure import row_statistics  # Numba takes longer to import than most commands need

        unit = chunk.data is None
        data, y = np.empty(0, np.int8) if chunk.data is None else chunk.data, chunk.y + 0.0  # no -0
        largest, norm, longest, top = row_statistics(chunk.indptr, chunk.indices, data, unit)
        self.n_rows += chunk.n_rows
        self.nnz += chunk.nnz
        self.n_features = max(self.n_features, int(top) + 1)
        self.max_abs_value = max(self.max_abs_value, float(largest))
        self.max_squared_norm = max(self.max_squared_norm, float(norm))
        self.max_row_nnz = max(self.max_row_nnz, int(longest))
        self.label_min = min(self.label_min, float(y.min()))
        self.label_max = max(self.label_max, float(y.max()))
        if self.labels is not None:
            values, which, counts = np.unique(y, return_inverse=True, return_counts=True)
            if len(values) <= MAX_DISTINCT_LABELS:
                self.labels.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
                if chunk.weight is not None:
                    weights = np.bincount(which, chunk.weight).tolist()
                    self.label_weights = sums = self.label_weights or {}
                    more = dict(zip(values.tolist(), weights, strict=True))
                    sums.update({label: sums.get(label, 0.0) + weight for label, weight in more.items()})
            if len(values) > MAX_DISTINCT_LABELS or len(self.labels) > MAX_DISTINCT_LABELS:
                self.labels = self.label_weights = None
        if chunk.qid is not None:
            changes = int(np.count_nonzero(chunk.qid[1:] != chunk.qid[:-1]))
            self.groups = (self.groups or 0) + changes + (self._last_qid != int(chunk.qid[0]))
            self._last_qid = int(chunk.qid[-1])
        if chunk.weight is not None:
            with np.errstate(over="ignore"):  # callers that need it finite check
                self.weight_sum = (self.weight_sum or 0.0) + float(chunk.weight.sum())

    def is_finite(self) -> bool:
        """Whether no sum has overflowed."""
        return math.isfinite(self.max_squared_norm + (self.weight_sum or 0.0))

    def finish(self, n_features: int | None = None) -> Statistics:
        """The statistics so far; `n_features` overrides the number seen (it must not be smaller)."""
        values = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        values |= {name: None if values[name] is None else dict(sorted(values[name].items())) for name in _BY_LABEL}
        values |= {} if n_features is None else {"n_features": n_features}
        return Statistics(**values | ({} if self.n_rows else {"label_min": 0.0, "label_max": 0.0}))


def canonical_json(content: object) -> bytes:
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
    """The manifest in file `path`. Raises what `parse_manifest` raises."""
    try:
        content = read_file(path, MAX_MANIFEST)
    except FileNotFoundError:
        raise damaged(path, "missing") from None
    except PermissionError as error:
        raise NotFoundError(f"{path}: {error.strerror}; make it readable") from None
    except OSError as error:
        raise damaged(path, str(error.strerror)) from None
    return parse_manifest(content, str(path))


def parse_manifest(content: bytes, where: str) -> Manifest:
    """The Manifest in `content`, the inverse of `manifest_bytes`, every byte of it checked.

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
        statistics = record["statistics"]
        statistics |= {name: None if statistics[name] is None else dict(map(tuple, statistics[name])) for name in _BY_LABEL}
        record |= {"statistics": Statistics(**statistics), "shards": tuple(map(shard_from_record, record["shards"]))}
        record |= {name: {file: (length, crc) for file, (length, crc) in record[name].items()} for name in ("files", "extras")}
        return Manifest(**{name: record[name] for name in Manifest.__dataclass_fields__})
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CorruptError(f"{where}: {error}; it was not written by streamcut: convert the data again") from None


def guarded_files(manifest: Manifest) -> dict[str, tuple[int, int | None]]:
    """{name inside the store: (length, CRC-32C of the whole file, or None for chunks, which are checked when read)}."""
    files: dict[str, tuple[int, int | None]] = {**manifest.files, **manifest.extras}
    for number, shard in enumerate(manifest.shards):
        files |= shard_files(manifest.backend, number, shard)
    return files


def shard_files(backend: str, number: int, shard: ShardInfo) -> dict[str, tuple[int, int | None]]:
    """The same for the files of one shard: a file, or the chunks and the metadata."""
    if backend == "hdf5":
        return {f"{SHARDS}/{name}": guard for name, guard in shard.files.items()}
    chunks = {chunk_name(number, name): (chunk_length(info), None) for name, info in shard.arrays.items() if info.size}
    return {**chunks, **{f"{SHARDS}/{shard_name(number)}/{name}": guard for name, guard in shard.files.items()}}


def chunk_name(shard: int, name: str) -> str:
    """The path of an array's chunk inside its store."""
    return f"{SHARDS}/{shard_name(shard)}/{name}/{CHUNK}"


def chunk_length(info: ArrayInfo) -> int:
    """Length of the chunk file; 0 when there is none."""
    return info.stored_bytes + TRAILER if info.size else 0


def shard_record(shard: ShardInfo) -> dict:
    """A shard in JSON types."""
    arrays = {name: astuple(array) for name, array in shard.arrays.items()}
    return {"rows": shard.rows, "nnz": shard.nnz, "ones": shard.ones, "arrays": arrays, "files": shard.files}


def shard_from_record(record: dict) -> ShardInfo:
    """The inverse of `shard_record`. Raises ValueError for arrays that are not as long as its rows and entries say."""
    rows, nnz = record["rows"], record["nnz"]
    arrays = {name: ArrayInfo(*fields) for name, fields in record["arrays"].items()}
    for name, array in arrays.items():
        if array.dtype not in DTYPES[name] or array.size != array_size(name, rows, nnz):
            raise ValueError(f"array {name} of a shard of {rows} rows and {nnz} entries is {array.dtype} ({array.size})")
    return ShardInfo(rows, nnz, record["ones"], arrays, {name: (length, crc) for name, (length, crc) in record["files"].items()})


def _digest(content: dict[str, object]) -> str:
    return hashlib.sha256(canonical_json(content)).hexdigest()
