"""What a checkpoint keeps of an object: attributes by name, written and read back by one schema.

Attributes are numbers (JSON types), dataclasses or named tuples of numbers, arrays, or objects of which something is kept. They
are read back in the types, dtypes and shapes of the present ones.
"""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np

from streamcut.models.checkpoint import Fill

_SHAPES = "shapes"


class Kept:
    """An object of which checkpoints keep the attributes `kept`.

    resized  arrays of any shape; they are read into new ones, all others in place
    """

    kept: tuple[str, ...]
    resized: tuple[str, ...] = ()

    def saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """(numbers, arrays) of a checkpoint; arrays are views."""
        numbers, arrays = dict[str, Any](), dict[str, np.ndarray]()
        for name in self.kept:
            value = getattr(self, name)
            if isinstance(value, np.ndarray):
                arrays[name] = value
            elif isinstance(value, Kept):
                numbers[name], more = value.saved()
                arrays |= {f"{name}.{inner}": array for inner, array in more.items()}
            else:
                numbers[name] = asdict(value) if is_dataclass(value) else value  # type: ignore[arg-type]
        return {**numbers, _SHAPES: {name: list(arrays[name].shape) for name in self.resized}}, arrays

    def restore(self, numbers: dict[str, Any], fill: Fill) -> None:
        """Resume from what `saved` returned; `fill` reads an array by name."""
        for name in self.kept:
            now = getattr(self, name)
            if isinstance(now, np.ndarray):
                out = np.empty(numbers[_SHAPES][name], now.dtype) if name in self.resized else now
                fill(name, out, self.release)
                if name in self.resized:
                    setattr(self, name, out)
            elif isinstance(now, Kept):
                now.restore(numbers[name], _inside(fill, name))
            else:
                setattr(self, name, _like(now, numbers[name]))

    def release(self) -> None:
        """Release the pages of arrays that live in scratch files; the others stay in memory."""


def _inside(fill: Fill, name: str) -> Fill:
    """`fill` for the object `name`."""
    return lambda inner, out, after=lambda: None: fill(f"{name}.{inner}", out, after)


def _like(now: Any, value: Any) -> Any:
    """What JSON made of a value of the type of `now`."""
    if is_dataclass(now):
        return type(now)(**value)  # type: ignore[misc, operator]
    return type(now)(*value) if hasattr(now, "_fields") else value
