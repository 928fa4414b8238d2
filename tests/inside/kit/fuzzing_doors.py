"""Endless wrong files for the readers of matrices, models and checkpoints: single bits, and lies of types, shapes, links, flags.

`bits` and `lies` are fuzzers as those of fuzzing.py are. No file outside may be opened: the kernel is asked, and a pipe lies
there that would block who opens it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from kit.fuzzing_doors import X, _hdf5, _npy, _npz, _outcome, _private, _text
from kit.watching import opened_in

from streamcut.io.formats.finding import sniff
from streamcut.io.sources.anndata_files import AnnDataReader
from streamcut.io.sources.canonical import RowRules
from streamcut.io.sources.row_source import BlockSize, TableSource
from streamcut.io.sources.scipy_files import MatrixMarketReader, NpyReader, NpzReader, SideFiles
from streamcut.io.sources.tenx_files import TenXReader
from streamcut.models.checkpoint import open_checkpoint


def rows(path: Path, kind: str) -> list[np.ndarray]:
    """All that is read of a matrix."""
    side, name = SideFiles(None), str(path)
    if kind == "h5ad":
        assert sniff(name) == "anndata"
        reader: Any = AnnDataReader(name, "y", scratch=str(path.parent))
    elif kind == "npz":
        reader = NpzReader(name, side, 0)
    else:
        reader = {"10x": TenXReader, "npy": NpyReader, "mtx": MatrixMarketReader}[kind](name, side, 0)
    if reader.held_bytes > 1 << 30:
        raise MemoryError  # which the plan of a conversion tells
    source = TableSource([name], [reader], RowRules(), BlockSize(100, 1 << 20))
    return [array for chunk, _ in source.blocks() for array in (chunk.indptr, chunk.indices, chunk.data, chunk.y)]


def bits(rng: random.Random, made: Path) -> Iterator[str]:
    """One bit of a matrix or a checkpoint: refused, or the same numbers."""
    folder = made / "bits"
    folder.mkdir(exist_ok=True)
    readers: dict[Path, Callable[[Path], Any]] = {}
    for layout in ("csr", "csc", "coo"):
        for compressed in (False, True):
            path = folder / f"{layout}-{compressed}.npz"
            sp.save_npz(path, X.asformat(layout), compressed=compressed)
            readers[path] = lambda path: rows(path, "npz")
    readers |= dict.fromkeys((made / "run").glob("*.checkpoint"), open_checkpoint)
    contents = {path: path.read_bytes() for path in readers}
    sound = {path: read(path) for path, read in readers.items()}
    while True:
        path = rng.choice(list(readers))
        content = bytearray(contents[path])
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        place = folder / f"flipped{path.suffix}"
        place.write_bytes(content)
        found: list[Any] = []
        outcome = _outcome(lambda: found.append(readers[path](place)))  # noqa: B023
        if outcome == "taken":
            assert path.parent == folder, f"a changed bit of {path.name} was not noticed"
            assert all(np.array_equal(a, b) for a, b in zip(found[0], sound[path], strict=True)), path.name
        yield f"{'matrix' if path.parent == folder else path.suffix}: {outcome}"


def lies(rng: random.Random, made: Path) -> Iterator[str]:
    """Matrices whose types, shapes, links and flags are not what they should be: refused, or taken as they are."""
    folder, outside = made / "lies", made / "outside"
    folder.mkdir(exist_ok=True)
    with _private(outside):
        while True:
            kind = rng.choice(["npz", "npz", "h5ad", "h5ad", "10x", "mtx", "npy"])
            path = folder / f"x.{kind}"
            path.unlink(missing_ok=True)  # HDF5 may have it open yet
            if kind in ("h5ad", "10x"):
                _hdf5(rng, path, kind, outside)
            else:
                {"npz": _npz, "mtx": _text, "npy": _npy}[kind](rng, path)
            with opened_in(outside) as names:
                outcome = _outcome(lambda: rows(path, kind))  # noqa: B023
            assert names == [], f"{names} outside were opened"
            yield f"{kind}: {outcome}"


DOORS: dict[str, Callable[[random.Random, Path], Iterator[str]]] = {"bits": bits, "lies": lies}
