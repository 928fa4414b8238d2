"""Shows how training goes: a live line on a terminal, one line every 30 s otherwise, JSON lines with --json."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from streamcut.cli.output import note, number, print_json
from streamcut.units import format_bytes

if TYPE_CHECKING:
    from streamcut.solvers.progress import Iteration

EVERY = 30.0  # seconds


class Progress:
    """Call it with every iteration, inside `with`. `style`: "live", "lines", "json" or "quiet"."""

    def __init__(self, style: str) -> None:
        self.style = style
        self._status: Any = None
        self._last = time.monotonic()

    @classmethod
    def chosen(cls, *, json: bool, quiet: bool) -> Progress:
        """What suits the options, and whether stderr is a terminal."""
        if json:
            return cls("json")
        if quiet:
            return cls("quiet")
        return cls("live" if sys.stderr.isatty() else "lines")

    def __enter__(self) -> Progress:
        if self.style == "live":
            from rich.console import Console

            self._status = Console(stderr=True, highlight=False).status("reading")
            self._status.start()
        return self

    def __exit__(self, *problem: object) -> None:
        if self._status is not None:
            self._status.stop()

    def __call__(self, iteration: Iteration) -> None:
        if self.style == "json":
            print_json({"event": "iteration", **asdict(iteration)})
        elif self.style == "live":
            self._status.update(line(iteration))
        elif self.style == "lines" and time.monotonic() - self._last >= EVERY:
            self._last = time.monotonic()
            note(line(iteration))


def line(iteration: Iteration) -> str:
    """One iteration in one line."""
    speed = format_bytes(iteration.bytes_read / iteration.seconds) if iteration.seconds > 0 else "–"
    return (
        f"iteration {iteration.iteration}  passes {number(iteration.passes)}  primal {iteration.primal:.6g}  "
        f"bound {iteration.lower_bound:.6g}  gap {iteration.gap:.3g}  cuts {iteration.cuts}  {speed}/s  "
        f"{100 * iteration.cached_share:.0f} % from memory"
    )
