"""Memory that a thread reuses for every batch: fresh pages cost as much as the computation in them."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np


class Scratch(threading.local):
    """Arrays by name, one set for each thread; they grow and never shrink."""

    def __init__(self) -> None:
        self._bytes: dict[str, np.ndarray] = {}

    def array(self, name: str, shape: int | tuple[int, ...], dtype: Any) -> np.ndarray:
        """An uninitialised array, valid until this thread requests `name` again."""
        size = np.dtype(dtype).itemsize * math.prod(shape if isinstance(shape, tuple) else (shape,))
        held = self._bytes.get(name)
        if held is None or len(held) < size:
            held = self._bytes[name] = np.empty(size + size // 4, np.uint8)
        return held[:size].view(dtype).reshape(shape)
