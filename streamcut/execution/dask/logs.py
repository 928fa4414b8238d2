"""What Dask and asyncio log that says nothing to a user, or says it a second time."""

from __future__ import annotations

import logging

from streamcut.errors import StreamcutError


def says_something(record: logging.LogRecord) -> bool:
    """Not of AllExit, which Dask's waiting tasks raise when one of them has failed, and whose traceback asyncio logs later."""
    return record.exc_info is None or type(record.exc_info[1]).__name__ != "AllExit"


def is_news(record: logging.LogRecord) -> bool:
    """Not of a task that ended with an error of ours: the client tells it in a sentence, so no worker logs its traceback."""
    said = record.getMessage()
    return not said.startswith("Compute Failed") or not any(f"{kind.__name__}(" in said for kind in _below(StreamcutError))


def tell_ours_once() -> None:
    """In a worker: errors of ours are for the client to tell."""
    logging.getLogger("distributed.worker").addFilter(is_news)


def _below(kind: type[StreamcutError]) -> list[type[StreamcutError]]:
    found = [kind]
    for each in kind.__subclasses__():
        found += _below(each)
    return found
