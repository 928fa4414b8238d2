"""What commands print: stdout is data, stderr is for people."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import click

from streamcut.errors import NotFoundError, UsageError
from streamcut.files import disk_full, sync_directory
from streamcut.io.stores.spec import MANIFEST


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


def refuse_existing(path: str | os.PathLike, option: str, force: bool) -> None:
    """Raise before any work: UsageError when `path` exists and `force` is not given, or lies in a store, whose files are all
    accounted for; NotFoundError when its folder does not exist or cannot be written to."""
    path = Path(path)
    if not path.parent.is_dir():
        raise NotFoundError(f"{option}: {path.parent} is not a folder; create it first")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise NotFoundError(f"{option}: {path.parent} cannot be written to; choose another folder")
    if path.is_dir():
        raise UsageError(f"{option}: {path} is a folder")
    store = next((folder for folder in path.resolve().parents if (folder / MANIFEST).is_file()), None)
    if store is not None:
        raise UsageError(f"{option}: {path} lies in the store {store}; choose another place")
    if path.exists() and not force:
        raise UsageError(f"{option}: {path} exists; choose another name or replace it with --force")


@contextmanager
def output_file(path: str | None) -> Iterator[BinaryIO]:
    """A binary file for data: standard output, or `path`, which appears when all is written and safe on disk, not before.

    Raises DiskFullError.
    """
    if path is None:
        with disk_full("standard output"):
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        return
    temporary = Path(path).with_name(f".{Path(path).name}.{os.getpid()}.tmp")
    try:
        with disk_full(path):
            with open(temporary, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
            sync_directory(Path(path).parent)
    finally:
        with suppress(OSError):  # it may never have been there; what went wrong first is what to tell
            temporary.unlink()
