"""What commands print: stdout is data, stderr is for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click


def note(message: str) -> None:
    """A line for people, on stderr."""
    click.echo(message, err=True)


def print_json(value: Any) -> None:
    """One line of JSON on stdout; nan and infinity, which JSON lacks, are a bug."""
    click.echo(json.dumps(value, allow_nan=False))


def print_table(rows: Mapping[str, Any], *, err: bool = False) -> None:
    """Names and values below each other on stdout, or on stderr; None is shown as a dash."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(justify="right", no_wrap=True)
    for name, value in rows.items():
        table.add_row(name.replace("_", " "), number(value))
    Console(file=sys.stderr if err else sys.stdout, markup=False, highlight=False, soft_wrap=True).print(table)


def print_rows(rows: Sequence[Mapping[str, Any]], *, err: bool = False) -> None:
    """Records with the same names as a table with a head on stdout, or on stderr; nothing when there are none."""
    from rich.console import Console
    from rich.table import Table

    if not rows:
        return
    table = Table(box=None, pad_edge=False)
    for name in rows[0]:
        table.add_column(name.replace("_", " "), justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*(number(value) for value in row.values()))
    Console(file=sys.stderr if err else sys.stdout, markup=False, highlight=False, soft_wrap=True).print(table)


def number(value: Any) -> str:
    """`value` for people: whole numbers with thousands separators, others with six significant digits."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer() and abs(value) < 1e15):
        return f"{int(value):,}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def counted(count: int, thing: str) -> str:
    """`1 shard`, `2,000 shards`."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"
