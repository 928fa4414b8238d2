"""Output of commands: stdout is for data, stderr for people. Output files are refused before any work where they would do harm,
reserved during the work, never lost."""

from __future__ import annotations

import csv
import io
import json
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING, BinaryIO

import click

from streamcut.errors import NotFoundError, UsageError
from streamcut.foundation.files import Sink, disk_full, temporary_name
from streamcut.foundation.shown import visible
from streamcut.foundation.units import format_number as number
from streamcut.io.outputs import AppearedError, destination, exists, output
from streamcut.io.remote import expect_bucket, is_url, size_of
from streamcut.io.stores.spec import MANIFEST

if TYPE_CHECKING:
    from streamcut.models.model import Model


def note(message: str) -> None:
    """A line for people, on stderr."""
    end = "\x1b[K" if sys.stderr.isatty() else ""  # of a line of progress
    click.echo(f"{end}{visible(message)}", err=True, color=True)


def note_counts(counters: Mapping[str, int]) -> None:
    """What was unusual in the input, and how often, one per line."""
    for name, times in sorted(counters.items()):
        note(f"{name}: {times:,}")


def csv_line(values: Iterable[object]) -> bytes:
    """A line of CSV: numbers with all digits, texts without control characters, nothing for None."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow([visible(value) if isinstance(value, str) else value for value in values])
    return text.getvalue().encode()


def print_json(value: object) -> None:
    """One line of JSON on stdout; NumPy's numbers become Python's, nan and infinity, which JSON lacks, null."""
    from streamcut.models.files import plain

    click.echo(json.dumps(plain(value), allow_nan=False))


def print_table(rows: Mapping[str, object], *, err: bool = False) -> None:
    """Names and values, one pair per line, on stdout or stderr; None is shown as a dash."""
    names = [visible(name.replace("_", " ")) for name in rows]
    values = [visible(number(value)) for value in rows.values()]
    wide, high = max(map(len, names), default=0), max(map(len, values), default=0)
    for name, value in zip(names, values, strict=True):
        click.echo(f"{name:<{wide}}  {value:>{high}}", err=err)


def print_rows(rows: Sequence[Mapping[str, object]], *, err: bool = False) -> None:
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
        sys.stderr = io.TextIOWrapper(_Lossy(2, "w", closefd=False), errors="backslashreplace", line_buffering=True)


class _Lossy(io.FileIO):
    def write(self, content) -> int:
        try:
            return super().write(content) or len(content)
        except OSError:
            return len(content)


def refuse_existing(path: str | os.PathLike, option: str, force: bool, *, reads: Sequence[str | os.PathLike | None] = ()) -> None:
    """Raise, before any work, when the output `path` cannot or should not be written.

    UsageError when it is a folder, lies in a store, whose files are all listed, is one of the files that the command
    `reads`, or exists and `force` is not given; NotFoundError when its folder does not exist or cannot be written to. Pipes and
    character devices hold no data, and need no `force`.
    """
    if is_url(path):
        _refuse_existing_object(os.fspath(path), option, force, reads)
        return
    target = destination(path)
    if target.mode is not None and stat.S_ISDIR(target.mode):
        raise UsageError(f"{option}: {path} is a folder")
    if any(read is not None and _same_file(target.path, read) for read in reads):
        raise UsageError(f"{option}: {path} is an input of this command; choose another place")
    if target.through:
        return
    folder = target.path.parent
    if not folder.is_dir():
        raise NotFoundError(f"{option}: {folder} is not a folder; create it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise NotFoundError(f"{option}: {folder} cannot be written to; choose another folder")
    with suppress(FileNotFoundError):
        os.lstat(temporary_name(target.path))  # is that name too long?
    store = next((parent for parent in target.path.parents if (parent / MANIFEST).is_file()), None)
    if store is not None:
        raise UsageError(f"{option}: {path} lies in the store {store}; choose another place")
    if target.mode is not None and not force:
        raise UsageError(f"{option}: {path} exists; choose another name or replace it with --force")


def _refuse_existing_object(url: str, option: str, force: bool, reads: Sequence[str | os.PathLike | None]) -> None:
    if url.endswith("/"):
        raise UsageError(f"{option}: {url} is a folder; give the name of an object in it")
    expect_bucket(url, f"{option}: ")
    if any(read is not None and os.fspath(read) == url for read in reads):
        raise UsageError(f"{option}: {url} is an input of this command; choose another place")
    scheme, _, place = url.partition("://")
    folders = place.split("/")
    for depth in range(2, len(folders)):  # below the bucket
        if size_of(f"{scheme}://{'/'.join(folders[:depth])}/{MANIFEST}") is not None:
            raise UsageError(f"{option}: {url} lies in the store {'/'.join(folders[:depth])}; choose another place")
    if not force and size_of(url) is not None:
        raise UsageError(f"{option}: {url} exists; choose another name or replace it with --force")


def is_unfinished(model_path: str) -> bool:
    """Whether the file is the model of a run that was interrupted, which --resume may replace."""
    from streamcut.models.certificate import StopReason
    from streamcut.models.files import is_model, load_model

    return is_model(model_path) and load_model(model_path).stop_reason is StopReason.INTERRUPTED


def _same_file(first: str | os.PathLike, second: str | os.PathLike) -> bool:
    try:
        return os.path.samefile(first, second)
    except (OSError, ValueError):
        return os.path.realpath(first) == os.path.realpath(second)


def save_trained(model: Model, path: str, replace: bool) -> tuple[str, Exception | None]:
    """Write a model that took long to train. Returns where it is, `path`, and None; or a similar free name, if a file appeared
    there meanwhile that may not be replaced, or one in the working directory, if a URL cannot be written to, and the error that
    says so, to be raised in the end."""
    from streamcut.models.files import save_model

    try:
        save_model(model, path, replace=replace)
        return path, None
    except (AppearedError, NotFoundError) as error:
        if not (isinstance(error, AppearedError) or is_url(path)):
            raise
        failure = error
    stem, ending = os.path.splitext(path if isinstance(failure, AppearedError) else os.path.basename(path))
    for spare in (f"{stem}.{k}{ending}" for k in count(1)):
        if not exists(spare):
            with suppress(AppearedError):
                save_model(model, spare, replace=False)
                break
    return spare, type(failure)(f"{path} could not be written: the model is in {spare} ({failure})")


@contextmanager
def output_file(path: str | None, *, replace: bool) -> Iterator[Sink | BinaryIO]:
    """A sink for data: standard output, or the output `path` (streamcut.io.outputs). Raises DiskFullError, UsageError."""
    if path is None:
        with disk_full("standard output"):
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
    else:
        with output(path, prefix="output", replace=replace) as file:
            yield file
