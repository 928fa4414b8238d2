"""Tables that a model is to score: read by its recipe, with the columns that are to stand beside its answers."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from streamcut.io.recipe.recipe import Recipe
from streamcut.io.tables.files import table_file
from streamcut.io.tables.frames import FrameFile
from streamcut.io.tables.rows import RowMaker
from streamcut.io.tables.source import Reading, TableRows

_READING = Reading(block_bytes=4 << 20, threads=2)


def rows_to_score(
    data: Any,
    kind: str,
    recipe: Recipe,
    *,
    labelled: bool,
    missing_labels: str,
    keep: Sequence[str],
    kept: deque[pa.RecordBatch],
) -> TableRows:
    """The rows of files of format `kind`, or of a frame (kind "frame"). `kept` receives batches of the columns `keep`.

    Raises BadInputError for columns that are missing or of another type.
    """
    files = [FrameFile(data)] if kind == "frame" else [table_file(path, kind) for path in data]
    maker = RowMaker(recipe, labels=labelled, missing_labels=missing_labels, dtype=recipe.dtype, keep=keep)
    return TableRows(files, maker, _READING, same_columns=False, kept=kept)
