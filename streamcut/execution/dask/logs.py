"""Filters for log records of Dask and asyncio that tell a user nothing, or nothing new."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import dask

from streamcut.errors import StreamcutError

_LIBRARIES = ("distributed", "distributed.client", "tornado", "tornado.application", "asyncio")
MOST = 5.0  # times SILENCE: the longest that a worker of a busy machine may be silent
_TTL = 300.0  # seconds: Dask's default for silent workers
_PRELOAD = "distributed.worker.preload"


def says_something(record: logging.LogRecord) -> bool:
    """False for AllExit, which Dask's waiting tasks raise when one has failed, and whose traceback asyncio logs later."""
    return record.exc_info is None or type(record.exc_info[1]).__name__ != "AllExit"


def is_news(record: logging.LogRecord) -> bool:
    """False for a task that ended with one of our errors: the client reports it in a sentence, so no worker logs a traceback."""
    said = record.getMessage()
    return not said.startswith("Compute Failed") or not any(f"{kind.__name__}(" in said for kind in _below(StreamcutError))


def is_brief(record: logging.LogRecord) -> bool:
    """False for a traceback: we report its consequence for the training ourselves, in a sentence."""
    return record.exc_info is None and "Traceback" not in record.getMessage()


@contextmanager
def without_tracebacks() -> Iterator[None]:
    """Within, Dask and its dependencies log no tracebacks in this process."""
    loggers = [logging.getLogger(name) for name in _LIBRARIES]
    with ExitStack() as stack:
        for each in {each for logger in loggers for each in (logger, *logger.handlers)}:
            each.addFilter(is_brief)
            stack.callback(each.removeFilter, is_brief)
        yield


def of_our_own(silence: float) -> dict[str, Any]:
    """Dask's configuration for our own cluster: it drops no worker that we would still wait for, and is equally quiet.

    Its workers are not profiled: Dask looks at their threads every 10 ms, and under Python 3.11 a garbage collection in the
    middle of that can stop the process for ever (CPython issue 106883).
    """
    return {
        "distributed.scheduler.worker-ttl": f"{_TTL + 2 * MOST * silence:g} s",
        "distributed.worker.profile.enabled": False,
        _PRELOAD: [*dask.config.get(_PRELOAD, []), __name__],
    }


def dask_setup(worker: Any) -> None:
    """Called by Dask in each of our workers when it starts."""
    for name in _LIBRARIES:
        logging.getLogger(name).setLevel(logging.CRITICAL)


def tell_ours_once() -> None:
    """In a worker: leave our own errors to the client to report."""
    logging.getLogger("distributed.worker").addFilter(is_news)


def _below(kind: type[StreamcutError]) -> list[type[StreamcutError]]:
    found = [kind]
    for each in kind.__subclasses__():
        found += _below(each)
    return found
