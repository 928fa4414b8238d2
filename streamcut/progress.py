"""Shows the progress of training: on a terminal lines above one for the pass, in notebooks and logs lines, or JSON.

The time left is estimated from the recent decrease of the gap.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from itertools import combinations
from statistics import median
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from streamcut.compiler.first_use import NOTICE, first_use
from streamcut.foundation.units import format_bytes

if TYPE_CHECKING:
    from streamcut.execution.runner import Runner

EVERY = {"live": 0.2, "notebook": 1.0, "lines": 30.0}  # least seconds between lines; the first and the last are always shown
_FRAME = 0.125  # seconds between looks at the pass
_NOTEBOOK_WIDTH = 100
_LAST = ("time", "left")  # shown at any width
_WINDOW, _FEWEST = 12, 4  # the last iterations, by which the time left is estimated: the rate changes as training continues
_LONGEST = 10 * 365 * 86400  # seconds: a slower gap counts as not falling


@runtime_checkable
class Bounded(Protocol):
    """A record of a solver whose bound tells how far it is from its end."""

    seconds: float
    gap: float
    allowed_gap: float


class Display:
    """Use inside `with`; call it with every record of a solver. `style`: "live", "lines", "notebook", "json" or "quiet"."""

    def __init__(self, style: str) -> None:
        self.style = style
        self._runner: Runner | None = None
        self._outlook = ""  # what training waits for, besides the progress of the pass
        self._ended = threading.Event()
        self._announced: Callable[[], None] = first_use.announce
        self._last = -float("inf") if style in ("live", "notebook") else time.monotonic()
        self._waiting = ""  # a line held back, too soon after the last
        self._seen: deque[tuple[float, float]] = deque(maxlen=_WINDOW)
        self._width = {"live": shutil.get_terminal_size().columns, "notebook": _NOTEBOOK_WIDTH}.get(style, 1 << 30)

    @classmethod
    def chosen(cls, *, json: bool = False, quiet: bool = False) -> Display:
        """The display for these options and this output."""
        if json:
            return cls("json")
        if quiet:
            return cls("quiet")
        if _in_notebook():
            return cls("notebook")
        return cls("live" if sys.stderr.isatty() else "lines")

    def __enter__(self) -> Display:
        if self.style == "live":
            first_use.announce = lambda: setattr(self, "_outlook", NOTICE)
            self._drawing = threading.Thread(target=self._draw, daemon=True)
            self._drawing.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._flush()
        if self.style == "live":
            self._ended.set()
            self._drawing.join()
            on_last_line("")
            first_use.announce = self._announced

    def watch(self, runner: Runner) -> None:
        """Show the progress of the passes of `runner` (streamcut.execution.runner) on the last line of a terminal."""
        self._runner = runner

    def _draw(self) -> None:
        shown = ""
        while not self._ended.wait(_FRAME):
            if (text := self._status()) != shown:
                on_last_line(shown := text)

    def _status(self) -> str:
        """How far the pass is, and what training waits for."""
        going, parts = None if self._runner is None else self._runner.going, list[str]()
        if going is not None and going.rows:
            left = going.seconds * (going.of - going.rows) / going.rows
            speed = f"{format_bytes(going.bytes_computed / max(going.seconds, 1e-9))}/s"
            parts = [f"pass {100 * going.rows / going.of:.0f} %", f"{speed}, {duration(left)}" if left >= 1 else speed]
        return "  ".join(filter(None, [*parts, self._outlook]))

    def __call__(self, record: Any) -> None:
        """Show a streamcut.solvers.progress.Record. With `gap` and `allowed_gap` the time left is shown, too."""
        if self.style == "quiet":
            return
        left = self._left(record) if isinstance(record, Bounded) else None
        if self.style == "json":
            from streamcut.models.files import plain

            shown = plain({"event": "iteration", **asdict(record), "eta_seconds": left})
            print(json.dumps(shown, allow_nan=False), flush=True)
            return
        self._waiting = line(columns(record, left), self._width)
        rule = getattr(record, "waits_for", "")
        self._outlook = ", ".join([f"until {rule}"] * bool(rule) + [f"about {duration(left or 0)} left"] * (left is not None))
        if time.monotonic() - self._last >= EVERY[self.style]:
            self._flush()

    def _left(self, record: Bounded) -> float | None:
        """Seconds until the gap is within the tolerance, if it goes on falling as in the last iterations; None while unknown.

        The rate is the median of the slopes of log(gap) over time between all pairs of them (Theil and Sen): a third of all
        iterations may be out of line, such as one that found a much better point or waited for a disk.
        """
        if not (0.0 < record.gap < math.inf and record.allowed_gap > 0.0):
            return None
        self._seen.append((record.seconds, math.log(record.gap)))
        pairs, missing = combinations(self._seen, 2), math.log(record.gap / record.allowed_gap)
        if missing <= 0.0 or len(self._seen) < _FEWEST:
            return 0.0 if missing <= 0.0 else None
        slopes = [(late - early) / (then - now) for (now, early), (then, late) in pairs if then > now]
        rate = -median(slopes) if slopes else 0.0
        return missing / rate if missing < _LONGEST * rate else None

    def _flush(self) -> None:
        if self._waiting and (self.style != "lines" or time.monotonic() - self._last >= EVERY["lines"]):
            self._print(self._waiting)
        self._waiting = ""

    def _print(self, text: str) -> None:
        self._last = time.monotonic()
        clear = "\x1b[K" if self.style == "live" else ""  # a thread may have drawn the last line meanwhile
        stream = sys.stdout if self.style == "notebook" else sys.stderr
        stream.write(f"{clear}{text}\n")
        stream.flush()


def columns(record: Any, left: float | None) -> dict[str, str]:
    """A record as text by name, with the elapsed time and, if there is an estimate, the time left."""
    shown = {**record.columns(), "time": duration(record.seconds)}
    return shown if left is None else {**shown, "left": duration(left)}


def line(shown: dict[str, str], width: int = 1 << 30) -> str:
    """One line of `name text` pairs; those that do not fit in `width` are left out, the last ones first, but no times."""
    names, others = list(shown), [name for name in shown if name not in _LAST]
    while len(text := "  ".join(f"{name} {shown[name]}" for name in names)) > width and others:
        names.remove(others.pop())
    return text


def duration(seconds: float) -> str:
    """`seconds` as text, in the two largest units: `1 d 2 h`, `3 min 20 s`, `7 s`; tenths below ten seconds."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    parts = []
    for name, size in units:
        count, whole = divmod(whole, size)
        parts.append(f"{count:,} {name}" * (count > 0))
    first = next(at for at, part in enumerate(parts) if part)
    return " ".join(filter(None, parts[first : first + 2]))


def on_last_line(text: str) -> None:
    """Show `text` on the last line of the terminal that stderr is; what is printed next replaces it."""
    sys.stderr.write(f"\x1b[K{text[: shutil.get_terminal_size().columns - 1]}\r")
    sys.stderr.flush()


@contextmanager
def shown_by(progress: bool | Display) -> Iterator[Display | None]:
    """The display of a training, closed with it; one made by the caller stays open."""
    if isinstance(progress, Display):
        yield progress
    elif progress:
        with Display.chosen() as display:
            yield display
    else:
        yield None


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    ipython = shell.get_ipython() if shell is not None and hasattr(shell, "get_ipython") else None
    return type(ipython).__name__ == "ZMQInteractiveShell"
