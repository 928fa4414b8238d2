"""Compiles kernels in child processes, which leave the machine code in the cache on disk.

A compiler takes 100 MB and more, and an allocator does not give all of it back. In a process with a memory budget that memory
would be used in the first run and not in the second. So kernels missing from the cache are compiled by children, and then loaded
as usual.

Where the work ahead is known (`Compiler.run`), all its kernels are compiled at once: a child runs that work with interpreted
kernels, which takes no time on a few rows, and records the kernels called and their argument types.

A child reads requests from its standard input, one pickle after another, and answers each. It exits at the end of its input, so
it never outlives its parent.
"""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, NamedTuple

from streamcut.errors import UsageError
from streamcut.foundation.machine import available_cpus, machine_memory
from streamcut.foundation.systems import give_back

log = logging.getLogger(__name__)

NOTICE = "compiling kernels (first use)…"
IDLE = 10.0  # seconds after which an idle child exits
_REHEARSAL = 3.0  # seconds of interpreted work
_CHILD_BYTES = 300_000_000
_MOST_CHILDREN = 8
_MOST_PICKLED = 16 << 20
_CHILD = "import sys; sys.path[:] = {path!r}; from streamcut.compiler.child import serve; serve()"


class Wanted(NamedTuple):
    """A kernel by its name in a module, and the types of its arguments; `size` of its code estimates the compilation time."""

    module: str
    name: str
    signature: Any
    size: int = 0


class Compiler:
    """The children, started when they are first needed.

    announce   called before the first kernel is compiled
    available  False once kernels must be compiled in this process; a warning has given the reason
    temporary  compiled code is deleted when this process ends
    folder     NUMBA_CACHE_DIR of this process, which may have been set since it began
    asked      kernels that the cache did not have so far
    """

    def __init__(self) -> None:
        self.announce: Callable[[], None] = lambda: log.info(NOTICE)
        self.available = True
        self.temporary = False
        self.folder = ""
        self.asked = 0
        self._announced = False
        self._child: _Child | None = None
        self._ahead: tuple[Callable[..., object], tuple[Any, ...]] | None = None

    def run(self, work: Callable[..., object], *arguments: Any) -> None:
        """`work(*arguments)`; once one of its kernels is missing, all are compiled together. No child remains."""
        self._ahead = work, arguments
        try:
            work(*arguments)
        finally:
            self._ahead = None
            self.close()
            give_back()  # else what refusals name depends on whether kernels were compiled first

    def compile(self, wanted: Wanted, read: Callable[[], Any]) -> Any:
        """Have a kernel compiled into the cache; returns what `read` finds there, None if it must be compiled in this process."""
        self.asked += 1
        self._say_so()
        if not self.available:
            return None
        if self._ahead is not None:
            ahead, self._ahead = self._ahead, None
            self._compile_all(*ahead)
            if (found := read()) is not None:
                return found
        try:
            problem = self._compiled(wanted)
        except (OSError, EOFError):
            try:
                problem = self._compiled(wanted)  # the last child may just have exited because it was idle
            except (OSError, EOFError) as error:
                problem = f"the process that compiles ended ({type(error).__name__}: {error})"
        found = None if problem else read()
        if found is None:
            self.available = False
            problem = problem or f"what was compiled is not in the cache (NUMBA_CACHE_DIR is {self.folder or 'not set'})"
            log.warning("kernels are compiled in this process, in its memory, at every start: %s", problem)
        return found

    def close(self) -> None:
        """End the child, if any, to free its memory."""
        child, self._child = self._child, None
        if child is not None and child.owner == os.getpid():
            child.kill()

    def _say_so(self) -> None:
        if self._announced:
            return
        self._announced = True
        self.announce()
        if self.temporary:
            log.warning(
                "compiled kernels cannot be cached, so every command recompiles them: neither NUMBA_CACHE_DIR, nor the folder of "
                "the package, nor the user's cache folder is writable; set NUMBA_CACHE_DIR to a folder that is"
            )

    def _compiled(self, wanted: Wanted) -> str:
        if self._child is None or self._child.owner != os.getpid():  # a forked process must not write to its parent's pipe
            self._child = _Child(self._environment())
        try:
            return self._child.ask("compile", wanted)
        except BaseException:  # including Ctrl-C: a late answer would be taken for that of the next request
            self.close()
            raise

    def _environment(self) -> dict[str, str]:
        return {"NUMBA_CACHE_DIR": self.folder}

    def _compile_all(self, work: Callable[..., object], arguments: tuple[Any, ...]) -> None:
        """Compile what a rehearsal of `work` finds. Failures show later, when a kernel is missing."""
        with suppress(OSError, EOFError, pickle.PicklingError, AttributeError, TypeError, UsageError):
            compile_all([(work, arguments)], environment=self._environment())


def compile_all(
    works: list[tuple[Callable[..., object], tuple[Any, ...]]],
    *,
    environment: Mapping[str, str] | None = None,
    workers: int | None = None,
    seconds: float = _REHEARSAL,
    on_progress: Callable[[int, int], None] = lambda done, all_of_them: None,
) -> int:
    """Compile, on all processors, the kernels that any of `works` (function, arguments) calls in `seconds` of Python's time.

    Returns their number.
    `on_progress` is called with the numbers of kernels done and found. Raises OSError and EOFError when children exit early, and
    UsageError when they cannot write compiled code.
    """
    children = [_Child(environment or {}) for _ in range(workers or _children())]
    try:
        found: dict[str, Wanted] = {}
        for result in _shared(children, "rehearse", [(_pickled(work), seconds) for work in works]):
            found |= {repr(wanted): wanted for wanted in result}
        longest_first = sorted(found.values(), key=lambda wanted: -wanted.size)
        for done, problem in enumerate(_shared(children, "compile", longest_first), start=1):
            if problem:
                raise UsageError(f"kernels cannot be compiled: {problem}")
            on_progress(done, len(longest_first))
    finally:
        for child in children:
            child.kill()
    return len(longest_first)


def _pickled(work: tuple[Callable[..., object], tuple[Any, ...]]) -> bytes:
    """`work` pickled for another process. Raises OSError when it holds more than parameters: rows, or a large model."""
    stream = _Small()
    pickle.dump(work, stream)
    return bytes(stream.content)


class _Small:
    """A file that takes no more than _MOST_PICKLED bytes."""

    def __init__(self) -> None:
        self.content = bytearray()

    def write(self, piece: Any) -> int:
        self.content += piece
        if len(self.content) > _MOST_PICKLED:
            raise OSError("the arguments are too large for a rehearsal")
        return len(piece)


def _children() -> int:
    """One child per processor, as far as memory allows."""
    return max(1, min(available_cpus(), _MOST_CHILDREN, machine_memory()[1] // _CHILD_BYTES))


def _shared(children: list[_Child], verb: str, requests: list[Any]) -> Iterator[Any]:
    """The answers to `requests`, in any order, each by the next free child."""
    free: SimpleQueue[_Child] = SimpleQueue()
    for child in children:
        free.put(child)

    def ask(request: Any) -> Any:
        child = free.get()
        try:
            return child.ask(verb, request)
        finally:
            free.put(child)

    with ThreadPoolExecutor(len(children)) as pool:
        for future in as_completed([pool.submit(ask, request) for request in requests]):
            yield future.result()


class _Child:
    """A process that compiles. `environment` is added to ours; `owner` is the process that may use it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.owner = os.getpid()
        self._environment = {**os.environ, **environment}
        self._start()

    def ask(self, verb: str, request: Any) -> Any:
        """The answer to a request. Raises OSError or EOFError when the child has exited."""
        pickle.dump((verb, request), self._requests)
        self._requests.flush()
        answer, spent = pickle.load(self._answers)
        if spent:
            self.kill()
            self._start()
        return answer

    def kill(self) -> None:
        """Kill it at any time: files of the cache appear only when complete."""
        self._process.kill()
        for pipe in (self._requests, self._answers):
            with suppress(OSError):  # it may have died with a request in it
                pipe.close()
        self._process.wait()

    def _start(self) -> None:
        if not sys.executable:
            raise OSError("Python does not report the path of its interpreter")
        command = [sys.executable, "-c", _CHILD.format(path=sys.path)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self._environment)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout


compiler = Compiler()
unsaved: list[str] = []  # why machine code could not be written to the cache
