"""FORMAT.md says what the code does, and zarr-python reads and writes the same chunks."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import zarr

from inside.kit.store_contract import make_rows
from streamcut.io.stores import codec, spec
from streamcut.io.stores.manifest_file import manifest_bytes, parse_manifest
from streamcut.io.stores.writer import StoreWriter
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


def test_the_text_lists_the_keys_of_the_manifest(tmp_path):
    with StoreWriter(tmp_path / "a", options={}) as writer:
        writer.append(make_rows("ones").chunk(), {})
        manifest = writer.finish({})
    assert {row[0].strip("`") for row in table("| key |")} == set(json.loads(manifest_bytes(manifest)))
    assert parse_manifest(manifest_bytes(manifest), "here") == manifest


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "float32", "float64"])
def test_zarr_python_and_we_read_each_others_chunks(tmp_path, dtype):
    array = (np.arange(10_000) % 100).astype(dtype)
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours/zarr.json").write_bytes(array_document(dtype, len(array)))
    payload = codec.encode(array)
    (tmp_path / "ours/c.0").write_bytes(payload + codec.trailer(codec.crc32c(payload)))
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "ours", mode="r")[...], array)

    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/zarr.json").write_bytes(array_document(dtype, len(array)))
    zarr.open_array(tmp_path / "theirs", mode="r+")[...] = array
    content = np.fromfile(tmp_path / "theirs/c.0", np.uint8)
    out = np.empty_like(array)
    codec.decode(content[:-4], out)
    np.testing.assert_array_equal(out, array)
    assert codec.read_trailer(content[-4:]) == codec.crc32c(content[:-4])
