"""Several problems on the same rows: each has its own row state, and one pass over the data serves them all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import DTypeLike

from streamcut.bundle.shelf import Shelf
from streamcut.execution.feed import Feed
from streamcut.execution.lanes import Lanes
from streamcut.execution.passes import Pass
from streamcut.execution.row_state import Refill, RowPieces, Rows
from streamcut.execution.runner import Going, PassReport, PassRunner
from streamcut.foundation.chunk import Chunk


class Corner:
    """The runner of one of several problems: its row arrays have names of their own. Also its row state (RowKeeper)."""

    def __init__(self, runner: PassRunner, number: int) -> None:
        self._runner, self._number = runner, number
        self.feed: Feed = runner.feed
        self.lanes: Lanes = runner.lanes
        self.stop: Callable[[], bool] = runner.stop
        self.shelf: Shelf = runner.shelf
        self.n_rows, self.within = runner.row_state.n_rows, dict[str, tuple[float, float]]()
        self._names: dict[str, str] = {}

    @property
    def row_state(self) -> Corner:
        return self

    @property
    def going(self) -> Going | None:
        return self._runner.going

    @property
    def rows(self) -> Rows:
        return self.own(self._runner.rows)

    def own(self, rows: Rows) -> Rows:
        """This problem's part of `rows`, under its own names."""
        return {name: rows[stored] for name, stored in self._names.items()}

    def add(
        self, name: str, dtype: DTypeLike = float, shape: tuple[int, ...] = (), *, within: tuple[float, float] | None = None
    ) -> None:
        self._names[name] = f"{name} {self._number}"
        self._runner.row_state.add(self._names[name], dtype, shape, within=within)

    def kept(self) -> Rows | dict[str, RowPieces]:
        raise NotImplementedError("a certification keeps no checkpoints")

    def refill(self, name: str, refill: Refill) -> None:
        raise NotImplementedError("a certification keeps no checkpoints")

    def release(self, start: int, stop: int) -> None:
        self._runner.row_state.release(start, stop)

    def run(self, work: Pass) -> tuple[Any, PassReport]:
        (found,), report = self._runner.run(TogetherPass((work,), (self,)))
        return found, report


@dataclass(frozen=True, slots=True)
class TogetherPass(Pass):
    """The passes `works`, each with the row state of its corner; partial sums are lists of theirs. All read the data, or none."""

    works: tuple[Pass, ...]
    corners: tuple[Corner, ...]
    needs_data: bool = field(init=False)  # type: ignore[misc]
    interruptible: bool = field(init=False)  # type: ignore[misc]

    def __post_init__(self) -> None:
        object.__setattr__(self, "needs_data", self.works[0].needs_data)
        object.__setattr__(self, "interruptible", all(work.interruptible for work in self.works))

    @property
    def alignment(self) -> int:
        return max(work.alignment for work in self.works)

    def begin(self) -> list[Any]:
        return [work.begin() for work in self.works]

    def enter(self, partial: list[Any], first_row: int) -> None:
        for work, sums in zip(self.works, partial, strict=True):
            work.enter(sums, first_row)

    def visit_chunk(self, partial: list[Any], rows: Rows, chunk: Chunk) -> None:
        for work, corner, sums in zip(self.works, self.corners, partial, strict=True):
            work.visit_chunk(sums, corner.own(rows), chunk)

    def visit_rows(self, partial: list[Any], rows: Rows) -> None:
        for work, corner, sums in zip(self.works, self.corners, partial, strict=True):
            work.visit_rows(sums, corner.own(rows))

    def finish(self, partial: list[Any], rows: Rows, first_row: int) -> None:
        for work, corner, sums in zip(self.works, self.corners, partial, strict=True):
            work.finish(sums, corner.own(rows), first_row)

    def merge(self, total: list[Any], part: list[Any]) -> list[Any]:
        return [work.merge(*each) for work, *each in zip(self.works, total, part, strict=True)]
