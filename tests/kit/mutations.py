"""What is wrong on purpose: JSON documents, arrays and bytes with a few things in them replaced, removed or added."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import numpy as np

ODD: tuple[Any, ...] = (None, True, -1, 0, 1.5, -0.5, 1e308, 2**31, 2**62, 2**80, 10**400)
ODD += ("", "x", "\x1b[31m\n", [], [[]], {}, {"a": 1})
ELSEWHERE = "/etc/passwd"
TEXT = ("../a.svm", ELSEWHERE, f"../../../../../../..{ELSEWHERE}", f"file://{ELSEWHERE}", "pickle", "..", "c/../../zarr.json")


def places(document: Any, path: tuple = ()) -> Iterator[tuple]:
    """The path of every value inside of `document`; of long lists, the first and the last item."""
    if isinstance(document, dict):
        for name in document:
            yield (*path, name)
            yield from places(document[name], (*path, name))
    elif isinstance(document, list) and document:
        for k in {0, len(document) - 1}:
            yield (*path, k)
            yield from places(document[k], (*path, k))


def forged_document(rng: random.Random, document: dict) -> dict:
    """A copy in which one to three values are others, or gone."""
    changed = copy.deepcopy(document)
    for _ in range(rng.randint(1, 3)):
        path = rng.choice(list(places(changed)) or [()])
        holder: Any = changed
        for step in path[:-1]:
            holder = holder[step]
        if not path:
            continue
        if rng.random() < 0.15:
            del holder[path[-1]]
        else:
            numbers = [rng.randrange(1 << 16), rng.random(), rng.randrange(-(1 << 40), 1 << 40)]
            holder[path[-1]] = copy.deepcopy(rng.choice([*ODD, *TEXT, *numbers]))
    return changed


def forged_array(rng: random.Random, array: np.ndarray) -> np.ndarray:
    """A copy with a few other values, or of other length, order or type."""
    forged = array.copy().reshape(-1)
    kind = rng.random()
    if kind < 0.1:
        return forged[: rng.randrange(len(forged) + 1)]
    if kind < 0.2:
        return np.concatenate([forged, forged[: rng.randint(1, 3)]])
    if kind < 0.3:
        with np.errstate(all="ignore"):
            return array.astype(rng.choice([np.float32, np.float64, np.int32, np.int64, np.uint8]))
    if kind < 0.4:
        return array[::-1].copy() if array.ndim else array
    if array.dtype.kind == "f":
        odd = [np.nan, np.inf, -np.inf, 1e300, -1e300, 0.0, -0.0, 5e-324, rng.random()]
    else:
        whole = np.iinfo(array.dtype)
        odd = [whole.max, whole.min, 0, max(whole.min, -1), rng.randrange(min(int(whole.max), 1 << 12)), int(whole.max) // 2]
    with np.errstate(all="ignore"):
        for _ in range(rng.randint(1, 3) if len(forged) else 0):
            forged[rng.randrange(len(forged))] = rng.choice(odd)
    return forged.reshape(array.shape)


def scattered(rng: random.Random, content: bytes) -> bytes:
    """A few bytes changed, half of them near the beginning or the end, where headers are; or some cut out or doubled."""
    forged = bytearray(content)
    for _ in range(rng.randint(1, 6)):
        reach = len(forged) if rng.random() < 0.5 else min(len(forged), 2048)
        at = rng.randrange(reach) if rng.random() < 0.8 else len(forged) - 1 - rng.randrange(reach)
        forged[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256), forged[at] ^ 1 << rng.randrange(8)])
    if rng.random() < 0.1:
        at, length = rng.randrange(len(forged)), rng.randrange(1, 64)
        forged[at : at + length] = forged[at : at + length] * rng.choice([0, 2])
    return bytes(forged)
