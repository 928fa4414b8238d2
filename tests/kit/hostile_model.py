"""Models with other contents, sealed as ours are."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np


def contents(path: Path) -> tuple[dict, dict[str, np.ndarray]]:
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    return json.loads(arrays.pop("meta.json").tobytes()), arrays
