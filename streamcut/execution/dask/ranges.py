"""Large partial sums are added up by the workers, each a range of the features, instead of by the client.

The arrays `Pass.arrays` of a partial sum are set aside where their lane ran; the client merges the rest as usual. Then every
worker that had a lane fetches its range of the arrays from all lanes that have them and adds it up in lane order: the order of
addition per feature is the client's, so the bits are the same. The client gets each number once, not once per lane.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from streamcut.execution.dask import row_exchange
from streamcut.execution.passes import Pass
from streamcut.foundation.files import disk_full

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """Where the arrays of a lane are set aside."""

    lane: int
    address: str


@dataclass(frozen=True, slots=True)
class Aside:
    """The arrays of one name that lanes have set aside, all of the same shape."""

    shape: Shape
    sources: list[Source] = field(default_factory=list)


def set_aside(work: Pass, partial: Any, folder: Path, lane: int, number: int, least: int) -> dict[str, Shape]:
    """Move the arrays of a partial sum to files if they have at least `least` bytes; returns their shapes."""
    arrays = work.arrays(partial)
    if sum(array.nbytes for array in arrays.values()) < least:
        return {}
    for name, array in arrays.items():
        path = folder / _file(name, lane, number)
        with disk_full(path, array.nbytes):
            path.write_bytes(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        work.put(partial, name, np.empty(0))
    return {name: array.shape for name, array in arrays.items()}


def put_back(work: Pass, total: Any, asides: dict[str, Aside], ranges: list[dict[str, np.ndarray]]) -> None:
    """Assemble the arrays of the sum `total` of `work` from all ranges."""
    for name, aside in asides.items():
        work.put(total, name, np.concatenate([each[name] for each in ranges]).reshape(aside.shape))


async def added_up(
    here: Any, run: str, number: int, work: Pass, asides: dict[str, Aside], part: int, parts: int
) -> dict[str, np.ndarray] | None:
    """The sums over all lanes of range `part` of `parts` of each array; None when a file is gone.

    Each worker begins with a different lane, or all would wait for the same one.
    """
    sums = {}
    for name, aside in asides.items():
        size = int(np.prod(aside.shape))
        start, stop = size * part // parts, size * (part + 1) // parts
        total: np.ndarray | None = None
        for group in _groups(aside.sources, parts):
            turned = [group[(k + part) % len(group)] for k in range(len(group))]
            calls = (_range(here, run, _file(name, each.lane, number), each.address, start, stop) for each in turned)
            found = dict(zip((each.lane for each in turned), await asyncio.gather(*calls), strict=True))
            for each in group:
                block = found.pop(each.lane)
                if block is None:
                    return None
                if total is None:
                    total = block
                else:
                    work.add_range(name, total, block, start)
        assert total is not None
        sums[name] = total
    return sums


def _groups(sources: list[Source], size: int) -> Iterator[list[Source]]:
    ordered = sorted(sources, key=lambda source: source.lane)
    for start in range(0, len(ordered), size):
        yield ordered[start : start + size]


async def _range(here: Any, run: str, file: str, address: str, start: int, stop: int) -> np.ndarray | None:
    """Numbers start:stop of a float64 file on this or another worker."""
    block = bytearray()
    while len(block) < 8 * (stop - start):
        offset, size = 8 * start + len(block), min(row_exchange.PIECE, 8 * (stop - start) - len(block))
        if address == here.address:
            piece = row_exchange.read_piece(run, file, offset, size)
        else:
            piece = await row_exchange.remote_piece(here, address, run, file, offset, size)
        if not piece:
            return None
        block += piece
    return np.frombuffer(block, np.float64)


def _file(name: str, lane: int, number: int) -> str:
    return f"+{name}.{lane}.{number}"
