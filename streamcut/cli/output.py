"""Output of commands: stdout is for data, stderr for people."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from streamcut.foundation.shown import visible
from streamcut.foundation.units import format_number as number


def note(message: str) -> None:
    """A line for people, on stderr."""
    end = "\x1b[K" if sys.stderr.isatty() else ""  # of a line of progress
    click.echo(f"{end}{visible(message)}", err=True, color=True)


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


def survive_full_stderr() -> None:
    """From now on what stderr cannot take, such as a log on a full disk, is dropped, and work continues."""
    if sys.stderr is not None and sys.stderr is sys.__stderr__:  # not replaced by a test or a notebook
        sys.stderr = io.TextIOWrapper(_Lossy(2, "w", closefd=False), errors="backslashreplace", line_buffering=True)  # type: ignore


class _Lossy(io.FileIO):
    def write(self, content) -> int:
        try:
            return super().write(content) or len(content)
        except OSError:
            return len(content)
