"""Finds the kernels that some work calls, and their argument types, by running it once with interpreted kernels.

Numba's dispatchers compile for new types. Here they record the types instead, and return the Python function to call.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from streamcut.compiler.compiling import Wanted
from streamcut.compiler.jit import name_of
from streamcut.compiler.numba_parts import dispatcher

Dispatcher: Any = dispatcher.Dispatcher


def rehearsed(pickled: bytes, seconds: float) -> tuple[list[Wanted], bool]:
    """(the kernels that a pickled (function, arguments) calls, whether it is still running).

    Work longer than `seconds` is not waited for, and work that fails, since Python's numbers are not Numba's, ends there: the
    list may then be incomplete.
    """
    rehearsal = Rehearsal()
    thread = threading.Thread(target=rehearsal.run, args=(pickled,), daemon=True)
    with rehearsal:
        thread.start()
        thread.join(seconds)
        return list(rehearsal.found.values()), thread.is_alive()


class Rehearsal:
    """A context in which Numba's dispatchers compile nothing."""

    def __init__(self) -> None:
        self.found: dict[str, Wanted] = {}
        self._inside = threading.local()

    def __enter__(self) -> None:
        self._compile = Dispatcher.compile
        Dispatcher.compile = lambda kernel, signature: self._interpreted(kernel, signature)

    def __exit__(self, *problem: object) -> None:
        Dispatcher.compile = self._compile

    def run(self, pickled: bytes) -> None:
        """Run the pickled work until it ends or fails."""
        with suppress(Exception):
            self.do(*pickle.loads(pickled))

    def do(self, work: Callable[..., object], arguments: tuple[Any, ...]) -> None:
        with np.errstate(all="ignore"):
            work(*arguments)

    def _interpreted(self, kernel: Any, signature: Any) -> Callable[..., Any]:
        """The Python function of `kernel`, recorded when called from outside other kernels."""

        def call(*arguments: Any) -> Any:
            outermost = not getattr(self._inside, "yes", False)
            if outermost and (name := name_of(kernel)) is not None:
                wanted = Wanted(kernel.py_func.__module__, name, signature, _size(kernel, set()))
                self.found.setdefault(repr(wanted), wanted)
            self._inside.yes = True
            try:
                result = kernel.py_func(*arguments)
                return _unboxed(result) if outermost else result
            finally:
                self._inside.yes = not outermost

        return call


def _unboxed(result: Any) -> Any:
    """`result` as Numba returns it: Python numbers in place of NumPy scalars."""
    if isinstance(result, tuple):
        return tuple(_unboxed(each) for each in result)
    return result.item() if isinstance(result, np.generic) else result


def _size(kernel: Any, seen: set[Any]) -> int:
    """Bytes of Python bytecode of a kernel and all kernels that it calls."""
    seen.add(kernel)
    function = kernel.py_func
    named = (function.__globals__.get(name) for name in function.__code__.co_names)
    helpers = [value for value in named if isinstance(value, Dispatcher) and value not in seen]
    return len(function.__code__.co_code) + sum(_size(helper, seen) for helper in helpers)
