"""Shows how training goes: a live table on a terminal, one line every 30 s otherwise, JSON lines with --json."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from streamcut.cli.eta import Eta
from streamcut.cli.output import note, print_json
from streamcut.compiling import NOTICE, compiler

if TYPE_CHECKING:
    from rich.table import Table

    from streamcut.solvers.progress import Record

EVERY = 30.0  # seconds


class Progress:
    """Call it with every record of a solver, inside `with`. `style`: "live", "lines", "json" or "quiet"."""

    def __init__(self, style: str) -> None:
        self.style = style
        self._status: Any = None
        self._last = time.monotonic()
        self._eta = Eta()

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
            compiler.announce = lambda: self._status.update(NOTICE)
        return self

    def __exit__(self, *problem: object) -> None:
        if self._status is not None:
            self._status.stop()

    def __call__(self, record: Any) -> None:
        """Show a streamcut.solvers.progress.Record. One with `gap` and `allowed_gap` also tells what time is left."""
        if self.style == "quiet":
            return
        left = self._eta.after(record.seconds, record.gap, record.allowed_gap) if hasattr(record, "allowed_gap") else None
        if self.style == "json":
            from streamcut.models.files import plain

            print_json(plain({"event": "iteration", **asdict(record), "eta_seconds": left}))
        elif self.style == "live":
            self._status.update(table(columns(record, left)))
        elif time.monotonic() - self._last >= EVERY:
            self._last = time.monotonic()
            note(line(columns(record, left)))


def columns(record: Record, left: float | None) -> dict[str, str]:
    """What a record tells people, with the time passed and, if it is known, what is left."""
    shown = {**record.columns(), "time": duration(record.seconds)}
    return shown if left is None else {**shown, "left": f"about {duration(left)}"}


def line(shown: dict[str, str]) -> str:
    """Names before texts."""
    return "  ".join(f"{name} {text}" for name, text in shown.items())


def table(shown: dict[str, str]) -> Table:
    """Names above texts."""
    from rich.table import Table

    made = Table(*shown, box=None, pad_edge=False, header_style="dim")
    made.add_row(*shown.values())
    return made


def duration(seconds: float) -> str:
    """`seconds` for people, in the two largest units: `1 d 2 h`, `3 min 20 s`, `7 s`."""
    whole = round(seconds)
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    parts = []
    for name, size in units:
        count, whole = divmod(whole, size)
        parts.append(f"{count:,} {name}" * (count > 0))
    first = next((place for place, part in enumerate(parts) if part), len(parts) - 1)
    return " ".join(filter(None, parts[first : first + 2])) or "0 s"
