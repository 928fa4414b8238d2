"""The slots of a row of a table: what can give it at most one feature each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamcut.io.recipe.table import ABSENT, BINNED, CATEGORICAL, NUMERIC, Column, Table
from streamcut.io.tables.words import utf8


@dataclass(frozen=True, slots=True)
class Slot:
    """At most one feature per row. number: its slot in the row; feature: of a numeric column, else −1."""

    number: int
    column: Column
    prefix: np.ndarray
    absent: np.ndarray
    feature: int = -1
    part: str = ""
    cross: tuple[str, ...] = ()


def slots_of(table: Table, fixed: dict[str, int]) -> list[Slot]:
    """The slots, numeric columns first in the order of their features, so that rows need little sorting."""
    found: list[Slot] = []
    by_name = {column.name: column for column in table.columns}

    def add(column: Column, key: str, **more) -> None:
        absent = f"{table.key(column.name)}{ABSENT}" if table.missing == "own" and "cross" not in more else ""
        found.append(Slot(len(found), column, utf8(key), utf8(absent), **more))

    for column in table.columns:
        if column.role == NUMERIC:
            add(column, "", feature=fixed[column.name])
        elif column.role in (CATEGORICAL, BINNED):
            add(column, f"{table.key(column.name)}=")
        for part in column.parts:
            add(column, f"{table.key(column.name)}.{part}=", part=part)
    for cross in table.crosses:
        add(by_name[cross[0]], f"{'*'.join(map(table.key, cross))}=", cross=cross)
    return sorted(found, key=lambda slot: (slot.feature < 0, slot.feature, slot.number))
