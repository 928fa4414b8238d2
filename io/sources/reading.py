"""Matrices whose files say it all, for scoring: AnnData and 10x."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamcut.io.sources.canonical import RowRules
from streamcut.io.sources.row_source import ENTRY_BYTES, BlockSize, TableSource

_SIZE = BlockSize((32 << 20) // ENTRY_BYTES, (1 << 30) // ENTRY_BYTES)


def matrix_rows(
    path: str, kind: str, labels: str, layer: str | None, words: Mapping[str, float], missing_labels: str, scratch: str
) -> TableSource:
    """The rows of `path`, of format `kind` ("anndata" or "10x"), with labels of that column of obs, or "none".

    words            {word: number} that labels are of; missing_labels: "error", or "skip" rows without one
    layer, scratch   as AnnDataReader takes them
    """
    if kind == "10x":
        from streamcut.io.sources.scipy_files import SideFiles
        from streamcut.io.sources.tenx_files import TenXReader

        reader: Any = TenXReader(path, SideFiles(None), 0)
    else:
        from streamcut.io.sources.anndata_files import AnnDataReader

        reader = AnnDataReader(path, labels, layer=layer, scratch=scratch)
    return TableSource([path], [reader], RowRules(missing_labels=missing_labels), _SIZE, words=words)
