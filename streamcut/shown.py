"""How results introduce themselves: a line in a console, a small table in a notebook."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from streamcut.units import format_number
from streamcut.visible import html, visible


class Shown(ABC):
    """Mix-in: `shown` says what there is to know, `__repr__` and `_repr_html_` show it. Dataclasses need `repr=False`."""

    __slots__ = ()

    @abstractmethod
    def shown(self) -> dict[str, Any]:
        """What is worth showing, by name; None is left out."""

    def __repr__(self) -> str:
        parts = [f"{name}={_short(value)}" for name, value in self.shown().items() if value is not None]
        return f"{type(self).__name__}({', '.join(parts)})"

    def _repr_html_(self) -> str:
        known = [(name.replace("_", " "), format_number(value)) for name, value in self.shown().items() if value is not None]
        return html_table(type(self).__name__, known)


def html_table(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """(name, value) below each other."""
    cells = "".join(
        f"<tr><th style='text-align:left'>{html(name)}</th><td style='text-align:right'>{html(value)}</td></tr>"
        for name, value in rows
    )
    return f"<table><caption>{html(title)}</caption><tbody>{cells}</tbody></table>"


def _short(value: Any) -> str:
    return str(value) if isinstance(value, bool) else visible(format_number(value))
