"""Compiles kernels in a process of its own, which leaves their machine code in the cache on disk.

A compiler takes 100 MB and more, and an allocator does not give all of it back. In a process that has promised to stay within a
budget that memory would be there on the first run and not on the second. So kernels that the cache does not have are compiled
by a child, and then loaded as on any other day.

The child reads (module, name of the kernel, signature) from its standard input, one pickle after another, and answers each with
what went wrong, an empty text if nothing did. It ends when its input does, so it never outlives its parent.
"""

from __future__ import annotations

import gc
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

log = logging.getLogger(__name__)

NOTICE = "compiling kernels (first use)…"
_IDLE = 10.0  # seconds after which a child that nobody asks anything ends
_CHILD = "import sys; sys.path[:] = {path!r}; from streamcut.compiling import serve; serve()"


class Compiler:
    """The child, started when it is first needed.

    announce   called before the first kernel is compiled
    available  False once there is a reason to compile in this process; a warning has then told it
    temporary  what is compiled is gone when this process ends
    asked      kernels that the cache did not have so far
    """

    def __init__(self) -> None:
        self.announce: Callable[[], None] = lambda: log.info(NOTICE)
        self.available = True
        self.temporary = False
        self.asked = 0
        self._announced = False
        self._child: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def compile(self, module: str, name: str, signature: Any, folder: str, read: Callable[[], Any]) -> Any:
        """Have the kernel `name` of `module` compiled into the cache; what `read` then finds there, None if it must be made here.

        `folder` is NUMBA_CACHE_DIR of this process, which may have been set since it began.
        """
        self.asked += 1
        self._say_so()
        if not self.available:
            return None
        request = pickle.dumps((module, name, signature))
        try:
            problem = self._answer(request, folder)
        except (OSError, EOFError):
            try:
                problem = self._answer(request, folder)  # the last child may have ended for want of work just then
            except (OSError, EOFError) as error:
                problem = f"the process that compiles ended ({type(error).__name__}: {error})"
        found = None if problem else read()
        if found is None:
            self.available = False
            problem = problem or f"what was compiled is not in the cache (NUMBA_CACHE_DIR is {folder or 'not set'})"
            log.warning("kernels are compiled in this process, whose memory they take, at every start: %s", problem)
        return found

    def close(self) -> None:
        """End the child if there is one, which gives its memory back."""
        child, self._child = self._child, None
        if child is not None and self._owner == os.getpid():
            child.kill()  # files of the cache appear when they are complete
            for pipe in (child.stdin, child.stdout):
                assert pipe is not None
                with suppress(OSError):  # it may have died with a request in it
                    pipe.close()
            child.wait()

    def _say_so(self) -> None:
        if self._announced:
            return
        self._announced = True
        self.announce()
        if self.temporary:
            log.warning(
                "what is compiled cannot be kept, so every command compiles it again: neither NUMBA_CACHE_DIR nor the folder of "
                "the package nor that of the user's caches can be written; set NUMBA_CACHE_DIR to a folder that can"
            )

    def _answer(self, request: bytes, folder: str) -> str:
        if self._child is None or self._owner != os.getpid():  # a forked process must not talk into its parent's pipe
            self._start(folder)
        child: Any = self._child
        try:
            child.stdin.write(request)
            child.stdin.flush()
            return pickle.load(child.stdout)
        except BaseException:  # Ctrl-C among them: an answer that comes late would be taken for that of the next request
            self.close()
            raise

    def _start(self, folder: str) -> None:
        if not sys.executable:
            raise OSError("Python does not say where its interpreter is")
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        command = [sys.executable, "-c", _CHILD.format(path=sys.path)]
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self._owner = os.getpid()


compiler = Compiler()
unsaved: list[str] = []  # why machine code could not be written to the cache


def serve() -> None:
    """What the child does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal goes to all processes; the parent is to answer it
    compiler.available = False
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anybody prints must not get between the answers
    gc.freeze()
    since = time.monotonic()
    busy = threading.Lock()

    def watch() -> None:
        while True:
            time.sleep(_IDLE / 4)
            with busy:
                if time.monotonic() - since > _IDLE:
                    os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
    while True:
        try:
            module, name, signature = pickle.load(requests)
        except EOFError:
            return
        with busy:
            try:
                getattr(import_module(module), name).compile(signature)
                problem = unsaved[-1] if unsaved else ""
            except Exception as error:  # the parent meets it too, and raises it where it belongs
                problem = f"{type(error).__name__}: {error}"
            pickle.dump(problem, answers)
            answers.flush()
            since = time.monotonic()
