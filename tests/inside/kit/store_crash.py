"""A conversion of test rows, block by block, as a source would do it, and what it leaves."""

from __future__ import annotations

from pathlib import Path

from kit.store_crash import BLOCK

from inside.kit.contracts.store import make_rows
from streamcut.io.stores.writer import StoreWriter


def convert(path: Path, backend: str = "zarr", *, resume: bool = False, threads: int = 1, **options) -> list[int]:
    """Write the test rows block by block as a source would; returns the first row of each block that was appended."""
    chunk, given = make_rows("queries").chunk(), []
    settings = {"shard_nnz": 1500, "options": {"source": "rows"}, **options}
    with StoreWriter(path, backend=backend, resume=resume, threads=threads, **settings) as writer:
        start = skip = 0
        if writer.resume_from is not None:
            start, skip = writer.resume_from["position"]["row"], writer.resume_from["skip"]
            assert writer.resume_from["state"] == {"seen": start}
        for first in range(start, chunk.n_rows, BLOCK):
            given.append(first + skip)
            writer.append(chunk.rows(first + skip, min(first + BLOCK, chunk.n_rows)), {"row": first}, {"seen": first})
            skip = 0
        writer.finish({"rows": 400})
    return given
