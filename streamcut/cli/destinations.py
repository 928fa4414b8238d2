"""Output files of commands: refused before any work where they would do harm, reserved during the work, never lost."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from typing import IO, Any, BinaryIO

from streamcut.cli.output import note
from streamcut.errors import NotFoundError, StreamcutError, UsageError
from streamcut.foundation.files import Sink, disk_full, temporary_name
from streamcut.io.places.outputs import AppearedError, destination, exists, output, reserved
from streamcut.io.places.remote import expect_bucket, is_url, size_of
from streamcut.io.stores.spec import MANIFEST


def refuse_existing(path: str | os.PathLike, option: str, force: bool, *, reads: Sequence[str | os.PathLike | None] = ()) -> None:
    """Raise, before any work, when the output `path` cannot or should not be written.

    UsageError when it is a folder, lies in a store, whose files are all listed, is one of the files that the command
    `reads`, or exists and `force` is not given; NotFoundError when its folder does not exist or cannot be written to. Pipes and
    character devices hold no data, and need no `force`.
    """
    if is_url(path):
        _refuse_existing_object(os.fspath(path), option, force, reads)
        return
    place = destination(path)
    if place.mode is not None and stat.S_ISDIR(place.mode):
        raise UsageError(f"{option}: {path} is a folder")
    if any(read is not None and _same_file(place.path, read) for read in reads):
        raise UsageError(f"{option}: {path} is an input of this command; choose another place")
    if place.through:
        return
    folder = place.path.parent
    if not folder.is_dir():
        raise NotFoundError(f"{option}: {folder} is not a folder; create it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise NotFoundError(f"{option}: {folder} cannot be written to; choose another folder")
    with suppress(FileNotFoundError):
        os.lstat(temporary_name(place.path))  # is that name too long?
    store = next((parent for parent in place.path.parents if (parent / MANIFEST).is_file()), None)
    if store is not None:
        raise UsageError(f"{option}: {path} lies in the store {store}; choose another place")
    if place.mode is not None and not force:
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


def _same_file(first: str | os.PathLike, second: str | os.PathLike) -> bool:
    try:
        return os.path.samefile(first, second)
    except (OSError, ValueError):
        return os.path.realpath(first) == os.path.realpath(second)


@contextmanager
def reserved_output(path: str | os.PathLike, option: str, force: bool) -> Iterator[None]:
    """Refuse what `refuse_existing` does, and lock the output `path` during the work."""
    with reserved(path):
        refuse_existing(path, option, force)  # another process may have finished between the first check and the lock
        yield


def save_trained(model: Any, path: str, replace: bool) -> tuple[str, Exception | None]:
    """Write a model that took long to train. Returns where it is, `path`, and None; or a similar free name, if a file appeared
    there meanwhile that may not be replaced, or one in the working directory, if a URL cannot be written to, and the error that
    says so, to be raised in the end."""
    from streamcut.models.files import save_model

    try:
        save_model(model, path, replace=replace)
        return path, None
    except AppearedError:
        stem, ending = os.path.splitext(path)
        kind: type[StreamcutError] = UsageError
        said = "appeared while the model was trained, and was not replaced: the model is in {}"
    except NotFoundError as error:
        if not is_url(path):
            raise
        note(str(error))
        stem, ending = os.path.splitext(os.path.basename(path))
        kind, said = NotFoundError, "could not be written: the model is in {}; copy it there"
    for k in count(1):
        spare = f"{stem}.{k}{ending}"
        if not exists(spare):
            with suppress(AppearedError):
                save_model(model, spare, replace=False)
                return spare, kind(f"{path} {said.format(spare)}")
    raise AssertionError("unreachable")


@contextmanager
def output_file(path: str | None, *, replace: bool) -> Iterator[Sink | IO[bytes] | BinaryIO]:
    """A sink for data: standard output, or the output `path` (streamcut.io.places.outputs). Raises DiskFullError, UsageError."""
    if path is None:
        with disk_full("standard output"):
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
    else:
        with output(path, prefix="output", replace=replace) as file:
            yield file
