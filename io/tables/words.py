"""Python strings as Words for the kernels."""

from __future__ import annotations

import numpy as np

from streamcut.io.tables.word_kernels import Words

NO_CODES = np.empty(0, np.int32)


def listed(values: list[str], codes: np.ndarray = NO_CODES) -> Words:
    """The Words of a list; without `codes` one per row."""
    found = [value.encode("utf-8", "surrogateescape") for value in values]
    stops = np.cumsum([len(value) for value in found], dtype=np.int64)
    starts = stops - np.array([len(value) for value in found], np.int64)
    return Words(np.frombuffer(b"".join(found), np.uint8), starts, stops, codes, codes is NO_CODES)


def utf8(text: str) -> np.ndarray:
    """The bytes of `text`, uint8."""
    return np.frombuffer(text.encode(), np.uint8)
