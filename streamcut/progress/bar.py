"""A bar for the current pass, at the bottom of a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from streamcut.foundation.units import format_bytes
from streamcut.progress.columns import duration


class PassBar(Progress):
    """Rich's bar, which reads the progress of the pass each time it is drawn.

    `watch` sets the source of the progress; `say` sets the text next to the bar.
    """

    def __init__(self) -> None:
        self._ask: Callable[[], Any] = lambda: None
        shown = TextColumn("{task.fields[speed]}", markup=False), TextColumn("{task.fields[said]}", markup=False, style="dim")
        super().__init__(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=16),
            TaskProgressColumn(),
            *shown,
            console=Console(stderr=True, highlight=False),
            transient=True,
            refresh_per_second=8,
        )
        self._pass = self.add_task("reading", total=None, speed="", said="")

    def watch(self, ask: Callable[[], Any]) -> None:
        """`ask()` returns the current pass, or None."""
        self._ask = ask

    def say(self, text: str) -> None:
        """Show `text` next to the bar."""
        self.update(self._pass, said=text)

    def get_renderables(self) -> Iterable[RenderableType]:
        """The bar in its current state."""
        if tasks := self.tasks:
            self._ask_again(tasks[0])
        return super().get_renderables()

    def _ask_again(self, task: Any) -> None:
        going = self._ask()
        if going is None or not going.rows:
            return
        left = going.seconds * (going.of - going.rows) / going.rows
        task.description, task.total, task.completed = "pass", going.of, going.rows
        speed = f"{format_bytes(going.bytes_computed / max(going.seconds, 1e-9))}/s"
        task.fields["speed"] = f"{speed}, {duration(left)}" if left >= 1 else speed
