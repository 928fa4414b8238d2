"""Manifests with other contents, sealed as ours are."""

from __future__ import annotations

from streamcut.io.manifest import _digest, canonical_json, fingerprint, shard_from_record


def sealed(record: dict) -> bytes:
    """The manifest of this record, with a fingerprint and a checksum that fit if there can be any."""
    try:
        shards = [shard_from_record(shard) for shard in record["shards"]]
        record = {**record, "fingerprint": fingerprint(record["statistics"]["n_features"], shards)}
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    return canonical_json({**record, "sha256": _digest(record)}) + b"\n"
