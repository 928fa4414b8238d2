"""What is said where kernels are compiled. streamcut.compiler.jit loads Numba; commands that call no kernel load this alone."""

from __future__ import annotations

import logging
from collections.abc import Callable

NOTICE = "compiling kernels (first use; this run may take 150 MB more than its memory budget)…"
COMPILING = 150 * 10**6  # bytes
log = logging.getLogger(__name__)


class FirstUse:
    """Says, once, that kernels are compiled, and why they are not kept.

    announce   how the notice is shown; commands and their bars replace it
    compiled   whether this process has compiled any
    temporary  compiled code is deleted when this process ends
    """

    def __init__(self) -> None:
        self.announce: Callable[[], None] = lambda: log.info(NOTICE)
        self.compiled = False
        self.temporary = False
        self._unsaved = False

    def say_so(self) -> None:
        """Called before each compilation."""
        if self.compiled:
            return
        self.compiled = True
        self.announce()
        if self.temporary:
            log.warning(
                "compiled kernels cannot be cached, so every command recompiles them: neither NUMBA_CACHE_DIR, nor the folder of "
                "the package, nor the user's cache folder is writable; set NUMBA_CACHE_DIR to a folder that is"
            )

    def not_saved(self, folder: str, error: OSError) -> None:
        """Called where machine code cannot be written to the cache."""
        if not self._unsaved:
            self._unsaved = True
            log.warning(
                "kernels are compiled at every start: %s cannot be written (%s); NUMBA_CACHE_DIR names another folder",
                folder,
                error.strerror,
            )


first_use = FirstUse()
