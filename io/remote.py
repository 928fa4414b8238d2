"""Objects behind URLs by obstore (Rust's object_store): S3, Google and Azure are read and written, https:// is read.

Requests run on one event loop in a thread of its own: any number may be under way, and a wait can be given up. Each is repeated
STREAMCUT_RETRIES times (5) and may take STREAMCUT_TIMEOUT seconds (60). Keys and endpoints are left to obstore, with its
variables (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, …), and to boto3 for profiles; none is kept here, and messages show URLs without
the passwords and signatures in them. An object appears with its last byte or not at all.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from contextlib import suppress
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, ParamSpec, TypeGuard, TypeVar
from urllib.parse import unquote

from streamcut.errors import BadInputError, DiskFullError, NotFoundError, UsageError
from streamcut.foundation.files import disk_full, failpoint
from streamcut.foundation.interrupts import TURN, GivenUp, stop_wanted

if TYPE_CHECKING:
    import asyncio

    from _typeshed import WriteableBuffer
    from obstore import Bytes, GetOptions, ObjectMeta
    from obstore.auth.boto3 import Boto3CredentialProvider
    from obstore.store import BackoffConfig, ClientConfig, ObjectStore, RetryConfig

P = ParamSpec("P")
T = TypeVar("T")
OBJECT_STORES = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "memory")
_TIMEOUT, _RETRIES = "STREAMCUT_TIMEOUT", "STREAMCUT_RETRIES"
_PAUSE = 0.2  # seconds before the second attempt, twice as long before each further one
_PIECE = 4 << 20  # bytes of an object in one request
_GETS = 16  # at once: of more, which share one line, the first is complete later
AHEAD = 7  # pieces in flight, in addition to the one that is read
AHEAD_BYTES = (AHEAD + 2) * _PIECE


class MissingError(Exception):
    """There is no such object."""


def is_url(path: object) -> TypeGuard[str]:
    """Whether `path` is a URL rather than a file name."""
    return isinstance(path, str) and "://" in path


def path_in(url: str) -> str:
    """`url` without the query of http(s), which may be a signature; elsewhere `?` is part of a name or of a glob."""
    return url.partition("?")[0] if url.startswith(("http://", "https://")) else url


def set_timeout(seconds: float) -> None:
    """Let requests to servers (URLs) take `seconds` before they are repeated; 60 by default. Raises UsageError."""
    if not 0 < seconds < 1e9:
        raise UsageError(f"seconds: {seconds!r} must be above 0")
    os.environ[_TIMEOUT] = repr(float(seconds))


def _timeout() -> float:
    text = os.environ.get(_TIMEOUT, "60")
    with suppress(ValueError):
        if 0 < (seconds := float(text)) < 1e9:
            return seconds
    raise UsageError(f"{_TIMEOUT}: {text!r} is not a number of seconds above 0")


def _retries() -> int:
    text = os.environ.get(_RETRIES, "5")
    if not (text.isascii() and text.isdigit() and int(text) <= 20):
        raise UsageError(f"{_RETRIES}: {text!r} is not a number from 0 to 20")
    return int(text)


@cache
def _store(root: str, timeout: float, retries: int, endpoint: str | None) -> ObjectStore:
    """obstore's store of a bucket or server. Another `endpoint` (of the environment) is another store."""
    try:
        from obstore.store import from_url
    except ImportError:
        raise NotFoundError(f"{root}: cannot be opened; run: pip install 'streamcut[remote]'") from None
    if root.startswith("memory:"):
        return from_url(root)
    pause: BackoffConfig = {"init_backoff": timedelta(seconds=_PAUSE), "max_backoff": timedelta(seconds=15), "base": 2}
    client: ClientConfig = {"timeout": timedelta(seconds=timeout), "allow_http": True}
    again: RetryConfig = {"max_retries": retries, "retry_timeout": timedelta(seconds=timeout * (retries + 1)), "backoff": pause}
    keys = None
    if root.startswith(("s3:", "s3a:")) and not {"AWS_ACCESS_KEY_ID", "AWS_SKIP_SIGNATURE"} & {*os.environ}:
        keys = _by_boto3(root)
    try:
        return from_url(root, client_options=client, retry_config=again, credential_provider=keys)
    except Exception as error:
        raise NotFoundError(f"{root}: cannot be opened ({_said(error)})") from None


def _by_boto3(root: str) -> Boto3CredentialProvider | None:
    """What takes keys from where boto3 finds them: profiles, single sign-on, roles. None: it is not installed."""
    try:
        import boto3
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError:
        return None
    session = boto3.Session()
    if session.get_credentials() is None:
        what = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or for public data AWS_SKIP_SIGNATURE=true"
        raise NotFoundError(f"{root}: there are no credentials; {what}")
    return Boto3CredentialProvider(session)


def located(url: str) -> tuple[ObjectStore, str]:
    """(obstore's store, the path in it). Raises NotFoundError."""
    scheme, _, rest = url.partition("://")
    settings = _timeout(), _retries(), os.environ.get("AWS_ENDPOINT_URL")
    if scheme in ("http", "https"):
        if path_in(url) != url:  # a query belongs to all of the address
            return _store(url, *settings), ""
        server, _, path = rest.partition("/")
        return _store(f"{scheme}://{server}", *settings), unquote(path.rstrip("/"))
    if scheme not in OBJECT_STORES:
        raise NotFoundError(f"{url}: {scheme}:// is not read; copy the data to a disk, or to one of {', '.join(OBJECT_STORES)}")
    if scheme == "memory":
        return _store("memory:///", 0.0, 0, None), rest.rstrip("/")
    bucket, _, path = rest.partition("/")
    return _store(f"{scheme}://{bucket}", *settings), path.rstrip("/")


@cache
def _loop() -> asyncio.AbstractEventLoop:
    import asyncio  # 7 MB, which few commands need

    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="requests", daemon=True).start()
    return loop


def begun(request: Callable[P, Coroutine[object, object, T]], *arguments: P.args, **named: P.kwargs) -> Future[T]:
    """A request under way."""

    import asyncio

    async def run() -> T:
        return await request(*arguments, **named)

    return asyncio.run_coroutine_threadsafe(run(), _loop())


def answer(url: str, coming: Future[T], doing: str = "read") -> T:
    """The answer to a request; `doing`: "read" (given up when the work is to stop), "written" or "removed".

    Raises MissingError unless it is written, BadInputError if it is no longer the version that was asked for, NotFoundError for
    all other failures, DiskFullError, GivenUp.
    """
    from obstore import exceptions

    while wait([coming], TURN).not_done:
        if doing == "read" and stop_wanted():
            coming.cancel()
            raise GivenUp(f"{url}: the answer was not waited for")
    try:
        return coming.result()
    except DiskFullError:
        raise
    except exceptions.PreconditionError:
        raise BadInputError(f"{url}: was replaced while it was read; read it again when it is complete") from None
    except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
        raise _DeniedError(f"{url}: cannot be {doing}: {_said(error)}; check the credentials") from None
    except (exceptions.BaseError, OSError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError | exceptions.NotFoundError)
        missing = missing or "NoSuchBucket" in str(error) or "ContainerNotFound" in str(error)
        if missing and doing != "written":
            raise MissingError(_said(error)) from None
        if "Range request not supported" in str(error):
            raise NotFoundError(f"{url}: this server does not give parts of a file; download it first") from None
        bucket = no_bucket(url, remedy="create it first, or ") if missing else None
        raise bucket or NotFoundError(f"{url}: cannot be {doing} ({_said(error)})") from None


class _DeniedError(NotFoundError):
    """The server knows the object, or its bucket, and refuses it."""


def _said(error: BaseException) -> str:
    """What an error of the library says, without its source code, XML and the server's address."""
    text = " ".join(str(error).split("\n\nDebug source:")[0].split()) or type(error).__name__
    if (message := re.search(r"<Message>(.*?)</Message>", text)) is not None:
        text = text.split("<")[0] + message[1]
    return re.sub(r"https?://[^\s,()\"]+", "the server", text)


def expect_writable(url: str, what: str = "") -> None:
    """Raise UsageError unless `url` is of an object store; `what` begins the message."""
    scheme = url.partition("://")[0]
    if scheme not in OBJECT_STORES:
        raise UsageError(
            f"{what}{url}: {scheme}:// can be read only; streamcut writes to disks and to object stores "
            f"({', '.join(OBJECT_STORES)}), whose objects appear whole or not at all"
        )
    located(url)


def expect_bucket(url: str, what: str = "") -> None:
    """Raise NotFoundError when the bucket of the output `url` does not exist; `what` begins the message."""
    expect_writable(url, what)
    if (error := no_bucket(url, what, "create it first, or ")) is not None:
        raise error


def no_bucket(url: str, what: str = "", remedy: str = "") -> NotFoundError | None:
    """The error to raise if `url` is of an object store and its bucket does not exist; else None."""
    import obstore

    scheme, _, rest = url.partition("://")
    if scheme not in OBJECT_STORES or scheme == "memory":
        return None
    try:
        answer(url, begun(obstore.list_with_delimiter_async, located(url)[0], "streamcut-probe"))
    except MissingError:
        return NotFoundError(
            f"{what}{url}: there is no bucket {rest.partition('/')[0]!r}; {remedy}check its name and the endpoint"
        )
    except _DeniedError:  # a user who may not list a bucket may still use it
        return None
    return None


def about(url: str) -> ObjectMeta:
    """`size`, `e_tag` and `last_modified` of an object. Raises MissingError, NotFoundError."""
    import obstore

    return answer(url, begun(obstore.head_async, *located(url)))


def size_of(url: str) -> int | None:
    """Bytes of the object, None when there is none. Raises NotFoundError when the server cannot say."""
    try:
        return about(url)["size"]
    except MissingError:
        return None


@cache
def _turns() -> asyncio.Semaphore:
    import asyncio

    return asyncio.Semaphore(_GETS)


async def get(url: str, start: int = 0, stop: int | None = None, e_tag: str | None = None) -> Bytes:
    """The content, or bytes start:stop of it; `e_tag`: of this version only. A body that breaks off is asked for again."""

    import obstore

    store, path = located(url)
    options: GetOptions = {} if stop is None else {"range": (start, stop)}
    if e_tag:
        options["if_match"] = e_tag
    async with _turns():
        response = await obstore.get_async(store, path, options=options)
        content = await response.bytes_async()  # which NumPy reads as it is
    if len(content) != response.range[1] - response.range[0]:
        raise OSError("the answer broke off")
    return content


def read_object(url: str, first: int = -1) -> bytes:
    """The content, or its `first` bytes. Raises NotFoundError when there is none, or it cannot be read."""
    with RemoteFile(url, int(first < 0)) as file:
        return file.read(first)


def fetch_object(url: str, path: str | os.PathLike) -> None:
    """Copy the object into the local file `path`. Raises NotFoundError, DiskFullError."""
    with RemoteFile(url, 1) as source, disk_full(path), open(path, "wb") as file:
        shutil.copyfileobj(source, file, _PIECE)


def objects_below(url: str) -> dict[str, int]:
    """{path below `url`: bytes} of all objects there."""
    import obstore

    store, path = located(url)

    async def listed() -> dict[str, int]:
        entries = [entry async for batch in obstore.list(store, f"{path}/" if path else None) for entry in batch]
        return {entry["path"].removeprefix(f"{path}/" if path else ""): entry["size"] for entry in entries}

    try:
        return answer(url, begun(listed))
    except MissingError:
        return {}


class RemoteFile(io.RawIOBase):
    """A file of `size` bytes, read at any position: one request per read, or `ahead` pieces on their way while it is read on.

    Raises NotFoundError; BadInputError if it is replaced.
    """

    def __init__(self, url: str, ahead: int = 0) -> None:
        self._ahead = ahead
        try:
            info = about(url)
        except MissingError:
            raise no_bucket(url) or NotFoundError(f"{url}: no such file") from None
        self._url, self.size, self._tag, self._position = url, info["size"], info.get("e_tag"), 0
        self._coming: deque[Future[Bytes]] = deque()
        self._asked, self._piece = 0, memoryview(b"")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}[whence]
        self._position = self._asked = min(max(start + offset, 0), self.size)
        self._forget()
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, target: WriteableBuffer) -> int:
        room = memoryview(target)
        if not self._piece:
            size = _PIECE if self._ahead else len(room)
            while len(self._coming) <= self._ahead and self._asked < self.size:
                stop = min(self._asked + size, self.size)
                self._coming.append(begun(get, self._url, self._asked, stop, self._tag))
                self._asked = stop
            if not self._coming:
                return 0
            try:
                self._piece = memoryview(answer(self._url, self._coming.popleft()))
            except MissingError:
                raise NotFoundError(f"{self._url}: was removed while it was read") from None
        count = min(len(room), len(self._piece))
        room[:count] = self._piece[:count]
        self._piece = self._piece[count:]
        self._position += count
        return count

    def close(self) -> None:
        self._forget()
        super().close()

    def _forget(self) -> None:
        for future in self._coming:
            future.cancel()
        self._coming.clear()
        self._piece = memoryview(b"")


async def put(url: str, content: bytes | io.BufferedReader) -> None:
    """Put `content` (bytes, or an open file) there, replacing any object; again if less of it arrives, whatever the server says.

    Failpoint: remote.put, before each object.
    """
    import asyncio

    import obstore

    failpoint("remote.put")
    store, path = located(url)
    size = len(content) if isinstance(content, bytes) else os.fstat(content.fileno()).st_size
    for attempt in range(most := _retries() + 1):
        await obstore.put_async(store, path, content)
        if (await obstore.head_async(store, path))["size"] == size:
            return
        if not isinstance(content, bytes):
            content.seek(0)
        await asyncio.sleep(_PAUSE * 2**attempt)
    raise OSError(f"less arrived than was sent, in each of {most} attempts")


def remove_object(url: str) -> None:
    """Remove the object if there is one."""
    import obstore

    with suppress(MissingError):
        answer(url, begun(obstore.delete_async, *located(url)), "removed")
