"""Models with other contents, sealed as ours are."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile

import numpy as np

from streamcut.models.files import _DIGEST, _MARK


def sealed(meta: dict, arrays: dict[str, np.ndarray]) -> bytes:
    """A model file of these, with sums to match."""
    if isinstance(meta.get("sha256"), dict):
        meta = {**meta, "sha256": {name: hashlib.sha256(array.data).hexdigest() for name, array in arrays.items()}}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in {"meta.json": np.frombuffer(json.dumps(meta).encode(), np.uint8), **arrays}.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, version=(1, 0))
        archive.comment = _MARK + b"0" * _DIGEST
    return resealed(buffer.getvalue())


def resealed(content: bytes) -> bytes:
    body = content[:-_DIGEST]
    return body + hashlib.sha256(body).hexdigest().encode()
