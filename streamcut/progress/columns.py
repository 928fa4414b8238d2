"""Records of solvers as text: a line with names, or lines under a header that fit a terminal."""

from __future__ import annotations

from typing import Any

_BETWEEN = 2  # spaces between columns
_LAST = ("time", "left")  # shown at any width


def columns(record: Any, left: float | None) -> dict[str, str]:
    """A record as text by column, with the elapsed time and, if known, the time left."""
    shown = {**record.columns(), "time": duration(record.seconds)}
    return shown if left is None else {**shown, "left": duration(left)}


def line(shown: dict[str, str]) -> str:
    """One line of `name text` pairs."""
    return "  ".join(f"{name} {text}" for name, text in shown.items())


class Columns:
    """Lines of texts below a header of names, which is repeated when it no longer fits.

    width  characters per line; columns that do not fit are left out, the last ones first
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._widths: dict[str, int] = {}
        self._known: set[str] = set()

    def lines(self, shown: dict[str, str]) -> list[str]:
        """The line for `shown`, after a header if the current one does not fit."""
        kept = {name: shown.get(name, "") for name in self._widths}
        if self._widths and set(shown) <= self._known and all(len(text) <= self._widths[name] for name, text in kept.items()):
            return [self._line(kept)]
        self._known = set(shown)
        self._widths = self._fitting(shown)
        return [self._line({name: name for name in self._widths}), self._line({name: shown[name] for name in self._widths})]

    def _fitting(self, shown: dict[str, str]) -> dict[str, int]:
        widths = {name: max(len(name), len(text) + 1, self._widths.get(name, 0)) for name, text in shown.items()}
        free = self._width - sum(widths[name] + _BETWEEN for name in _LAST if name in widths)
        kept = []
        for name in (name for name in shown if name not in _LAST):
            free -= widths[name] + _BETWEEN
            if free < 0:
                break
            kept.append(name)
        return {name: widths[name] for name in shown if name in (*kept, *_LAST)}

    def _line(self, texts: dict[str, str]) -> str:
        return (" " * _BETWEEN).join(f"{texts[name]:>{width}}" for name, width in self._widths.items())


def duration(seconds: float) -> str:
    """`seconds` as text, in the two largest units: `1 d 2 h`, `3 min 20 s`, `7 s`; tenths below ten seconds."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    parts = []
    for name, size in units:
        count, whole = divmod(whole, size)
        parts.append(f"{count:,} {name}" * (count > 0))
    first = next(place for place, part in enumerate(parts) if part)
    return " ".join(filter(None, parts[first : first + 2]))
