"""Output of commands: stdout is for data, stderr for people."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from streamcut.foundation.shown import visible
from streamcut.foundation.units import format_number as number


def note(message: str) -> None:
    """A line for people, on stderr."""
    click.echo(visible(message), err=True)


def print_json(value: Any) -> None:
    """One line of JSON on stdout; nan and infinity, which JSON lacks, are a bug."""
    click.echo(json.dumps(value, allow_nan=False))


def print_table(rows: Mapping[str, Any], *, err: bool = False) -> None:
    """Names and values, a line each, on stdout or stderr; None is shown as a dash."""
    names = [visible(name.replace("_", " ")) for name in rows]
    values = [visible(number(value)) for value in rows.values()]
    wide, high = max(map(len, names), default=0), max(map(len, values), default=0)
    for name, value in zip(names, values, strict=True):
        click.echo(f"{name:<{wide}}  {value:>{high}}", err=err)


def print_rows(rows: Sequence[Mapping[str, Any]], *, err: bool = False) -> None:
    """Records with the same names as a table with a header on stdout or stderr; nothing without records."""
    if not rows:
        return
    columns = [[name.replace("_", " "), *(visible(number(row[name])) for row in rows)] for name in rows[0]]
    widths = [max(map(len, column)) for column in columns]
    for line in zip(*columns, strict=True):
        click.echo("  ".join(f"{text:>{width}}" for text, width in zip(line, widths, strict=True)), err=err)


def counted(count: int, thing: str) -> str:
    """`1 shard`, `2,000 shards`."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def repair() -> None:
    """Open all three: a closed stdout becomes a pipe without a reader. What stderr cannot take is dropped; work continues."""
    for stream in (0, 2):
        if _is_closed(stream):
            _put(os.open(os.devnull, os.O_RDWR), stream)
    if _is_closed(1):
        unread, end = os.pipe()
        os.close(unread)
        _put(end, 1)
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    if sys.stderr is None or sys.stderr is sys.__stderr__:  # not replaced by a test or a notebook
        sys.stderr = io.TextIOWrapper(_Lossy(2, "w", closefd=False), errors="backslashreplace", line_buffering=True)  # type: ignore


class _Lossy(io.FileIO):
    """Drops what cannot be written, to a full disk or a closed terminal."""

    def write(self, content) -> int:
        try:
            return super().write(content) or len(content)
        except OSError:
            return len(content)


def _is_closed(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return True
    return False


def _put(handle: int, number: int) -> None:
    """Move `handle` to the descriptor `number`, which children inherit like a standard stream."""
    if handle != number:
        os.dup2(handle, number)
        os.close(handle)
    else:
        os.set_inheritable(number, True)
