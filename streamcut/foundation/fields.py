"""Values and records in messages and files."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from numpy.typing import ArrayLike

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"  # what a JSON text holds

INT64_MAX = 2**63 - 1
_SHOWN = 40  # characters of a value


def shown(value: object) -> str:
    """A value in a message: short, and on one line."""
    if isinstance(value, int) and abs(value) > 10**30:  # Python refuses to print some of these
        return f"a number of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def by_name(record: DataclassInstance) -> dict[str, Any]:
    """The fields of a dataclass by name, not copied: dataclasses.asdict copies every value, which is slow for many records."""
    return {field.name: getattr(record, field.name) for field in fields(record)}


def expect_shape(name: str, array: ArrayLike, *shape: int) -> None:
    """Raise ValueError unless `array` has this shape: compiled code checks no bounds."""
    if np.shape(array) != shape:
        raise ValueError(f"{name} has shape {np.shape(array)}, expected {shape}")
