"""Rows of tables, whatever the blocks and threads."""

from __future__ import annotations

import kit.shared.tables
import numpy as np
import pyarrow as pa
import pytest
from kit.shared.tables import OPTIONS, write

from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.formats.registry import CSV
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.sources.source import Sizes

frame = kit.shared.tables.frame


@pytest.mark.parametrize("bits", [None, 10])
def test_rows_depend_neither_on_blocks_nor_on_threads(frame, tmp_path, bits):
    text = pa.array(
        [
            f"{site} and {app} or {price}"
            for site, app, price in zip(*(frame[c].to_pylist() for c in ("site", "app", "price")), strict=True)
        ]
    )
    path = str(write(frame.append_column("text", text), tmp_path / "a.csv"))
    options = ConvertOptions(
        **{**OPTIONS, "text": "text", "hash_bits": bits, "ngrams": "1,2", "drop": "when", "numeric": "age:bin7,price"}
    )
    found = []
    for block, threads in ((1 << 20, 1), (1 << 10, 1), (3000, 3)):
        rows = CSV.open([path], options, "")
        rows.begin(Sizes(block // 8, 8 * block, threads=threads))
        chunks = [chunk for chunk, _ in rows.blocks()]
        columns = [np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in ("indices", "y")]
        values = np.concatenate([np.ones(chunk.nnz) if chunk.data is None else chunk.data for chunk in chunks])
        found.append([*columns, values, np.concatenate([np.diff(chunk.indptr) for chunk in chunks]), rows.recipe()])
        assert [chunk.first_row for chunk in chunks] == np.cumsum([0, *(chunk.n_rows for chunk in chunks)])[:-1].tolist()
    assert len(chunks) > 3
    for other in found[1:]:
        for mine, theirs in zip(found[0], other, strict=True):
            assert mine == theirs if isinstance(mine, Recipe) else (mine == theirs).all()
