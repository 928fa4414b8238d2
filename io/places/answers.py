"""Answers of servers: waited for as long as `--timeout` allows, given up when the work is to stop, and errors told apart.

A server that takes a request and then says nothing would keep its client for ever. So each request runs beside the thread that
wants it, which looks at the clock; who asks for too much at once gets more time. STREAMCUT_TIMEOUT (seconds) is the limit of this
process and of those that it starts, as STREAMCUT_RETRIES is of attempts.
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
SAID_AFTER = 10.0  # seconds without an answer after which a line says so
_VARIABLE, _RETRIES = "STREAMCUT_TIMEOUT", "STREAMCUT_RETRIES"
_PIECE = 8 << 20  # bytes: what is longer may take as many times the timeout as it has pieces
_MOST_RETRIES = 20  # the last of them waits for a day
_LOOK = 0.2  # seconds between two looks at the clock and at who wants to stop
_HERE = ("memory", "file", "local")  # file systems without a server
_NO_KEYS = ("NoCredentialsError", "PartialCredentialsError", "DefaultCredentialsError", "CredentialRetrievalError")
_ELSEWHERE = ("301", "PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException")
_ANSWERED = ("InvalidBucketName", "KeyTooLongError", "EntityTooLarge", "MethodNotAllowed", "405")
_AGAIN = (408, 425, 429)  # the answers 4xx that another attempt may change

_saying = threading.Lock()
_said = -math.inf  # when the last line about a slow server was written


class _Asking(threading.local):
    """Of this thread: what it wants, for messages, and whether it may be given up when the work is to stop."""

    where = ""
    given_up = False


_asking = _Asking()


def timeout() -> float:
    """Seconds that a request may take. Raises UsageError when STREAMCUT_TIMEOUT is no such number."""
    text = os.environ.get(_VARIABLE)
    try:
        seconds = TIMEOUT if text is None else float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise UsageError(f"{_VARIABLE}: {text!r} is no number of seconds above 0")
    return seconds


def attempts() -> int:
    """How often something is asked for that fails: once, and as often again as STREAMCUT_RETRIES says. Raises UsageError."""
    text = os.environ.get(_RETRIES)
    if text is None:
        return 1 + RETRIES
    if not text.isascii() or not text.isdigit() or int(text) > _MOST_RETRIES:
        raise UsageError(f"{_RETRIES}: {text!r} is no number from 0 to {_MOST_RETRIES}")
    return 1 + int(text)


def set_timeout(seconds: float) -> None:
    """Let requests to servers (URLs) take `seconds` before they count as lost and are made again; 60 unless this is called.

    Of more than 8 MiB at once each further 8 MiB may take as long. Holds for this process and for those that it starts from now
    on; the variable STREAMCUT_TIMEOUT says the same to a process from its beginning. Raises UsageError.

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
    """Seconds that a request of so many bytes may take."""
    return timeout() * max(1, -(-size // _PIECE))


@contextmanager
def asking(where: str, *, given_up: bool) -> Iterator[None]:
    """Within, what this thread asks for is called `where`, and `given_up` when the work is to stop."""
    before = _asking.where, _asking.given_up
    _asking.where, _asking.given_up = where, given_up
    try:
        yield
    finally:
        _asking.where, _asking.given_up = before


def ask(files: Any, method: str, *arguments: Any, size: int = 0, **options: Any) -> Any:
    """What `method` of fsspec's file system `files` returns. `size`: bytes that come or go.

    Raises TimeoutError when no answer comes in time, GivenUp (see streamcut.foundation.interrupts), and what the method raises.
    """
    limit = limit_of(size)
    protocol = files.protocol if isinstance(files.protocol, tuple) else (files.protocol,)
    if set(protocol) & set(_HERE):
        return getattr(files, method)(*arguments, **options)
    call = getattr(files, f"_{method}", None)
    answer: Future
    if getattr(files, "async_impl", False) and inspect.iscoroutinefunction(call):
        import asyncio  # a tenth of what a command on local files imports, and no other needs it

        answer = asyncio.run_coroutine_threadsafe(call(*arguments, **options), files.loop)
    else:
        answer = _beside(getattr(files, method), arguments, options)
    try:
        _wait(answer, limit)
    except BaseException:
        answer.cancel()  # its connection is free again
        raise
    return answer.result()


def pause(seconds: float) -> None:
    """Wait, unless the work is to stop."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        _expect_wanted()
        time.sleep(min(left, _LOOK))


def _beside(call: Any, arguments: tuple, options: dict[str, Any]) -> Future:
    """`call` in a thread of its own, which nobody has to wait for."""
    answer: Future = Future()
    answer.set_running_or_notify_cancel()  # who gives it up cannot stop it

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
            raise TimeoutError(f"no answer within {limit:g} s, which --timeout changes")
        if waited >= SAID_AFTER and not told:
            told = True
            where = redacted(_asking.where)
            _say(f"{where}: no answer for {waited:.0f} s; it is asked again after {limit:g} s (--timeout)")


def _say(line: str) -> None:
    """Once for all requests that wait together."""
    global _said
    with _saying:
        now = time.monotonic()
        if now - _said >= SAID_AFTER:
            _said = now
            log.warning("%s", line)


def _expect_wanted() -> None:
    """Raise GivenUp when what this thread waits for is of no use any more."""
    if _asking.given_up and stop_wanted():
        raise GivenUp(f"{redacted(_asking.where)}: the answer was not waited for")


class Fetchers(Executor):
    """At most `most` threads that ask servers; unlike those of other pools they do not keep the process from ending."""

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
        """Let the threads end when what was asked for is there, or begun; nobody waits for them."""
        with suppress(Empty):
            while cancel_futures and (todo := self._calls.get_nowait()) is not None:
                todo[0].cancel()
        for _ in range(self._threads):
            self._calls.put(None)

    def __del__(self) -> None:
        self.shutdown()


def _fetch(calls: SimpleQueue, idle: threading.Semaphore) -> None:
    """What a thread of Fetchers does; it does not know them, so they can go."""
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
    """What to say of an error that the same request would meet again, and what to do about it; None: another try may help."""
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
            return f"the bucket lies in {which} ({_first_line(error)}); set AWS_DEFAULT_REGION, or the endpoint of that region"
        if code in _ANSWERED:
            return f"{_first_line(error)}; look at the URL"
    status = next((found for each in chain if isinstance(found := getattr(each, "status", None), int)), 0)  # of HTTP
    if status in (401, 403) or any(isinstance(each, PermissionError) for each in chain):
        return f"{_first_line(error)}; look at the credentials"
    if 400 <= status < 500 and status not in (404, *_AGAIN):
        return f"{_first_line(error)}; look at the URL"
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error and those that it comes from."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
