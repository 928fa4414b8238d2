"""Text for people, without terminal control or hidden characters; results with readable representations; records by field.

Names, labels and file contents are untrusted text. Results are a line in a console, a small table in a notebook.
For unknown names there are suggestions (`meant`).
"""

from __future__ import annotations

import logging
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from html import escape
from typing import TYPE_CHECKING, Any, TypeAlias

from streamcut.errors import UsageError, spelled
from streamcut.foundation.units import format_number

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
    import numpy as np  # commands that show text alone do without

    if np.shape(array) != shape:
        raise ValueError(f"{name} has shape {np.shape(array)}, expected {shape}")


def visible(text: str) -> str:
    """`text` on one line, with escapes for control characters, direction marks and bytes that are not UTF-8."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(ord(c)) for c in text)


def word(label: object) -> str:
    """A label as text: a word, or the shortest form of a number; "" for none."""
    return "" if label is None else label if isinstance(label, str) else f"{label:g}"


def html(text: str) -> str:
    """`text` as HTML."""
    return escape(visible(text))


def warn(sentence: str) -> None:
    """A UserWarning that points at the caller's code; the command line shows it as a note."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(("streamcut.", "contextlib")):
        level, frame = level + 1, frame.f_back
    warnings.warn(spelled(sentence), UserWarning, stacklevel=level)


class VisibleFormatter(logging.Formatter):
    """Formats log messages with untrusted text."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


def _escaped(code: int) -> str:
    if 0xDC80 <= code <= 0xDCFF:  # how Python decodes bytes that are not UTF-8
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class Shown(ABC):
    """Mix-in: `shown` returns the values, `__repr__` and `_repr_html_` show them. Dataclasses need `repr=False`."""

    __slots__ = ()

    @abstractmethod
    def shown(self) -> dict[str, object]:
        """The values to show, by name; None is left out."""

    def __repr__(self) -> str:
        parts = [f"{name}={_short(value)}" for name, value in self.shown().items() if value is not None]
        return f"{type(self).__name__}({', '.join(parts)})"

    def _repr_html_(self) -> str:
        rows = [(name.replace("_", " "), format_number(value)) for name, value in self.shown().items() if value is not None]
        return html_table(type(self).__name__, rows)


def html_table(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """An HTML table of (name, value) rows."""
    cells = "".join(
        f"<tr><th style='text-align:left'>{html(name)}</th><td style='text-align:right'>{html(value)}</td></tr>"
        for name, value in rows
    )
    return f"<table><caption>{html(title)}</caption><tbody>{cells}</tbody></table>"


def _short(value: object) -> str:
    return str(value) if isinstance(value, bool) else visible(format_number(value))


def meant(name: object, choices: Iterable[str]) -> str:
    """ "did you mean ‹name›?" with the closest choices, "" if none is close. Case and _ or - don't matter."""
    names = {plain(choice): choice for choice in choices}
    close = [names[choice] for choice in get_close_matches(plain(str(name)), names, n=2, cutoff=0.65)]
    return f"did you mean {' or '.join(close)}?" if close else ""


def unknown(value: object, choices: Iterable[str]) -> str:
    """The end of a message on a value not in `choices`: a suggestion, and the choices."""
    choices = list(choices)
    close = meant(value, choices)
    return f"{value!r} is unknown; {close + ' ' if close else ''}use one of {', '.join(choices)}"


def expect_known(function: str, options: Iterable[str], choices: Iterable[str]) -> None:
    """Raise UsageError if `function` lacks an option with one of these names."""
    choices = list(choices)
    for name in options:
        if name not in choices:
            raise UsageError(
                f"{function} has no option {name}; {meant(name, choices) or f'help(streamcut.{function}) lists them'}"
            )


def plain(name: str) -> str:
    """`name` in the form used for comparison."""
    return name.lower().replace("_", "-")


def options_text(options: Mapping[str, object]) -> str:
    """Options and their values: `C 0.1, loss hinge`."""
    return ", ".join(f"{name} {value if isinstance(value, str) else format(value, 'g')}" for name, value in options.items())
