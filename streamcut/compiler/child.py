"""The child process of streamcut.compiler.compiling: compiles requested kernels, and finds which ones some work calls.

Numba optimises and assembles every function, then links its optimised form into those that call it, which are optimised and
assembled in turn: a function three levels deep, four times. A child runs nothing, so functions not callable from Python are only
linked, and optimised within their kernel. This saves a quarter of the compilation time; IEEE arithmetic is the same in any order
of optimisation. Where products and sums may share a rounding (streamcut.compiler.jit.fused) nothing is changed."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
import threading
import time
from functools import partial
from importlib import import_module
from typing import Any

from streamcut.compiler.compiling import IDLE, Wanted, compiler, unsaved
from streamcut.compiler.numba_parts import CPUContext, make_function
from streamcut.compiler.rehearsal import rehearsed

_executable = CPUContext.get_executable


def link_helpers() -> None:
    """Only link helpers from now on, in this process."""
    CPUContext.get_executable = _linked_only  # type: ignore[method-assign]


def _linked_only(context: Any, library: Any, description: Any, environment: Any) -> Any:
    """Replaces Numba's method, which makes a Python function."""
    if context.fastmath or _has(library, description.llvm_cpython_wrapper_name):
        return _executable(context, library, description, environment)
    library._optimize_final_module = lambda: None
    library._finalize_final_module = partial(_finish, library)
    library._ensure_finalized()
    module = description.lookup_module()
    return make_function(module, description.qualname.split(".")[-1], "", 0, environment, (library,))


def _has(library: Any, name: str) -> bool:
    try:
        library.get_function(name)
    except NameError:
        return False
    return True


def _finish(library: Any) -> None:
    library._finalize_dynamic_globals()
    library._verify_declare_only_symbols()
    library._finalized = True


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
