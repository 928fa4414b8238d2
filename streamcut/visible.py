"""Text from files, names and labels, as people may be shown it: nothing in it steers a terminal or hides from a reader."""

from __future__ import annotations

import logging
from html import escape


def visible(text: str) -> str:
    """`text` on one line, with escapes for control characters, marks of direction and bytes that are no UTF-8."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(ord(c)) for c in text)


def html(text: str) -> str:
    """The same as HTML."""
    return escape(visible(text))


class VisibleFormatter(logging.Formatter):
    """Log messages that name such things."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


def _escaped(code: int) -> str:
    if 0xDC80 <= code <= 0xDCFF:  # how Python reads bytes that are no UTF-8
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
