"""Manifests with other contents, sealed as ours are."""

from __future__ import annotations

import json
from pathlib import Path


def manifest_of(store: Path) -> dict:
    record = json.loads((store / "manifest.json").read_bytes())
    del record["sha256"]
    return record
