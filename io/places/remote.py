"""Objects behind URLs, by fsspec: read, written, listed and removed; failed requests are retried with growing pauses.

Object stores return errors when they are busy, and connections break. Keys and endpoints are left to fsspec and the
libraries below it, with their own variables and files (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, ~/.config/fsspec, …); none is kept
here, and messages show URLs without the passwords and signatures in them.

An object appears with its last byte or not at all, which replaces writing under a temporary name. That is true of object
stores, and only those are written to. They have no locks: the last writer wins.
"""

from __future__ import annotations

import logging
import os
import random
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any, TypeVar

from streamcut.errors import DiskFullError, NotFoundError, UsageError
from streamcut.foundation.files import disk_full, failpoint, scratch_folder
from streamcut.foundation.opened import read_file
from streamcut.foundation.redaction import redacted
from streamcut.io.places.answers import ask, asking, attempts, final, pause

log = logging.getLogger(__name__)
T = TypeVar("T")

OBJECT_STORES = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "oss", "oci", "memory")
_PACKAGES = {  # that fsspec needs in addition to those of streamcut[remote]
    **dict.fromkeys(("s3", "s3a"), "s3fs"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("az", "abfs", "abfss", "adl"), "adlfs"),
    **dict.fromkeys(("sftp", "ssh"), "paramiko"),
    "oss": "ossfs",
    "oci": "ocifs",
    "hf": "huggingface_hub",
    "smb": "smbprotocol",
}
_PAUSE = 0.2  # seconds before the second attempt, twice as long before each further one
_WHOLE = 32 << 20  # bytes: larger objects are uploaded in parts, from a file
_S3_PART, _S3_PARTS, _S3_AT_ONCE = 8 << 20, 9000, 4  # bytes and number of parts of an upload; the server takes 10,000 at most


class MissingError(Exception):
    """There is no such object; the text is that of the library below."""


def is_url(path: Any) -> bool:
    """Whether `path` is a URL rather than a file name."""
    return isinstance(path, str) and "://" in path


def path_in(url: str) -> str:
    """`url` without the query of http(s), which may be a signature; elsewhere `?` is part of a name or of a glob."""
    return url.partition("?")[0] if url.startswith(("http://", "https://")) else url


def file_system(url: str) -> tuple[Any, str]:
    """(fsspec file system, the path in it without a trailing slash). Raises NotFoundError."""
    try:
        from fsspec.core import url_to_fs

        files, path = url_to_fs(url)
    except ImportError as error:
        raise NotFoundError(f"{url}: cannot be opened ({error}); {install_line(url)}") from None
    except (OSError, ValueError) as error:
        raise NotFoundError(f"{url}: cannot be opened ({error})") from None
    return files, path.rstrip("/")


def install_line(url: str) -> str:
    """The command that installs the missing package for such URLs."""
    more = _PACKAGES.get(url.partition("://")[0].rpartition("::")[2], "")
    return f"run: pip install 'streamcut[remote]'{more and ' ' + more}"


def expect_writable(url: str, what: str = "") -> None:
    """Raise UsageError unless `url` is of an object store; `what` begins the message."""
    scheme = url.partition("://")[0]
    if scheme not in OBJECT_STORES:
        raise UsageError(
            f"{what}{url}: {scheme}:// can be read only; streamcut writes to disks and to object stores "
            f"({', '.join(OBJECT_STORES)}), whose objects appear whole or not at all"
        )
    file_system(url)


def expect_bucket(url: str, what: str = "") -> None:
    """Raise NotFoundError when the bucket of the output `url` does not exist; `what` begins the message."""
    expect_writable(url, what)
    if (error := no_bucket(url, what, "create it first, or ")) is not None:
        raise error


def no_bucket(url: str, what: str = "", remedy: str = "") -> NotFoundError | None:
    """The error to raise if `url` is of an object store and its bucket does not exist; else None."""
    scheme = url.partition("://")[0]
    if scheme not in OBJECT_STORES or scheme == "memory":
        return None
    files, path = file_system(url)
    bucket = path.partition("/")[0]
    try:
        retried(url, lambda: ask(files, "info", bucket), doing="read")
    except MissingError:
        return NotFoundError(f"{what}{url}: there is no bucket {bucket!r}; {remedy}check its name and the endpoint")
    except NotFoundError as error:
        if isinstance(error.__context__, PermissionError):  # a user who may not list a bucket may still use it
            return None
        raise
    return None


def missing(url: str) -> NotFoundError:
    """The error for a missing object."""
    return no_bucket(url) or NotFoundError(f"{url}: no such file")


def retried(where: str, call: Callable[[], T], *, doing: str) -> T:
    """The result of `call`, retried while that may help. `doing`: "read" (abandoned when the work is to stop), "written".

    Raises MissingError when there is no such object, NotFoundError for permanent failures, GivenUp.
    """
    for attempt in range(most := attempts()):
        try:
            with asking(where, given_up=doing == "read"):
                return call()
        except DiskFullError:  # on this machine
            raise
        except FileNotFoundError as error:
            raise MissingError(str(error)) from None
        except NotImplementedError:
            raise NotFoundError(f"{where}: cannot be {doing}: this kind of URL does not support it") from None
        except Exception as error:  # the libraries below raise anything for broken connections and busy stores
            if (what := final(error)) is not None:
                raise NotFoundError(f"{where}: cannot be {doing}: {what}") from None
            if attempt == most - 1:
                what = f"cannot be {doing} ({type(error).__name__}: {error}) after {most} attempt{'s' * (most > 1)}"
                raise NotFoundError(f"{where}: {what}") from error
            with asking(where, given_up=doing == "read"):
                rest(where, f"{type(error).__name__}: {error}", attempt)
    raise AssertionError("unreachable")


def rest(where: str, wrong: str, attempt: int) -> None:
    """Wait before the next attempt."""
    seconds = _PAUSE * 2**attempt * random.uniform(0.5, 1.0)
    log.info("%s: %s; trying again in %.1f s", redacted(where), redacted(wrong), seconds)
    pause(seconds)


# Reading


def size_of(url: str) -> int | None:
    """Bytes of the object, None when there is none. Raises NotFoundError when the server cannot say."""
    files, path = file_system(url)
    return _size(files, path, url)


def read_object(url: str, first: int | None = None) -> bytes:
    """The content, or its `first` bytes. Raises NotFoundError when there is none, or it cannot be read."""
    files, path = file_system(url)

    def get() -> bytes:
        if first is not None:
            return ask(files, "cat_file", path, start=0, end=first, size=first)
        size = info_of(files, path).get("size")
        content = ask(files, "cat_file", path, size=size or 0, **({"start": 0, "end": size} if size else {}))
        if size is not None and len(content) != size:
            raise OSError(f"only {len(content):,} of {size:,} bytes came")
        return content

    try:
        return retried(url, get, doing="read")
    except MissingError:
        raise missing(url) from None


def fetch_object(url: str, place: str | os.PathLike) -> None:
    """Copy the object into the local file `place`, in pieces. Raises NotFoundError, DiskFullError."""
    files, path = file_system(url)

    def get() -> None:
        size = info_of(files, path).get("size")
        with disk_full(place, size):
            ask(files, "get_file", path, os.fspath(place), size=size or 0)
        if size is not None and (found := os.path.getsize(place)) != size:
            raise OSError(f"only {found:,} of {size:,} bytes came")

    try:
        retried(url, get, doing="read")
    except MissingError:
        raise missing(url) from None


def objects_below(url: str) -> dict[str, int]:
    """{path below `url`: bytes} of all objects there."""
    files, root = file_system(url)

    def find() -> dict[str, int]:
        files.invalidate_cache()
        found = ((name.removeprefix(f"{root}/"), name, about) for name, about in ask(files, "find", root, detail=True).items())
        return {below: about["size"] for below, name, about in found if below not in ("", name)}

    try:
        return retried(url, find, doing="read")
    except MissingError:
        return {}


def _size(files: Any, path: str, url: str) -> int | None:
    try:
        found = retried(url, lambda: info_of(files, path), doing="read")
    except MissingError:
        return None
    return found["size"] if found.get("type") == "file" else None


def info_of(files: Any, path: str) -> dict[str, Any]:
    files.invalidate_cache(path.rpartition("/")[0])  # other processes write there, too
    return ask(files, "info", path)


# Writing


def write_object(url: str, content: bytes) -> None:
    """Put `content` there, replacing any object. Raises NotFoundError. Failpoint: remote.put, before each object."""
    files, path = file_system(url)
    _put(files, path, url, lambda: ask(files, "pipe_file", path, content, size=len(content)), len(content))


def write_parts(url: str, parts: Iterable[bytes | memoryview], *, size: int | None = None) -> None:
    """As write_object, for `parts` that are generated into a scratch file. Raises DiskFullError, too."""
    with object_written(url, size=size) as file:
        for part in parts:
            file.write(part)


@contextmanager
def object_written(url: str, *, size: int | None = None) -> Iterator[IO[bytes]]:
    """A scratch file that is uploaded when the context ends without error: a failed upload is repeated from it."""
    expect_writable(url)
    folder = scratch_folder(None)
    with disk_full(folder, size), tempfile.NamedTemporaryFile(prefix="streamcut-", dir=folder) as file:
        yield file
        file.flush()
        _upload(url, file.name)


def _upload(url: str, name: str) -> None:
    """Upload the local file `name`."""
    files, path = file_system(url)
    size = os.path.getsize(name)
    if size <= _WHOLE:
        write_object(url, read_file(name))
        return
    parts = {"chunksize": max(_S3_PART, -(-size // _S3_PARTS)), "max_concurrency": _S3_AT_ONCE}
    options = parts if "s3" in (files.protocol if isinstance(files.protocol, tuple) else (files.protocol,)) else {}
    _put(files, path, url, lambda: ask(files, "put_file", name, path, size=size, **options), size)


def _put(files: Any, path: str, url: str, put: Callable[[], Any], size: int) -> None:
    def call() -> None:
        failpoint("remote.put")
        put()
        found = info_of(files, path).get("size")
        if found != size:
            raise OSError(f"{found} of {size:,} bytes arrived")

    try:
        retried(url, call, doing="written")
    except MissingError as error:
        raise no_bucket(url, remedy="create it first, or ") or NotFoundError(f"{url}: cannot be written ({error})") from None


def copy_object(source: str, target: str) -> None:
    """Copy an object within the store. Raises NotFoundError."""
    files, path = file_system(source)
    _, place = file_system(target)
    try:
        retried(target, lambda: ask(files, "cp_file", path, place), doing="written")
    except MissingError:
        raise missing(source) from None


def remove_object(url: str) -> None:
    """Remove the object if there is one."""
    files, path = file_system(url)
    try:
        retried(url, lambda: ask(files, "rm_file", path), doing="removed")
    except MissingError:
        pass
    finally:
        files.invalidate_cache(path.rpartition("/")[0])
