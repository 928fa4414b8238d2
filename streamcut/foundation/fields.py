"""Values and records in messages and files."""

from __future__ import annotations

from typing import Any

import numpy as np

INT64_MAX = 2**63 - 1
_SHOWN = 40  # characters of a value


def shown(value: Any) -> str:
    """A value in a message: short, and on one line."""
    huge = isinstance(value, int) and abs(value) > 10**30  # Python refuses to print some of these
    text = f"a number of {value.bit_length()} bits" if huge else repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def by_name(record: Any) -> dict[str, Any]:
    """The fields of a dataclass by name, not copied: dataclasses.asdict copies every value, which is slow for many records."""
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


def expect_shape(name: str, array: Any, *shape: int) -> None:
    """Raise ValueError unless `array` has this shape: compiled code checks no bounds."""
    if np.shape(array) != shape:
        raise ValueError(f"{name} has shape {np.shape(array)}, expected {shape}")
