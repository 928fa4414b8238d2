"""Sizes as people write them: `4GB`, `4GiB`, `50%`, `auto`."""

import math
import re
from typing import Any

from streamcut.errors import UsageError

_UNITS = {"B": 1}
for _power, _prefix in enumerate("kMGTP", 1):
    _UNITS |= {f"{_prefix}B": 1000**_power, f"{_prefix.upper()}iB": 1024**_power}
_BY_NAME = {name.lower(): factor for name, factor in _UNITS.items()}
_SIZE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-zA-Z%]*)\s*")


def parse_size(text: str, *, option: str = "size", total: int | None = None) -> int:
    """Bytes in `text`: `512MB` is 512·10⁶, `512MiB` is 512·2²⁰, `50%` is half of `total`.

    Raises UsageError for a number without unit, an unknown unit, a percentage if `total` is None or outside (0, 100].
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise UsageError(f"{option}: {text!r} is not a size; write for example 4GB, 512MiB" + (" or 50%" if total else ""))
    number, unit = float(match[1]), match[2]
    if not unit:
        raise UsageError(f"{option}: {text!r} has no unit; add a unit, for example {match[1]}GB or {match[1]}MB")
    if unit == "%":
        if total is None:
            raise UsageError(f"{option}: a percentage has no meaning here; write for example 4GB")
        if not 0 < number <= 100:
            raise UsageError(f"{option}: {text!r} must be above 0% and at most 100%")
        return int(total * number / 100)
    if unit.lower() not in _BY_NAME:
        raise UsageError(f"{option}: {unit!r} is not a unit; use one of {', '.join(_UNITS)}")
    return int(number * _BY_NAME[unit.lower()])


def plain(value: Any) -> Any:
    """A NumPy scalar, or an array without dimensions, as a Python number (or text); anything else unchanged."""
    if getattr(value, "shape", None) != () or not hasattr(value, "item"):
        return value
    number = value.item()
    return float(number) if hasattr(number, "dtype") else number  # Python has no long double


def format_bytes(count: float) -> str:
    """`count` bytes for people, three significant digits, decimal units: `1.23 GB`."""
    if count < 1000:
        return f"{count:.0f} B"
    power = min(int(math.log10(count) // 3), 5)
    scaled = count / 1000**power
    if scaled >= 999.5 and power < 5:
        power, scaled = power + 1, scaled / 1000
    digits = max(0, 2 - int(math.log10(scaled)))
    return f"{scaled:.{digits}f} {'kMGTP'[power - 1]}B"


def format_enough(count: int) -> str:
    """The same, rounded up: as a limit the text is never less than `count` bytes."""
    digit = 10 ** max(0, len(str(count)) - 3)
    return format_bytes(-(-count // digit) * digit)


def format_number(value: object) -> str:
    """`value` for people: whole numbers with thousands separators, others with six significant digits."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer() and abs(value) < 1e15):
        return f"{int(value):,}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def part_of(text: object) -> float | None:
    """0.1 for "10%"; None for anything but a percentage above 0."""
    if not isinstance(text, str) or not text.strip().endswith("%"):
        return None
    try:
        part = float(text.strip()[:-1]) / 100.0
    except ValueError:
        return None
    return part if 0.0 < part < math.inf else None
