"""The child process of streamcut.compiler.compiling: compiles requested kernels, and finds which ones some work calls."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
import threading
import time
from importlib import import_module

from streamcut.compiler.compiling import IDLE, Wanted, compiler, unsaved
from streamcut.compiler.linked import link_helpers
from streamcut.compiler.rehearsal import rehearsed


def serve() -> None:
    """Answer requests until the input ends."""
    link_helpers()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal goes to all processes; the parent handles it
    compiler.available = False
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # printed text must not mix with the answers
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)  # a compiler allocates much and frees little
    since, busy = time.monotonic(), threading.Lock()

    def watch() -> None:
        while True:
            time.sleep(IDLE / 4)
            with busy:
                if time.monotonic() - since > IDLE:
                    os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
    while True:
        try:
            verb, request = pickle.load(requests)
        except EOFError:
            return
        with busy:
            answer = _compiled_here(request) if verb == "compile" else rehearsed(*request)
            pickle.dump((answer, False) if verb == "compile" else answer, answers)
            answers.flush()
            since = time.monotonic()


def _compiled_here(wanted: Wanted) -> str:
    """The error message, or nothing."""
    try:
        getattr(import_module(wanted.module), wanted.name).compile(wanted.signature)
    except Exception as error:  # the parent fails too, and raises it in the right place
        return f"{type(error).__name__}: {error}"
    return unsaved[-1] if unsaved else ""
