"""Arrays whose reading would run what somebody hostile wrote."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any


class Harm:
    """Unpickling it makes a file."""

    def __reduce__(self):
        return os.system, ("touch harm",)


PICKLED: list[dict[str, Any]] = [
    {"compressor": {"id": "pickle", "protocol": 5}},
    {"filters": [{"id": "pickle", "protocol": 5}]},
    {"filters": [{"id": "shuffle", "elementsize": 1}, {"id": "pickle", "protocol": 5}]},
    {"dtype": "|O", "filters": [{"id": "pickle", "protocol": 5}]},
    {"dtype": "|O", "filters": [{"id": "vlen-utf8"}], "compressor": {"id": "pickle", "protocol": 5}},
]


def pickled_array(place: Path, size: int, forged: dict) -> None:
    """A Zarr v2 array whose chunk is a pickle."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    shape = {"zarr_format": 2, "shape": [size], "chunks": [size], "order": "C", "fill_value": 0}
    (place / ".zarray").write_text(json.dumps({**shape, "dtype": "<f8", "compressor": None, "filters": None, **forged}))
    (place / "0").write_bytes(pickle.dumps(Harm()))
