"""Damage to a finished store: every changed bit, byte and file is found, named, and never reaches a kernel."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import streamcut
from inside.kit.forging import forge
from inside.kit.store_contract import make_rows
from streamcut.errors import CorruptError
from streamcut.io.stores.verify import verify_store
from streamcut.io.stores.writer import StoreWriter


@pytest.fixture(scope="module", params=["zarr", "hdf5"])
def pristine(request, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("pristine") / "store"
    rows = make_rows("queries")
    with streamcut.create(path, 300, backend=request.param, shard_nnz=1500) as out:
        out.append(rows.X, rows.y, qid=rows.qid, weight=rows.weight)
    return path


@pytest.fixture
def store(pristine, tmp_path) -> Path:
    return shutil.copytree(pristine, tmp_path / "store")


def all_files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file())


def test_wrong_lengths_and_missing_files_are_found_without_reading_data(store):
    for file in all_files(store):
        content = file.read_bytes()
        for wrong in (b"", content[: len(content) // 2], content[:-1], content + b"abcd"):
            file.write_bytes(wrong)
            assert not verify_store(store, read_data=False).sound, file
        file.unlink()
        problems = verify_store(store, read_data=False).problems
        assert any("missing" in problem and file.name in problem for problem in problems)
        file.write_bytes(content)
    assert verify_store(store, read_data=False).sound


@pytest.mark.parametrize("pristine", ["zarr"], indirect=True)
def test_sound_checksums_over_wrong_content_do_not_help(pristine, tmp_path):
    chunk = streamcut.open(pristine).read(1)
    beyond, repeated, falling, nan = chunk.indices.copy(), chunk.indices.copy(), chunk.indptr.copy(), chunk.data.astype(float)
    beyond[chunk.indptr[1] - 1] = 2**31 - 1
    repeated[1] = repeated[0]
    falling[1] = 10**15
    nan[0] = np.nan
    bad_y = chunk.y.copy()
    bad_y[0] = np.inf
    forgeries = {"beyond": ("indices", beyond), "repeated": ("indices", repeated), "falling": ("indptr", falling)}
    for name, (array, values) in {**forgeries, "nan": ("data", nan), "inf": ("y", bad_y)}.items():
        path = shutil.copytree(pristine, tmp_path / name)
        forge(path, 1, {array: values})
        with pytest.raises(CorruptError, match=f"000001/{array}: "):
            streamcut.open(path).read(1)
        assert any(f"000001/{array}" in problem for problem in verify_store(path, read_data=True).problems)


def test_a_store_that_was_replaced_meanwhile_is_noticed(store):
    data = streamcut.open(store)
    with StoreWriter(store, backend=data.manifest.backend, shard_nnz=1500, n_features=300, options={}, force=True) as writer:
        chunk = make_rows("queries").chunk()
        writer.append(replace(chunk, y=chunk.y + 1, data=chunk.data + 1), {})
        writer.finish({})
    with pytest.raises(CorruptError):
        data.read(0)
