"""FORMAT.md says what the code does, and zarr-python reads and writes the same chunks."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import zarr

import streamcut
from inside.kit.forging import forge
from streamcut.errors import CorruptError, NotFoundError
from streamcut.io.manifest import manifest_bytes, parse_manifest
from streamcut.io.stores import spec, zarr_layout
from streamcut.io.stores.zarr_layout import array_document, root_document

pytestmark = pytest.mark.smoke

FORMAT = (Path(__file__).parents[3] / "io" / "FORMAT.md").read_text()


def table(header: str) -> list[list[str]]:
    lines = FORMAT[FORMAT.index(header) :].splitlines()[2:]
    rows = lines[: next(k for k, line in enumerate(lines) if not line.startswith("|"))]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_the_text_lists_the_arrays_and_dtypes_of_the_code():
    found = {row[0].strip("`"): tuple(row[1].split(", ")) for row in table("| array |")}
    assert found == spec.DTYPES
    sizes = {row[0].strip("`"): eval(row[2], {"rows": 7, "nnz": 20}) for row in table("| array |")}
    assert sizes == {name: spec.array_size(name, 7, 20) for name in spec.DTYPES}
    assert f"format version {spec.FORMAT_VERSION}" in FORMAT
    assert f"{spec.SHARD_NNZ} entries" in FORMAT
    for name in (spec.LOCK, spec.SCRATCH, spec.JOURNAL):
        assert f"NAME/{name}" in FORMAT


def test_the_text_shows_the_metadata_of_the_code():
    block = re.search(r"```json\n(.*?)```", FORMAT, re.DOTALL)[1]
    assert json.loads(block) == json.loads(array_document("int32", 5))
    attributes = json.loads(root_document())["attributes"]
    assert attributes.pop("streamcut") == spec.FORMAT_VERSION
    assert f"`{json.dumps(attributes)}`" in FORMAT


@pytest.fixture
def manifest(tmp_path):
    """Of the store a, of three shards."""
    with streamcut.create(tmp_path / "a", 9, shard_nnz=4) as out:
        out.append(np.arange(12.0).reshape(6, 2) @ np.eye(2, 9) / 3, [1, -1, 1, -1, 1, -1])
    return streamcut.open(tmp_path / "a").manifest


def test_the_text_lists_the_keys_of_the_manifest(manifest):
    assert {row[0].strip("`") for row in table("| key |")} == set(json.loads(manifest_bytes(manifest)))
    assert parse_manifest(manifest_bytes(manifest), "here") == manifest


def test_newer_formats_ask_for_a_newer_streamcut(manifest, tmp_path):
    (tmp_path / "a/manifest.json").write_bytes(manifest_bytes(replace(manifest, format_version=3)))
    with pytest.raises(NotFoundError, match="needs streamcut >="):
        streamcut.open(tmp_path / "a")


@pytest.mark.parametrize(("array", "place", "value"), [("indices", 1, 2**31 - 1), ("indices", 1, 0), ("indptr", 1, 10**9),
                                                       ("data", 0, np.nan), ("y", 0, np.inf)])  # fmt: skip
def test_sound_checksums_over_wrong_content_do_not_help(manifest, tmp_path, run, array, place, value):
    values = getattr(streamcut.open(tmp_path / "a").read(1), array)
    values = values.astype(np.int32 if array == "indptr" else values.dtype)
    values[place] = value
    forge(tmp_path / "a", 1, {array: values})
    with pytest.raises(CorruptError, match=f"000001/{array}: "):
        streamcut.open(tmp_path / "a").read(1)
    code, out, err = run("info", tmp_path / "a", "--check", "--read-data")
    assert (code, f"000001/{array}" in out + err) == (5, True)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "float32", "float64"])
def test_zarr_python_and_we_read_each_others_chunks(tmp_path, dtype):
    array = (np.arange(10_000) % 100).astype(dtype)
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours/zarr.json").write_bytes(array_document(dtype, len(array)))
    payload = zarr_layout.encode(array)
    (tmp_path / "ours/c.0").write_bytes(payload + zarr_layout.trailer(zarr_layout.crc32c(payload)))
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "ours", mode="r")[...], array)

    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/zarr.json").write_bytes(array_document(dtype, len(array)))
    zarr.open_array(tmp_path / "theirs", mode="r+")[...] = array
    content = np.fromfile(tmp_path / "theirs/c.0", np.uint8)
    out = np.empty_like(array)
    zarr_layout.decode(content[:-4], out)
    np.testing.assert_array_equal(out, array)
    assert int.from_bytes(content[-4:].tobytes(), "little") == zarr_layout.crc32c(content[:-4])
