"""Server requests: awaited for at most STREAMCUT_TIMEOUT, abandoned when the work is to stop, with errors told apart.

A server that accepts a request and then stays silent would block its client for ever. So each request runs in a thread of its
own while the requesting thread watches the clock; large requests get more time. STREAMCUT_TIMEOUT (seconds) is the limit of
this process and of its child processes, as STREAMCUT_RETRIES is that of attempts.
"""

from __future__ import annotations

import inspect
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, wait
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import Any

from streamcut.errors import UsageError
from streamcut.foundation.interrupts import GivenUp, stop_wanted
from streamcut.foundation.redaction import redacted

log = logging.getLogger(__name__)

TIMEOUT = 60.0  # seconds
RETRIES = 5
SAID_AFTER = 10.0  # seconds without an answer before a line reports it
_VARIABLE, _RETRIES = "STREAMCUT_TIMEOUT", "STREAMCUT_RETRIES"
_PIECE = 8 << 20  # bytes: each piece of a longer request gets a timeout
_MOST_RETRIES = 20  # the last one waits for a day
_LOOK = 0.2  # seconds between checks of the clock and of stop requests
_HERE = ("memory", "file", "local")  # file systems without a server
_NO_KEYS = ("NoCredentialsError", "PartialCredentialsError", "DefaultCredentialsError", "CredentialRetrievalError")
_ELSEWHERE = ("301", "PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException")
_ANSWERED = ("InvalidBucketName", "KeyTooLongError", "EntityTooLarge", "MethodNotAllowed", "405")
_AGAIN = (408, 425, 429)  # the 4xx answers worth another attempt

_saying = threading.Lock()
_said = -math.inf  # when the last line about a slow server was written


class _Asking(threading.local):
    """Thread-local: the purpose of the requests, for messages, and whether they may be abandoned when the work is to stop."""

    where = ""
    given_up = False


_asking = _Asking()


def timeout() -> float:
    """Seconds that a request may take. Raises UsageError for an invalid STREAMCUT_TIMEOUT."""
    text = os.environ.get(_VARIABLE)
    try:
        seconds = TIMEOUT if text is None else float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise UsageError(f"{_VARIABLE}: {text!r} is not a number of seconds above 0")
    return seconds


def attempts() -> int:
    """Attempts per request: one plus STREAMCUT_RETRIES. Raises UsageError."""
    text = os.environ.get(_RETRIES)
    if text is None:
        return 1 + RETRIES
    if not text.isascii() or not text.isdigit() or int(text) > _MOST_RETRIES:
        raise UsageError(f"{_RETRIES}: {text!r} is not a number from 0 to {_MOST_RETRIES}")
    return 1 + int(text)


def set_timeout(seconds: float) -> None:
    """Let requests to servers (URLs) take `seconds` before they count as lost and are repeated; 60 by default.

    For requests above 8 MiB each further 8 MiB may take as long. Holds for this process and for those that it starts from now
    on; the variable STREAMCUT_TIMEOUT sets the same from the start of a process. Raises UsageError.

    >>> streamcut.set_timeout(30)
    """
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = repr(float(seconds))
    try:
        timeout()
    except UsageError:
        if before is None:
            del os.environ[_VARIABLE]
        else:
            os.environ[_VARIABLE] = before
        raise UsageError(f"seconds: {seconds!r} must be above 0") from None


def limit_of(size: int) -> float:
    """Seconds that a request of this size may take."""
    return timeout() * max(1, -(-size // _PIECE))


@contextmanager
def asking(where: str, *, given_up: bool) -> Iterator[None]:
    """Within the context, requests of this thread are named `where`, and abandoned when the work is to stop if `given_up`."""
    before = _asking.where, _asking.given_up
    _asking.where, _asking.given_up = where, given_up
    try:
        yield
    finally:
        _asking.where, _asking.given_up = before


def ask(files: Any, method: str, *arguments: Any, size: int = 0, **options: Any) -> Any:
    """The result of `method` of fsspec's file system `files`. `size`: bytes transferred.

    Raises TimeoutError when no answer comes in time, GivenUp (see streamcut.foundation.interrupts), and the errors of the method.
    """
    limit = limit_of(size)
    protocol = files.protocol if isinstance(files.protocol, tuple) else (files.protocol,)
    if set(protocol) & set(_HERE):
        return getattr(files, method)(*arguments, **options)
    call = getattr(files, f"_{method}", None)
    answer: Future
    if getattr(files, "async_impl", False) and inspect.iscoroutinefunction(call):
        import asyncio  # a tenth of the imports of a command on local files, needed only here

        answer = asyncio.run_coroutine_threadsafe(call(*arguments, **options), files.loop)
    else:
        answer = _beside(getattr(files, method), arguments, options)
    try:
        _wait(answer, limit)
    except BaseException:
        answer.cancel()  # frees its connection
        raise
    return answer.result()


def pause(seconds: float) -> None:
    """Wait, unless the work is to stop."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        _expect_wanted()
        time.sleep(min(left, _LOOK))


def _beside(call: Any, arguments: tuple, options: dict[str, Any]) -> Future:
    """`call` in a thread of its own, which may be abandoned."""
    answer: Future = Future()
    answer.set_running_or_notify_cancel()  # a caller that gives up cannot stop it

    def run() -> None:
        try:
            answer.set_result(call(*arguments, **options))
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=run, name="request", daemon=True).start()
    return answer


def _wait(answer: Future, limit: float) -> None:
    began, told = time.monotonic(), False
    while wait([answer], _LOOK).not_done:
        waited = time.monotonic() - began
        _expect_wanted()
        if waited >= limit:
            raise TimeoutError(f"no answer within {limit:g} s; STREAMCUT_TIMEOUT changes this limit")
        if waited >= SAID_AFTER and not told:
            told = True
            where = redacted(_asking.where)
            _say(f"{where}: no answer for {waited:.0f} s; repeating the request after {limit:g} s (STREAMCUT_TIMEOUT)")


def _say(line: str) -> None:
    """Log one line for all concurrent requests."""
    global _said
    with _saying:
        now = time.monotonic()
        if now - _said >= SAID_AFTER:
            _said = now
            log.warning("%s", line)


def _expect_wanted() -> None:
    """Raise GivenUp if the result this thread waits for is no longer needed."""
    if _asking.given_up and stop_wanted():
        raise GivenUp(f"{redacted(_asking.where)}: the answer was not waited for")


class Fetchers(Executor):
    """At most `most` threads for server requests; unlike other pools they do not keep the process from ending."""

    def __init__(self, most: int) -> None:
        self._most, self._threads = most, 0
        self._calls: SimpleQueue = SimpleQueue()
        self._idle = threading.Semaphore(0)

    def submit(self, call: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future:
        answer: Future = Future()
        self._calls.put((answer, call, arguments, options))
        if not self._idle.acquire(blocking=False) and self._threads < self._most:
            self._threads += 1
            threading.Thread(target=_fetch, args=(self._calls, self._idle), name="fetch", daemon=True).start()
        return answer

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the threads end after the queued calls, or with `cancel_futures` after the running ones; does not wait."""
        with suppress(Empty):
            while cancel_futures and (todo := self._calls.get_nowait()) is not None:
                todo[0].cancel()
        for _ in range(self._threads):
            self._calls.put(None)

    def __del__(self) -> None:
        self.shutdown()


def _fetch(calls: SimpleQueue, idle: threading.Semaphore) -> None:
    """Thread function of Fetchers; it holds no reference to them, so they can be collected."""
    while (todo := calls.get()) is not None:
        answer, call, arguments, options = todo
        if answer.set_running_or_notify_cancel():
            try:
                answer.set_result(call(*arguments, **options))
            except BaseException as error:
                answer.set_exception(error)
        del todo, answer, call, arguments
        idle.release()


def final(error: BaseException) -> str | None:
    """Message and remedy for an error that the same request would meet again; None: another attempt may help."""
    chain = list(_chain(error))
    for each in chain:
        response = getattr(each, "response", None)
        about = response if isinstance(response, dict) else {}
        code = str(about.get("Error", {}).get("Code", ""))
        reply = about.get("ResponseMetadata", {})
        region = about.get("Error", {}).get("Region") or reply.get("HTTPHeaders", {}).get("x-amz-bucket-region")
        if type(each).__name__ in _NO_KEYS:
            return f"there are no credentials ({each}); set those of the object store, such as AWS_ACCESS_KEY_ID"
        if code in _ELSEWHERE or (code == "400" and region):
            which = f"the region {region}" if region else "another region"
            return f"the bucket is in {which} ({_first_line(error)}); set AWS_DEFAULT_REGION, or the endpoint of that region"
        if code in _ANSWERED:
            return f"{_first_line(error)}; check the URL"
    status = next((found for each in chain if isinstance(found := getattr(each, "status", None), int)), 0)  # of HTTP
    if status in (401, 403) or any(isinstance(each, PermissionError) for each in chain):
        return f"{_first_line(error)}; check the credentials"
    if 400 <= status < 500 and status not in (404, *_AGAIN):
        return f"{_first_line(error)}; check the URL"
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error and its causes."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
