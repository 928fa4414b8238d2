"""Calls with a hard time limit: in a process of their own, which is killed where a call does not end.

No timer in the same process can end a compiled loop.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import pytest


def _serve(pipe: Connection) -> None:
    while True:
        try:
            function, arguments, options = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(function(*arguments, **options))
        except Exception as error:  # the caller's to judge
            pipe.send(error)


class Alone:
    """`alone(function, *arguments, seconds=…, **options)` → what the function returns; what it raises is raised here.

    Functions are importable, arguments and results can be pickled. The process stays for the next call, with its kernels loaded.
    """

    def __init__(self) -> None:
        self._process: Any = None

    def __call__(self, function: Callable, *arguments: Any, seconds: float, **options: Any) -> Any:
        if self._process is None:
            self._pipe, its_end = multiprocessing.Pipe()
            self._process = multiprocessing.get_context("spawn").Process(target=_serve, args=(its_end,))
            self._process.start()
            its_end.close()
        self._pipe.send((function, arguments, options))
        if not self._pipe.poll(seconds):
            self.close()
            pytest.fail(f"{function.__name__} did not end within {seconds:g} s")
        result = self._pipe.recv()
        if isinstance(result, Exception):
            raise result
        return result

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._process = None
