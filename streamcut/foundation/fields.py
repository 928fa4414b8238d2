"""Records from untrusted files: every field is read with its type and its range.

A checksum says that a file is as it was written, not who wrote it. Data for kernels, buffers and messages is checked here, once,
when it is read; ValueError names the wrong field in a message for the user.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, get_args, get_origin, get_type_hints

INT64_MAX = 2**63 - 1
_SHOWN = 40  # characters of a value


class Fields:
    """The fields of the JSON object `record`; `where` names it in messages. Raises ValueError if it is not an object."""

    def __init__(self, record: Any, where: str) -> None:
        if not isinstance(record, dict):
            raise ValueError(f"{where} is {shown(record)}, not an object")
        self.where, self._record = where, record

    def plain(self) -> dict[str, Any]:
        """The record, unchecked."""
        return dict(self._record)

    def expect_only(self, known: Collection[str]) -> None:
        """Raise ValueError unless the fields are exactly `known`."""
        if self._record.keys() != set(known):
            odd = sorted(self._record.keys() ^ set(known))
            raise ValueError(f"{self.where} has missing or unexpected fields: {', '.join(map(shown, odd[:3]))}")

    def any(self, name: str) -> Any:
        if name not in self._record:
            raise ValueError(f"{self.where} lacks {name}")
        return self._record[name]

    def integer(self, name: str, low: int = 0, high: int = INT64_MAX) -> int:
        value = self.any(name)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.wrong(name, f"a whole number from {low} to {high}")
        return value

    def list(self, name: str) -> list[Any]:
        value = self.any(name)
        if not isinstance(value, list):
            raise self.wrong(name, "a list")
        return value

    def object(self, name: str) -> Fields:
        return Fields(self.any(name), f"{self.where}, {name}")

    def wrong(self, name: str, expected: str) -> ValueError:
        return ValueError(f"{self.where}: {name} is {shown(self._record[name])}, not {expected}")


def shown(value: Any) -> str:
    """A value in a message: short, and on one line."""
    huge = isinstance(value, int) and abs(value) > 10**30  # Python refuses to print some of these
    text = f"a number of {value.bit_length()} bits" if huge else repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond float64
        return False


def by_name(record: Any) -> dict[str, Any]:
    """The fields of a dataclass by name, not copied: dataclasses.asdict copies each, which is slow for many records."""
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


def expect_like(found: Any, model: Any, where: str) -> None:
    """Raise ValueError unless `found` has the JSON types of `model`: the same names, whole numbers, flags and texts in the same
    places, numbers other than NaN for floats, tuples of the same length; any of these types for None."""
    if model is None:
        model = found if found is None or isinstance(found, int | float | list) else 0.0
    if isinstance(model, dict):
        Fields(found, where).expect_only(model.keys())
        for name in model:
            expect_like(found[name], model[name], f"{where}, {name}")
        return
    if isinstance(model, list | tuple):
        fits = isinstance(found, list) and (len(found) == len(model) or isinstance(model, list))
        if fits and len(model):
            for value in found:
                expect_like(value, model[0], where)
    elif isinstance(model, float):
        fits = isinstance(found, float) or (type(found) is int and _finite(found))
        fits = fits and found == found
    else:
        fits = type(found) is type(model) and (not isinstance(model, int) or abs(found) <= INT64_MAX)
    if not fits:
        raise ValueError(f"{where} is {shown(found)}, unlike {shown(model)}")


def expect_lines(found: Any, kind: type, where: str) -> list[list[Any]]:
    """`found`, a list of lists from which a dataclass can be made. Raises ValueError for values of wrong types."""
    kinds = [(hint, *get_args(hint)) for hint in get_type_hints(kind).values()]
    if not isinstance(found, list):
        raise ValueError(f"{where} is {shown(found)}, not a list")
    for line in found:
        if not isinstance(line, list) or len(line) != len(kinds):
            raise ValueError(f"{where} has a line {shown(line)}, not one of {len(kinds)} values")
        for value, known in zip(line, kinds, strict=True):
            if type(value) not in (*known, get_origin(known[0])) and not (type(value) is int and float in known):
                raise ValueError(f"{where} has {shown(value)} where {shown(known[0])} belongs")
    return found
