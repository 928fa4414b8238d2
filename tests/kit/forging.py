"""Stores that are wrong on purpose, with checksums to match: what somebody hostile could hand over."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import h5py
import numpy as np


def external_link(file: h5py.Group) -> None:
    """`y` becomes one of another file."""
    del file["y"]
    file["y"] = h5py.ExternalLink("/etc/passwd", "/y")


def external_storage(file: h5py.Group) -> None:
    """The values of `y` are bytes of another file."""
    del file["y"]
    file.create_dataset("y", (2,), np.int8, external=[("/etc/passwd", 0, 2)])


def virtual(file: h5py.Group) -> None:
    """`y` is a view of one of another file."""
    del file["y"]
    layout = h5py.VirtualLayout((2,), np.int8)
    layout[:] = h5py.VirtualSource("/etc/passwd", "y", (2,))
    file.create_virtual_dataset("y", layout)


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
